"""The paper's dynamics figure: entropy production and transport along the reverse process, one column per modality."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.models import zoo
from eigentime.report.dynamics import modalities_figure
from eigentime.report.figures import save_figure

MODELS = ("countdown", "music", "images", "text")


@dataclass(frozen=True, kw_only=True)
class Dynamics(Experiment):
    """Measure the bundled networks and draw their curves side by side."""

    models: Sequence[str] = MODELS
    budget: int = 1024
    stem = "dynamics"

    def check(self) -> None:
        unknown = [name for name in self.models if name not in zoo()]
        if unknown:
            raise EigentimeError(f"{unknown[0]!r} is not a bundled network; `eigentime models` lists them.")

    def results(self, desk: Desk) -> dict[str, Any]:
        return {name: self._curves(name, desk.progress) for name in self.models}

    def draw(self, content: dict[str, Any], out: Path) -> None:
        save_figure(modalities_figure(content), out / "dynamics.png")

    def _curves(self, name: str, progress: bool) -> dict[str, Any]:
        model = api.load(name)
        clock = api.measure(model, budget=self.budget, tolerance=0.0, seed=self.seed, progress=progress)
        about = {"kernel": model.process.kernel.name, "evaluations": clock.evaluations}
        return about | {"curves": described(four_curves(clock))}
