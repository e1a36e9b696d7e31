"""One model on trial: choose a schedule, sample, judge, certify and keep, cell by cell."""

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from eigentime import api
from eigentime.alone import alone
from eigentime.certificates import path_error
from eigentime.code import code_fingerprint
from eigentime.experiments.kept import KeptRows
from eigentime.measure import Clock
from eigentime.measure.costs import Estimator
from eigentime.models import Model
from eigentime.report.progress import progress_bar
from eigentime.report.rows import Row, Value
from eigentime.samplers import Sampler, Samples, label, make_sampler
from eigentime.schedules import NoSchedule, Plan, Schedule, plan, plan_order
from eigentime.tasks.metrics import as_estimates

Judge = Callable[[Tensor], Any]
ADAPTIVE = "adaptive"
"""The strategy of samplers that take no schedule."""


@dataclass(frozen=True)
class Cell:
    """One way of sampling, along a schedule or plan of so many steps, or by a sampler that needs neither."""

    strategy: str
    steps: int
    samples: int
    sampler: str | Sampler = "ancestral"

    @property
    def label(self) -> str:
        """The sampler with its settings."""
        return label(self.sampler)

    @property
    def cost(self) -> int:
        """Evaluations, roughly: what progress is counted in."""
        return max(1, self.steps) * self.samples

    def __str__(self) -> str:
        return self.label if self.strategy == ADAPTIVE else f"{self.strategy}, {self.steps} steps"


@dataclass
class Trial:
    """A model with its clock, its judge and what its samples are given."""

    model: Model
    clock: Clock
    judge: Judge
    seed: int = 0
    given: Any = None
    fixed: Any = None
    estimator: Estimator = "entropy"
    jys: dict[int, Schedule] = field(default_factory=dict)
    """JYS schedules by their number of steps."""
    batch_size: int | Literal["auto"] = "auto"
    """Sequences at a time, on which nothing depends but the time it takes."""

    def rows(
        self, cells: Sequence[Cell], keep: str | Path | None = None, progress: bool = False, **made_with: Any
    ) -> list[Row]:
        """A row for each cell. With a file to `keep` them in, an interrupted call goes on, if nothing that rows depend
        on has changed: network, clock, given tokens, judge and what `made_with` names."""
        with alone(keep):
            return self._rows(cells, KeptRows(keep, **(self._made_of() | made_with if keep else {})), progress)

    def _rows(self, cells: Sequence[Cell], kept: KeptRows, progress: bool) -> list[Row]:
        missing = [cell for cell in cells if kept.row(*_key(cell)) is None]
        with progress_bar(f"Sampling {self.model.name}", progress) as advance:
            for done, cell in enumerate(missing):
                advance(sum(each.cost for each in missing[:done]), sum(each.cost for each in missing), str(cell))
                kept.add(self.row(cell))
        return [row for row in (kept.row(*_key(cell)) for cell in cells) if row is not None]

    def row(self, cell: Cell) -> Row:
        """Sample, judge and certify one cell."""
        planned, began = self.planned(cell), time.perf_counter()
        tokens = self.sample(cell, cell.samples, planned)
        seconds = time.perf_counter() - began
        return {
            "strategy": cell.strategy,
            "steps": cell.steps,
            "sampler": cell.label,
            "samples": cell.samples,
            "nfe": tokens.nfe,
            "seconds": seconds,
            "clipped": tokens.info.clipped,
            "metrics": {
                name: {"mean": value.mean, "stderr": value.stderr}
                for name, value in as_estimates(self.judged(tokens)).items()
            },
            "path_error": self._certified(cell, planned),
            "schedule": {} if planned is None else planned.to_dict(),
        }

    def judged(self, samples: Samples) -> dict[str, Any]:
        """What the judge says of samples, which also know how they were drawn."""
        found: dict[str, Any] = self.judge(samples)
        return found

    def planned(self, cell: Cell) -> Schedule | Plan | None:
        """A plan, or a schedule for the cell's sampler, or where its own law cannot follow any, one for the exact."""
        if cell.strategy == ADAPTIVE:
            return None
        if cell.strategy == "jys" and cell.steps in self.jys:
            return self.jys[cell.steps]
        order = plan_order(cell.strategy)
        if order is not None:
            return plan(self.clock, cell.steps, order=order or None)
        settings: dict[str, Any] = {"steps": cell.steps, "estimator": self.estimator}
        if make_sampler(cell.sampler).law is not None:
            try:
                return api.schedule(self.clock, cell.strategy, sampler=cell.sampler, **settings)
            except NoSchedule:
                pass
        return api.schedule(self.clock, cell.strategy, **settings)

    def sample(self, cell: Cell, count: int, planned: Schedule | Plan | None = None) -> Samples:
        """The first sequences of a cell; the same seed draws them again."""
        planned = planned or self.planned(cell)
        given, fixed = (part[:count] if np.ndim(part) == 2 else part for part in (self.given, self.fixed))
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # clipping is in the row
            return api.sample(
                self.model,
                planned,
                count,
                sampler=sampler,
                seed=self.seed,
                given=given,
                fixed=fixed,
                batch_size=self.batch_size,
            )

    def _certified(self, cell: Cell, planned: Schedule | Plan | None) -> Value:
        if planned is None or (isinstance(planned, Schedule) and make_sampler(cell.sampler).law is None):
            return {"mean": float("nan"), "stderr": float("nan")}
        if isinstance(planned, Plan) and planned.predicted_error is not None:
            error = planned.predicted_error
        else:
            error = path_error(self.clock, planned, sampler=cell.sampler, estimator=self.estimator)
        return {"mean": error.mean, "stderr": error.stderr}

    def _made_of(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "seed": self.seed,
            "network": self.model.fingerprint,
            "clock": self.clock.fingerprint,
            "estimator": self.estimator,
            "given": fingerprint(self.given),
            "fixed": fingerprint(self.fixed),
            "metrics": code_fingerprint(self.judge),
        }


def fingerprint(tokens: Any) -> str | None:
    """A short hash of an array of tokens or booleans."""
    return None if tokens is None else hashlib.sha256(np.ascontiguousarray(tokens).tobytes()).hexdigest()[:16]


def _key(cell: Cell) -> tuple[Any, ...]:
    """As `cell_of` names rows."""
    return cell.label, cell.strategy, cell.steps, cell.samples
