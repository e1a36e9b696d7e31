"""Digits that one can see: every schedule, plans in every order over the grid, and orders that look at the content.

A small network draws MNIST's digits well enough for a person to see what a schedule does. Judges are the features of a
small classifier, how sure it is and which digits it sees; beside them stands what held-out digits cost under the very
same steps, above their cost one pixel at a time (the negative ELBO), in nats per picture.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.speedup import speedups
from eigentime.experiments.taught import Taught
from eigentime.experiments.trial import Cell, fingerprint
from eigentime.intervals import PerSequence
from eigentime.measure.costs import Estimator
from eigentime.models import Model
from eigentime.report.canvases import Walks, canvases_figure
from eigentime.report.figures import save_figure
from eigentime.report.quality import quality_figure
from eigentime.report.rows import Row, Value, line_of
from eigentime.report.tiles import tiles_figure
from eigentime.samplers.teacher import nelbo
from eigentime.schedules import check_steps
from eigentime.tasks import MODELS, TASKS

TASK = TASKS["mnist"]
STEPS = (4, 8, 16, 32, 64)
SCHEDULES = ("uniform", "cosine", "eds", "wds", "jys", "ods")
ORDERS = ("raster", "random", "halton", "sobol", "farthest", "pairs")
"""Of plans; beside them a lattice for every number of steps."""
CHOOSING = ("confidence", "entropy", "margin")
"""Samplers that reveal, along uniform steps, what they are surest of."""
METRICS = {
    "frechet_small": "Fréchet distance, features",
    "unsure": "how unsure the classifier is",
    "excess": "what data cost above one pixel at a time, nats",
}
ESTIMATOR: Estimator = "cross-entropy"
"""Schedules trust the data more than the network's own sureness."""
SHOWN, SHOWN_STEPS = 16, (8, 16, 32)
"""Pictures of every cell that are drawn, with these numbers of evaluations."""
WATCHED = {
    "raster": Cell("plan-raster", 8, SHOWN),
    "most confident": Cell("uniform", 8, SHOWN, "confidence"),
    "lowest entropy": Cell("uniform", 8, SHOWN, "entropy"),
    "at random": Cell("uniform", 8, SHOWN),
    "plan, halton": Cell("plan-halton", 8, SHOWN),
    "plan, pairs": Cell("plan-pairs", 8, SHOWN),
}
"""Ways whose canvas is drawn while it fills."""
AFTER = (1, 2, 4, 6, 8)
BATCH = 32
"""Pictures at a time: more are slower, for they leave the processor's cache."""
COUNTS = 32
"""Numbers of known pixels at which each held-out picture's negative ELBO is estimated."""


@dataclass(kw_only=True)
class DigitTrial(Taught):
    """A trial that says what held-out pictures cost above their negative ELBO, paired by picture."""

    @cached_property
    def floor(self) -> PerSequence:
        """The negative ELBO of every held-out picture."""
        free = torch.ones_like(self.held_out, dtype=torch.bool)
        found = nelbo(self.model, self.held_out, free, COUNTS, seed=self.seed, batch_size=self.batch_size)
        return PerSequence(found.numpy())

    def row(self, cell: Cell) -> Row:
        row, cost = super().row(cell), self.cost(cell)
        if cost is not None:
            row["metrics"]["excess"] = _value(cost - self.floor)
        return row


@dataclass(frozen=True, kw_only=True)
class Mnist(Experiment):
    """All of it on the masked network; on the uniform kernel, where there is nothing to reveal, schedules only."""

    model: str = "mnist"
    images: int = 256
    """Per cell."""
    steps: Sequence[int] = STEPS
    held_out: int = 64
    """Test pictures that are followed with every sampler."""
    budget: int = 1024
    """Network evaluations for the clock, and again for every order."""
    jys_samples: int = api.JYS_SEQUENCES

    @property
    def stem(self) -> str:
        return self.model

    def check(self) -> None:
        if MODELS.get(self.model) is not TASK:
            raise EigentimeError(f"{self.model!r} is not a bundled network of MNIST; `eigentime models` lists them.")
        if self.images < 32 or self.held_out < 8 or self.jys_samples < 1:
            raise EigentimeError(
                f"Take at least 32 images, 8 held-out ones and 1 for JYS, not {self.images}, {self.held_out} and "
                f"{self.jys_samples}."
            )
        for count in self.steps:
            if check_steps(count) & (count - 1):
                raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")

    def results(self, desk: Desk) -> dict[str, Any]:
        network = api.load(self.model)
        masked = network.process.absorbing
        measured_on, held_out = self._data()
        clock = api.measure(
            network,
            measured_on,
            budget=self.budget,
            orders=[*ORDERS, *(f"lattice-{count}" for count in self.steps)] if masked else [],
            shape=TASK.shape,
            seed=self.seed,
            progress=desk.progress,
        )
        keep = desk.keep(self.model)
        jys_file = keep.with_suffix(".jys.json")
        jys = kept_jys(network, clock, measured_on[: self.jys_samples], None, self.steps, jys_file, desk.progress)
        trial = DigitTrial(
            network,
            clock,
            TASK.metrics,
            self.seed,
            estimator=ESTIMATOR,
            jys=jys,
            batch_size=BATCH,
            held_out=held_out,
        )
        rows = trial.rows(
            [*self._cells(masked)],
            keep,
            desk.progress,
            held_out=fingerprint(held_out),
            jys=fingerprint(measured_on[: self.jys_samples]),
        )
        self._show(trial, network, desk.out)
        lines = by_line(rows)
        return {
            "model": self.model,
            "images": self.images,
            "real": described(TASK.metrics(TASK.draw(self.images, self.seed + 1))),
            "nelbo": _value(trial.floor) if masked else None,
            "evaluations": clock.evaluations,
            "rows": rows,
            "speedup": {metric: speedups(lines, metric, self.seed) for metric in ("frechet_small", "unsure")},
            "dynamics": described(four_curves(clock)),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        lines = by_line(content["rows"])
        metrics = {name: title for name, title in METRICS.items() if name in lines[0]["metrics"]}
        levels = {name: {"real": content["real"][name]["mean"]} for name in metrics if name in content["real"]}
        parts = {"schedules": [row for row in lines if row["strategy"] in (*SCHEDULES, "counted", "plan")]}
        chosen = [row for row in lines if row["strategy"] in CHOOSING or row["strategy"].startswith("plan-")]
        if chosen:
            parts["orders"] = [row | {"strategy": row["strategy"].removeprefix("plan-")} for row in chosen]
        save_figure(quality_figure(parts, metrics, levels), out / f"{self.model}.png")

    def _data(self) -> tuple[Int[Tensor, "n 784"], Int[Tensor, "m 784"]]:
        """Test pictures to measure on, and others to follow."""
        first = max(64, self.budget // 4)
        drawn = TASK.draw(first + self.held_out, self.seed)
        return drawn[:first], drawn[first:]

    def _cells(self, masked: bool) -> Iterator[Cell]:
        """Few evaluations first."""
        for count in sorted(self.steps):
            for strategy in SCHEDULES:
                yield Cell(strategy, count, self.images)
            if masked:
                for sampler in ("counted", *CHOOSING):
                    yield Cell("uniform", count, self.images, sampler)
                for order in (*ORDERS, f"lattice-{count}"):
                    yield Cell(f"plan-{order}", count, self.images)
                yield Cell("plan", count, self.images)

    def _show(self, trial: DigitTrial, network: Model, out: Path) -> None:
        """The same seeds along every schedule, and canvases while they fill."""
        masked, shape = network.process.absorbing, TASK.shape or ()
        highest = len(network.process.kernel.values) - 1
        counts = [count for count in self.steps if count in SHOWN_STEPS] or self.steps[:1]
        shown = {
            (strategy, count): trial.sample(Cell(strategy, count, SHOWN), SHOWN).numpy()
            for strategy in (*SCHEDULES, *(["plan"] if masked else []))
            for count in counts
        }
        save_figure(tiles_figure(shown, shape, highest), out / f"{self.model}-samples.png")
        if masked:
            walks = {}
            for name, cell in WATCHED.items():
                drawn = trial.sample(cell, SHOWN)
                assert drawn.info.record is not None
                walks[name] = Walks(drawn.numpy(), drawn.info.record.asked.numpy())
            save_figure(canvases_figure(walks, AFTER, shape, highest), out / f"{self.model}-orders.png")


def by_line(rows: Sequence[Row]) -> list[Row]:
    """With the name of its line for every row's strategy: a sampler along uniform steps is called by its own."""
    return [row | {"strategy": line_of(row).removesuffix(", uniform")} for row in rows]


def _value(nats: PerSequence) -> Value:
    return {"mean": nats.mean, "stderr": nats.stderr}
