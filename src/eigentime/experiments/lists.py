"""List operations: how near samplers come to the best that any can do, on the exact model and on a network.

An answer is right if the operation allows it. The certificate bounds how often: with KL(data ‖ samples) in nats,
accuracy ≥ exp(-KL), for KL is at least that of the event "allowed", -ln P(allowed).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from scipy.stats import spearmanr
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment
from eigentime.experiments.trial import ADAPTIVE, Cell, Trial, fingerprint
from eigentime.intervals import PerSequence
from eigentime.models import Model
from eigentime.models.list_operations import CERTAIN, RANDOM
from eigentime.models.lists import ListOperations
from eigentime.recommend import recommend
from eigentime.report.figures import save_figure
from eigentime.report.lists import lists_figure
from eigentime.report.rows import Row, Value
from eigentime.samplers import Condition, EntropyBounded, Prefix, Sampler, Threshold
from eigentime.samplers.teacher import teach
from eigentime.schedules import Plan, Schedule, check_steps
from eigentime.tasks import MODELS, TASKS, lists
from eigentime.tasks.list_limits import best_accuracy, best_counts, best_trade

TASK = TASKS["lists"]
STEPS = (1, 2, 4, 8)
SCHEDULED = (("uniform", "ancestral"), ("ods", "ancestral"), ("uniform", "counted"), ("plan", "ancestral"))
LOOKING = (("uniform", "confidence"), ("uniform", "entropy"))
ADAPTIVES: tuple[Sampler, ...] = (
    *(EntropyBounded(bound) for bound in (1.0, 4.0, 8.0)),
    *(Threshold(confidence) for confidence in (0.15, 0.3, 0.9)),
    *(Prefix(factor) for factor in (1.0, 2.0, 4.0)),
)
ORDERS = ("low-discrepancy", "farthest")
RECOMMENDED = "recommended"
PRICES = tuple(np.geomspace(1e-3, 1.0, 40).tolist())
"""Of an evaluation in accuracy, for what rules can reach on average."""
CHOOSING = 128
"""Sequences of data for a recommendation, half of which choose."""
BATCH = 256
"""Sequences are short: many at a time are faster."""


@dataclass(kw_only=True)
class Answering(Trial):
    """A trial on one operation that also says how far answers are from the true law, given the prompt, in nats."""

    held_out: Int[Tensor, "n length"]
    entropy: float
    """Of the answer, given the prompt."""
    recommended: dict[int, Schedule | Plan | None] = field(default_factory=dict)
    """What recommended samplers walk along, by their number of steps."""

    def planned(self, cell: Cell) -> Schedule | Plan | None:
        return self.recommended[cell.steps] if cell.strategy == RECOMMENDED else super().planned(cell)

    def _certified(self, cell: Cell, planned: Schedule | Plan | None) -> Value:
        """Nothing: what is certified here are the nats that every row has, adaptive rules included."""
        return {"mean": float("nan"), "stderr": float("nan")}

    def row(self, cell: Cell) -> Row:
        row, planned = super().row(cell), self.planned(cell)
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        condition, options = Condition(fixed=self.fixed), {"seed": self.seed, "batch_size": self.batch_size}
        walked = teach(self.model, self.held_out, planned, sampler, condition=condition, **options)  # type: ignore[arg-type]
        nats = PerSequence(-walked.logs.sum(1).numpy() - self.entropy)
        row["metrics"]["kl"] = {"mean": nats.mean, "stderr": nats.stderr}
        return row


@dataclass(frozen=True, kw_only=True)
class Lists(Experiment):
    """All samplers on every operation that leaves a choice; and the others on the network, where only it can fail."""

    model: str = "lists"
    samples: int = 1024
    """Answers per cell of the exact model; the network gives a quarter as many."""
    steps: Sequence[int] = STEPS
    budget: int = 512
    stem = "lists"

    def check(self) -> None:
        if MODELS.get(self.model) is not TASK or self.model.endswith("-exact"):
            raise EigentimeError(f"{self.model!r} is not a network of lists; `eigentime models` lists them.")
        if self.samples < 64:
            raise EigentimeError(f"samples must be at least 64, not {self.samples}.")
        for count in self.steps:
            if check_steps(count) > lists.LENGTH:
                raise EigentimeError(f"An answer of {lists.LENGTH} tokens takes at most as many steps, not {count}.")

    def results(self, desk: Desk) -> dict[str, Any]:
        network = api.load(self.model)
        parts: dict[str, dict[str, Any]] = {"exact": {}, "network": {}}
        for name in RANDOM:
            law = lists.exact(operations=[name])
            parts["exact"][name] = self._answered(law, law, name, self.samples, desk)
            parts["network"][name] = self._answered(network, law, name, self.samples // 4, desk)
        for name in CERTAIN:
            law = lists.exact(operations=[name])
            parts["network"][name] = self._answered(network, law, name, self.samples // 4, desk)
        return {
            "length": lists.LENGTH,
            "best": {
                name: {str(count): best_accuracy(name, lists.LENGTH, count) for count in range(1, lists.LENGTH + 1)}
                for name in RANDOM
            },
            "best_on_average": {name: sorted({best_trade(name, lists.LENGTH, p) for p in PRICES}) for name in RANDOM},
            "best_counts": {str(count): best_counts(lists.LENGTH, count) for count in self.steps},
            **parts,
            "bound": {part: bound(found) for part, found in parts.items()},
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        save_figure(lists_figure(content, RANDOM), out / f"{self.stem}.png")

    def _answered(self, model: Model, law: ListOperations, name: str, samples: int, desk: Desk) -> dict[str, Any]:
        """One operation: prompts to measure on, to teach and to answer are drawn apart."""
        fixed = torch.arange(law.length) < law.given
        data = law.draw(max(64, self.budget // 4), self.seed)
        orders = [*ORDERS, *(f"lattice-{count}" for count in self.steps if count > 1)] if name in RANDOM else []
        clock = api.measure(
            model, data, fixed=fixed, budget=self.budget, orders=orders, batch_size=BATCH, seed=self.seed
        )
        held_out = law.draw(max(64, samples // 4), self.seed + 2)
        trial = Answering(
            model,
            clock,
            TASK.metrics,
            self.seed,
            law.draw(samples, self.seed + 1),
            fixed,
            batch_size=BATCH,
            held_out=held_out,
            entropy=law.answer_entropy,
        )
        cells = (
            [*self._cells(samples)] if name in RANDOM else [Cell("uniform", k, samples, "counted") for k in self.steps]
        )
        if name in RANDOM:
            cells += self._recommended(trial, law, samples)
        keep = desk.keep(f"lists-{name}-{'exact' if model.exact else 'network'}")
        rows = trial.rows(cells, keep, desk.progress, held_out=fingerprint(held_out))
        return {"entropy": law.answer_entropy, "evaluations": clock.evaluations, "rows": rows}

    def _cells(self, samples: int) -> Iterator[Cell]:
        for strategy, sampler in (*SCHEDULED, *LOOKING):
            for count in self.steps:
                yield Cell(strategy, count, samples, sampler)
        for adaptive in ADAPTIVES:
            yield Cell(ADAPTIVE, 0, samples, adaptive)

    def _recommended(self, trial: Answering, law: ListOperations, samples: int) -> Iterator[Cell]:
        """What `recommend` chooses, on data that nothing else sees; one evaluation leaves nothing to choose."""
        data = law.draw(CHOOSING, self.seed + 3)
        for count in self.steps[1:] if self.steps[0] == 1 else self.steps:
            found = recommend(
                trial.model, data, fixed=trial.fixed, nfe=count, clock=trial.clock, sequences=CHOOSING, seed=self.seed
            )
            trial.recommended[count] = found.planned
            yield Cell(RECOMMENDED, count, samples, found.sampler)


def bound(operations: dict[str, Any]) -> dict[str, float]:
    """Does the certificate predict accuracy? Its rank correlation with exp(-KL), the share of cells where accuracy is
    no lower than that, and how far above it lies on average.

    Up to two standard errors: those of the nats, and of so many answers that are right as often as promised (what was
    counted has none where no answer is right).
    """
    rows = [row for found in operations.values() for row in found["rows"] if np.isfinite(row["metrics"]["kl"]["mean"])]
    accuracy = np.array([row["metrics"]["accuracy"]["mean"] for row in rows])
    kl, stderr = np.array([[row["metrics"]["kl"][part] for part in ("mean", "stderr")] for row in rows]).T
    samples = np.array([row["samples"] for row in rows])
    promised = np.minimum(np.exp(-kl), 1.0)
    noise = np.hypot(np.sqrt(promised * (1 - promised) / samples), promised * stderr)
    return {
        "cells": len(rows),
        "rank_correlation": float(spearmanr(promised, accuracy).statistic),
        "holds": float(np.mean(accuracy >= promised - 2 * noise - 1e-9)),
        "mean_above": float(np.mean(accuracy - promised)),
    }
