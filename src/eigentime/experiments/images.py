"""Images: every schedule and plan on a masked UNet, judged by Fréchet distances of features.

The paper's fourth experiment. The small classifier's features judge every cell; Inception's (FID) judge those that are
asked for, for they cost more than the samples do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eigentime import api
from eigentime.data.images import CIFAR_SHAPE
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.experiments.speedup import speedups
from eigentime.experiments.trial import Cell, Trial
from eigentime.measure import Clock
from eigentime.measure.costs import Estimator
from eigentime.models import Model
from eigentime.report.figures import save_figure
from eigentime.report.progress import progress_bar
from eigentime.report.quality import quality_figure
from eigentime.report.tiles import tiles_figure
from eigentime.schedules import check_steps, check_strategy, plan_order
from eigentime.tasks import MODELS, Estimate
from eigentime.tasks.features import frechet, inception_features, real_inception
from eigentime.tasks.metrics import of_the_whole

STRATEGIES = ["uniform", "eds", "wds", "ods", "plan"]
STEPS = [16, 32, 64, 128]
JUDGES = {"frechet_small": "features of the small classifier", "frechet_pixels": "pixels"}
ORDERS = ["halton", "sobol", "farthest"]
ESTIMATOR: Estimator = "cross-entropy"
"""Schedules trust the data more than the network's own sureness."""
SHOWN = 16
"""Images of every cell that are drawn."""


@dataclass(frozen=True, kw_only=True)
class Images(Experiment):
    """The strategies on a bundled network."""

    model: str = "images"
    images: int = 256
    steps: Sequence[int] = tuple(STEPS)
    strategies: Sequence[str] = tuple(STRATEGIES)
    fid: Sequence[tuple[str, int]] = ()
    """Cells (strategy, steps) that are also judged by Inception's FID, with samples of their own."""
    fid_images: int = 2000
    fid_real: int = 10_000
    """How many held-out images they are compared with."""
    budget: int = 1024

    @property
    def stem(self) -> str:
        return self.model

    def check(self) -> None:
        task = MODELS.get(self.model)
        if task is None or task.shape is None:
            raise EigentimeError(f"{self.model!r} is not a bundled network for images; `eigentime models` lists them.")
        for name, count in [*((name, count) for name in self.strategies for count in self.steps), *self.fid]:
            check_steps(count)
            if plan_order(name) is None:
                check_strategy(name)
            if name == "jys":
                raise EigentimeError("JYS is not among the strategies that images are sampled with; leave it out.")
        if self.images < 16:
            raise EigentimeError(f"images must be at least 16, not {self.images}.")
        if self.fid and (task.shape != CIFAR_SHAPE or self.fid_images < 64):
            raise EigentimeError("FID needs CIFAR-10's shape and at least 64 images per cell.")

    def results(self, desk: Desk) -> dict[str, Any]:
        task, network = MODELS[self.model], api.load(self.model)
        data = task.draw(max(64, self.budget // 4), self.seed)
        names = (*self.strategies, *(name for name, _ in self.fid))
        clock = api.measure(
            network,
            data,
            budget=self.budget,
            orders=ORDERS if any(plan_order(name) is not None for name in names) else [],
            shape=task.shape,
            seed=self.seed,
            progress=desk.progress,
        )
        rows = compare(
            network,
            self.strategies,
            self.steps,
            samples=self.images,
            clock=clock,
            data=data,
            estimator=ESTIMATOR,
            seed=self.seed,
            keep=desk.keep(self.model),
            progress=desk.progress,
        )
        trial = Trial(network, clock, task.metrics, self.seed, estimator=ESTIMATOR)
        shown = {
            (strategy, count): trial.sample(Cell(strategy, count, SHOWN), SHOWN).numpy()
            for strategy in self.strategies
            for count in self.steps
        }
        highest = len(network.process.kernel.values) - 1
        save_figure(tiles_figure(shown, task.shape or (), highest), desk.out / "samples.png")
        return {
            "model": self.model,
            "judge": JUDGES[task.fidelity],
            "images": self.images,
            "real": described(task.metrics(task.draw(self.images, self.seed + 1))),
            "evaluations": clock.evaluations,
            "rows": rows,
            "fid": self._inception(network, clock, desk),
            "speedup": speedups(rows, task.fidelity, self.seed),
            "dynamics": described(four_curves(clock)),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        task = MODELS[self.model]
        metrics = {
            task.fidelity: f"Fréchet distance, {JUDGES[task.fidelity]}",
            task.diversity: "variance, |log ratio| to real",
        }
        levels = {name: {"real images": content["real"][name]["mean"]} for name in metrics}
        save_figure(quality_figure({self.model: content["rows"]}, metrics, levels), out / f"{self.model}.png")

    def _inception(self, model: Model, clock: Clock, desk: Desk) -> list[dict[str, Any]]:
        """The cells that are judged by Inception as well."""
        if not self.fid:
            return []
        with progress_bar("Inception on real images", desk.progress) as advance:
            truth = real_inception(self.fid_real, advance)

        def judge(x: Tensor) -> dict[str, Estimate]:
            with progress_bar("Inception on samples", desk.progress) as advance:
                features = inception_features(x, advance)
            return {"fid": _fid_of(features, truth)}

        trial = Trial(model, clock, judge, self.seed + 1, estimator=ESTIMATOR)
        cells = [Cell(strategy, count, self.fid_images) for strategy, count in self.fid]
        rows = trial.rows(cells, desk.keep("fid"), desk.progress, real=self.fid_real)
        return [
            {
                "strategy": row["strategy"],
                "steps": row["steps"],
                "samples": row["samples"],
                "real": len(truth),
                "fid": row["metrics"]["fid"],
            }
            for row in rows
        ]


def _fid_of(features: np.ndarray, truth: np.ndarray) -> Estimate:
    """Fréchet distance, with a jackknife over eight parts of the samples."""
    return of_the_whole(torch.from_numpy(features), lambda part: frechet(part.numpy(), truth), blocks=8)
