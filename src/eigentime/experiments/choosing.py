"""Order matters too: samplers that choose which tokens to reveal, with every schedule and without, at equal NFE.

A schedule gives the number of tokens of a step and the sampler picks them; adaptive samplers choose both and are run at
several settings, each with the evaluations that it took.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, described
from eigentime.experiments.taught import Taught
from eigentime.experiments.trial import ADAPTIVE, Cell, fingerprint
from eigentime.intervals import PerSequence
from eigentime.likelihood import reverse_kl
from eigentime.measure.costs import Estimator
from eigentime.models import zoo
from eigentime.report.choosing import agreement, choosing_figure
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
)
from eigentime.samplers.teacher import nelbo
from eigentime.schedules import Plan, check_steps
from eigentime.tasks import MODELS

SCHEDULED: tuple[str | Sampler, ...] = (
    *("ancestral", "counted", "confidence", "margin", "entropy", "remasking"),
    *(LowestEntropy(ties="first"), Confidence(drawn=True)),
)
"""Beside those that people run: how much the rule for ties and a look at the drawn value matter."""


@dataclass(frozen=True, kw_only=True)
class Domain:
    """What is tried on one kind of data."""

    samplers: tuple[str | Sampler, ...] = SCHEDULED
    schedules: tuple[str, ...] = ("uniform", "ods")
    """Every sampler goes along each of them."""
    adaptive: tuple[Sampler, ...] = ()
    """Settings that take about as many evaluations as the schedules."""
    orders: tuple[str, ...] = ("low-discrepancy", "farthest")
    """For plans, beside the lattice of each number of steps where `lattices`."""
    lattices: bool = True
    estimator: Estimator = "entropy"
    steps: tuple[int, ...] = (4, 8, 16)
    samples: int = 32
    """That judges see."""
    reversed: int = 32
    """Samples of their own for the reverse direction."""
    sequences: int = 32
    """Held-out sequences that are taught."""
    budget: int = 1024
    """Network evaluations for the clock, and again for every order."""


DOMAINS = {
    "text": Domain(
        adaptive=(
            *(EntropyBounded(bound) for bound in (10.0, 30.0, 100.0)),
            *(Threshold(confidence) for confidence in (0.12, 0.15, 0.2)),
            *(Klass(confidence, 0.05, 1) for confidence in (0.1, 0.15)),
            *(Prefix(factor) for factor in (10.0, 30.0, 100.0)),
            *(OrderBounded("low-discrepancy", bound) for bound in (30.0, 100.0)),
            FirstHitting(),
        )
    ),
    "countdown": Domain(
        adaptive=(
            *(EntropyBounded(bound) for bound in (3.0, 10.0, 30.0)),
            *(Threshold(confidence) for confidence in (0.1, 0.3, 0.5)),
            *(Klass(confidence, 0.05, 1) for confidence in (0.1, 0.3)),
            *(Prefix(factor) for factor in (10.0, 30.0, 100.0)),
            *(OrderBounded("low-discrepancy", bound) for bound in (10.0, 30.0)),
            FirstHitting(),
        )
    ),
    "digits": Domain(
        adaptive=(
            *(EntropyBounded(bound) for bound in (1.0, 3.0, 10.0)),
            *(Threshold(confidence) for confidence in (0.3, 0.5, 0.7)),
            Klass(0.3, 0.05, 1),
            *(OrderBounded("low-discrepancy", bound) for bound in (3.0, 10.0)),
        ),
        orders=("low-discrepancy", "farthest", "halton", "sobol"),
        estimator="cross-entropy",
        samples=256,
        reversed=64,
        sequences=96,
    ),
    "images": Domain(
        samplers=("ancestral", "counted"),
        schedules=("uniform", "wds", "ods"),
        orders=("halton", "sobol", "farthest"),
        lattices=False,
        estimator="cross-entropy",
        steps=(8, 16),
        samples=48,
        reversed=8,
        sequences=8,
        budget=128,
    ),
}
"""By the name of the task; CIFAR-10 is large, so that only schedules and plans are tried on it, with few samples."""
MODELS_SHOWN = tuple(name for name in DOMAINS if name in zoo())


@dataclass(kw_only=True)
class Certified(Taught):
    """A trial that also says what each sampler costs in nats per token: held-out data under it (forward), and its own
    samples against the same steps one token at a time (reverse)."""

    reversed: int
    """Samples of their own for the reverse direction."""

    def row(self, cell: Cell) -> Row:
        row, planned, forward = super().row(cell), self.planned(cell), self.cost(cell)
        if forward is None:
            nothing: Value = {"mean": float("nan"), "stderr": float("nan")}
            row["metrics"] |= {"forward": nothing, "reverse": nothing}
            return row
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        reverse = reverse_kl(self.model, sampler, planned, samples=self.reversed, references=4, seed=self.seed + 1)
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
    samples: int | None = None
    """Instead of the domain's, as the next three."""
    sequences: int | None = None
    steps: Sequence[int] | None = None
    budget: int | None = None

    @property
    def stem(self) -> str:
        return self.model

    @property
    def domain(self) -> Domain:
        """What is tried, with the settings that were asked for."""
        task = MODELS.get(self.model)
        usual = DOMAINS.get(task.name, Domain()) if task else Domain()
        changes = {name: getattr(self, name) for name in ("samples", "sequences", "steps", "budget")}
        changes["reversed"] = None if self.samples is None else min(self.samples, usual.reversed)
        return replace(usual, **{name: value for name, value in changes.items() if value is not None})

    def settings(self) -> dict[str, Any]:
        numbers = {name: getattr(self.domain, name) for name in ("samples", "reversed", "sequences", "steps", "budget")}
        return super().settings() | numbers

    def check(self) -> None:
        for number in self.domain.steps:
            check_steps(number)
        if min(self.domain.samples, self.domain.sequences) < 4:
            raise EigentimeError("Take at least 4 samples and 4 sequences.")
        task = MODELS.get(self.model)
        if task is None or task.given:
            raise EigentimeError(
                f"{self.model!r} is not a bundled model that generates freely; `eigentime models` lists them."
            )
        if not api.load(self.model).process.absorbing:
            raise EigentimeError(f"{self.model} has no mask: there are no tokens to choose.")

    def results(self, desk: Desk) -> dict[str, Any]:
        task, model, domain = MODELS[self.model], api.load(self.model), self.domain
        data = task.draw(max(64, domain.budget // 4), self.seed)
        lattices = [f"lattice-{count}" for count in domain.steps] if domain.lattices else []
        clock = api.measure(
            model,
            data,
            budget=domain.budget,
            orders=[*domain.orders, *lattices],
            shape=task.shape,
            seed=self.seed,
            progress=desk.progress,
        )
        held_out = task.draw(max(2 * len(data), len(data) + domain.sequences), self.seed)[len(data) :]
        held_out = held_out[: domain.sequences]
        trial = Certified(
            model,
            clock,
            task.metrics,
            self.seed,
            estimator=domain.estimator,
            held_out=held_out,
            reversed=domain.reversed,
        )
        rows = trial.rows(
            [*cells_of(domain)],
            desk.keep(self.model),
            desk.progress,
            held_out=fingerprint(held_out),
            reversed=domain.reversed,
        )
        real = described(task.metrics(task.draw(domain.samples, self.seed + 2)))
        return {
            "fidelity": task.fidelity,
            "diversity": task.diversity,
            "real": real | {"forward": trial.floor()},
            "agreement": agreement(rows, task.fidelity),
            "rows": rows,
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        """All models that were run so far, in one figure."""
        drawn = [name for name in dict.fromkeys((*MODELS_SHOWN, self.model)) if (out / f"{name}.json").exists()]
        save_figure(choosing_figure({name: load_results(out / f"{name}.json") for name in drawn}), out / "choosing.png")


def cells_of(domain: Domain) -> Iterator[Cell]:
    """Samplers along schedules, plans, and samplers that need neither."""
    for sampler in domain.samplers:
        for schedule in domain.schedules:
            for count in domain.steps:
                yield Cell(schedule, count, domain.samples, sampler)
    for count in domain.steps:
        yield Cell("plan", count, domain.samples)
    for adaptive in domain.adaptive:
        yield Cell(ADAPTIVE, 0, domain.samples, adaptive)
