"""The countdown experiment: every schedule on a trained network, and on the exact model beside it.

What the two share is the error of the schedule; where they differ it is the error of the network. Shown are violation
rates (the true one, and as the code of Jump Your Steps counts it) and the diversity that violation alone hides, against
network evaluations.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.experiment import Desk, Experiment, described
from eigentime.experiments.speedup import speedups
from eigentime.models import Model
from eigentime.report.experiment import experiment_figure
from eigentime.report.figures import save_figure
from eigentime.report.rows import Row
from eigentime.tasks import MODELS, TASKS

TASK = TASKS["countdown"]
STRATEGIES = ["uniform", "cosine", "jys", "eds", "wds", "eds-data", "wds-data", "ods"]
STEPS = [2, 4, 8, 16, 32, 64]
LONG_STRATEGIES, LONG_STEPS = ["uniform", "ods"], [256]
FEWER_FROM = 64
"""From this many steps on half the sequences are enough: violations are rarer, but so is what is at stake."""


@dataclass(frozen=True, kw_only=True)
class Countdown(Experiment):
    """All strategies on a network and on the exact model."""

    model: str = "countdown"
    samples: int = 256
    jys_samples: int = api.JYS_SEQUENCES
    budget: int = 2048

    @property
    def stem(self) -> str:
        return self.model

    def check(self) -> None:
        if MODELS.get(self.model) is not TASK:
            raise EigentimeError(f"{self.model!r} is not a countdown network; `eigentime models` lists them.")
        if self.samples < 4 or self.jys_samples < 1:
            raise EigentimeError(
                f"samples must be at least 4 and jys_samples 1, not {self.samples} and {self.jys_samples}."
            )

    def results(self, desk: Desk) -> dict[str, Any]:
        network = api.load(self.model)
        exact = api.load("countdown-exact", network.process.kernel.name)
        subjects = {"exact": exact, "network": network}
        parts = {part: self._compared(subject, part, desk) for part, subject in subjects.items()}
        return {
            "model": self.model,
            "exact_model": exact.name,
            "data": described(TASK.metrics(TASK.draw(self.samples, self.seed + 1))),
            **parts,
            "speedup": {part: speedups(found["rows"], "violation", self.seed) for part, found in parts.items()},
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        save_figure(experiment_figure(content, ["violation", "unigrams", "run_starts"]), out / f"{self.model}.png")

    def _compared(self, model: Model, part: str, desk: Desk) -> dict[str, Any]:
        data = TASK.draw(max(self.jys_samples, self.budget // 4), self.seed)
        clock = api.measure(model, data, budget=self.budget, tolerance=0.01, seed=self.seed, progress=desk.progress)
        gauges = STRATEGIES if model.process.absorbing else [name for name in STRATEGIES if not name.endswith("-data")]
        rows: list[Row] = []
        keep = desk.keep(f"{self.model}-{part}")
        for names, steps in ((gauges, STEPS), (LONG_STRATEGIES, LONG_STEPS)):
            rows += compare(
                model,
                names,
                steps,
                samples=lambda count: self.samples // 2 if count >= FEWER_FROM else self.samples,
                clock=clock,
                data=data,
                jys_samples=self.jys_samples,
                seed=self.seed,
                keep=keep,
                progress=desk.progress,
            )
        return {"evaluations": clock.evaluations, "rows": rows}
