"""Order matters too: samplers that choose which tokens to reveal, with every schedule and without, at equal NFE.

A schedule gives the number of tokens of a step and the sampler picks them; adaptive samplers choose both and are run at
several settings, each with the evaluations that it took.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, described
from eigentime.experiments.trial import ADAPTIVE, Cell, Trial, fingerprint
from eigentime.intervals import PerSequence
from eigentime.likelihood import reverse_kl
from eigentime.models import zoo
from eigentime.report.choosing import choosing_figure
from eigentime.report.figures import save_figure
from eigentime.report.provenance import load_results
from eigentime.report.rows import Row, Value
from eigentime.samplers import (
    Confidence,
    EntropyBounded,
    FirstHitting,
    Klass,
    LowestEntropy,
    OrderBounded,
    Prefix,
    Sampler,
    Threshold,
    make_sampler,
)
from eigentime.samplers.planned import Planned
from eigentime.samplers.teacher import nelbo, teach
from eigentime.schedules import Plan, check_steps
from eigentime.tasks import MODELS, Task

MODELS_SHOWN = tuple(name for name in ("text", "countdown") if name in zoo())
SCHEDULES = ("uniform", "ods")
SCHEDULED: tuple[str | Sampler, ...] = (
    *("ancestral", "counted", "confidence", "margin", "entropy", "remasking"),
    *(LowestEntropy(ties="first"), Confidence(drawn=True)),
)
"""Beside those that people run: how much the rule for ties and a look at the drawn value matter."""
STEPS = (4, 8, 16)
SETTINGS: dict[str, list[Sampler]] = {
    "text": [
        *(EntropyBounded(bound) for bound in (10.0, 30.0, 100.0)),
        *(Threshold(confidence) for confidence in (0.12, 0.15, 0.2)),
        *(Klass(confidence, 0.05, 1) for confidence in (0.1, 0.15)),
        *(Prefix(factor) for factor in (10.0, 30.0, 100.0)),
        *(OrderBounded("low-discrepancy", bound) for bound in (30.0, 100.0)),
    ],
    "countdown": [
        *(EntropyBounded(bound) for bound in (3.0, 10.0, 30.0)),
        *(Threshold(confidence) for confidence in (0.1, 0.3, 0.5)),
        *(Klass(confidence, 0.05, 1) for confidence in (0.1, 0.3)),
        *(Prefix(factor) for factor in (10.0, 30.0, 100.0)),
        *(OrderBounded("low-discrepancy", bound) for bound in (10.0, 30.0)),
    ],
}
"""By task, settings that take about as many evaluations as the schedules."""
ORDERS = ("low-discrepancy", "farthest")
"""Beside the lattice of each number of steps."""


@dataclass(kw_only=True)
class Certified(Trial):
    """A trial that also says what each sampler costs in nats per token: held-out data under it (forward), and its own
    samples against the same steps one token at a time (reverse)."""

    held_out: Int[Tensor, "n length"]

    def row(self, cell: Cell) -> Row:
        row, planned = super().row(cell), self.planned(cell)
        covered = Planned() if isinstance(planned, Plan) else make_sampler(cell.sampler)
        if covered.likelihood_of(planned) is None:
            nothing: Value = {"mean": float("nan"), "stderr": float("nan")}
            row["metrics"] |= {"forward": nothing, "reverse": nothing}
            return row
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        taught = teach(self.model, self.held_out, planned, sampler, seed=self.seed)
        forward = PerSequence(-taught.logs.sum(1).numpy())
        reverse = reverse_kl(self.model, sampler, planned, samples=cell.samples, references=4, seed=self.seed + 1)
        row["metrics"] |= {"forward": self._per_token(forward), "reverse": self._per_token(reverse)}
        return row

    def floor(self) -> Value:
        """The NELBO of the same sequences."""
        free = torch.ones_like(self.held_out, dtype=torch.bool)
        return self._per_token(PerSequence(nelbo(self.model, self.held_out, free, 16, seed=self.seed).numpy()))

    def _per_token(self, nats: PerSequence) -> Value:
        return {"mean": nats.mean / self.model.length, "stderr": nats.stderr / self.model.length}


@dataclass(frozen=True, kw_only=True)
class Choosing(Experiment):
    """Cross samplers with schedules on one model."""

    model: str = "text"
    samples: int = 32
    sequences: int = 32
    """Held-out sequences that are taught."""
    steps: Sequence[int] = STEPS
    budget: int = 1024

    @property
    def stem(self) -> str:
        return self.model

    def check(self) -> None:
        for number in self.steps:
            check_steps(number)
        if self.samples < 4:
            raise EigentimeError(f"samples must be at least 4, not {self.samples}.")
        task = MODELS.get(self.model)
        if task is None or task.given:
            raise EigentimeError(
                f"{self.model!r} is not a bundled model that generates freely; `eigentime models` lists them."
            )
        if not api.load(self.model).process.absorbing:
            raise EigentimeError(f"{self.model} has no mask: there are no tokens to choose.")

    def results(self, desk: Desk) -> dict[str, Any]:
        task, model = MODELS[self.model], api.load(self.model)
        data = task.draw(max(64, self.budget // 4), self.seed)
        clock = api.measure(
            model,
            data,
            budget=self.budget,
            orders=[*ORDERS, *(f"lattice-{count}" for count in self.steps)],
            seed=self.seed,
            progress=desk.progress,
        )
        held_out = task.draw(2 * len(data), self.seed)[len(data) :][: self.sequences]
        trial = Certified(model, clock, task.metrics, self.seed, held_out=held_out)
        return {
            "fidelity": task.fidelity,
            "diversity": task.diversity,
            "real": described(task.metrics(task.draw(self.samples, self.seed + 2))) | {"forward": trial.floor()},
            "rows": trial.rows(
                [*self._cells(task)], desk.keep(self.model), desk.progress, held_out=fingerprint(held_out)
            ),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        """All models that were run so far, in one figure."""
        drawn = [name for name in dict.fromkeys((*MODELS_SHOWN, self.model)) if (out / f"{name}.json").exists()]
        save_figure(choosing_figure({name: load_results(out / f"{name}.json") for name in drawn}), out / "choosing.png")

    def _cells(self, task: Task) -> Iterator[Cell]:
        for sampler in SCHEDULED:
            for schedule in SCHEDULES:
                for count in self.steps:
                    yield Cell(schedule, count, self.samples, sampler)
        for count in self.steps:
            yield Cell("plan", count, self.samples)
        for adaptive in (*SETTINGS.get(task.name, []), FirstHitting()):
            yield Cell(ADAPTIVE, 0, self.samples, adaptive)
