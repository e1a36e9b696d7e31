"""Order matters too: samplers that choose which tokens to reveal, with every schedule and without, at equal NFE.

A schedule gives the number of tokens of a step and the sampler picks them; adaptive samplers choose both and are run at
several settings, each with the evaluations that it took.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, described
from eigentime.experiments.trial import ADAPTIVE, Cell, Trial
from eigentime.models import zoo
from eigentime.report.choosing import choosing_figure
from eigentime.report.figures import save_figure
from eigentime.report.provenance import load_results
from eigentime.samplers import EntropyBounded, FirstHitting, Klass, Sampler, Threshold
from eigentime.schedules import check_steps
from eigentime.tasks import MODELS, Task

MODELS_SHOWN = tuple(name for name in ("text", "countdown") if name in zoo())
SCHEDULES = ("uniform", "cosine", "eds", "wds", "ods")
SCHEDULED = ("ancestral", "confidence", "margin", "entropy", "remasking")
STEPS = (4, 8, 16)
SETTINGS: dict[str, list[Sampler]] = {
    "text": [
        *(EntropyBounded(bound) for bound in (10.0, 30.0, 100.0)),
        *(Threshold(confidence) for confidence in (0.1, 0.2, 0.3)),
        *(Klass(confidence, 0.05, 1) for confidence in (0.1, 0.2, 0.3)),
    ],
    "countdown": [
        *(EntropyBounded(bound) for bound in (1.0, 3.0, 10.0)),
        *(Threshold(confidence) for confidence in (0.3, 0.5, 0.7)),
        *(Klass(confidence, 0.05, 1) for confidence in (0.3, 0.5, 0.7)),
    ],
}
"""By task, settings that take about as many evaluations as the schedules."""
ORDERS = ["low-discrepancy", "farthest"]


@dataclass(frozen=True, kw_only=True)
class Choosing(Experiment):
    """Cross samplers with schedules on one model."""

    model: str = "text"
    samples: int = 32
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
        clock = api.measure(model, data, budget=self.budget, orders=ORDERS, seed=self.seed, progress=desk.progress)
        trial = Trial(model, clock, task.metrics, self.seed)
        return {
            "fidelity": task.fidelity,
            "diversity": task.diversity,
            "real": described(task.metrics(task.draw(self.samples, self.seed + 2))),
            "rows": trial.rows([*self._cells(task)], desk.keep(self.model), desk.progress),
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
