"""Images: every schedule and plan on a masked UNet, judged by Fréchet distances of features.

The paper's fourth experiment. The small classifier's features judge every cell; Inception's (FID) judge those that are
asked for, for they cost more than the samples do.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.data.images import CIFAR_SHAPE
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.dynamics import four_curves
from eigentime.experiments.speedup import speedups
from eigentime.measure import Clock
from eigentime.measure.curves import default_times
from eigentime.models import Model
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.kept import KeptRows
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import save_results
from eigentime.report.quality import quality_figure
from eigentime.report.tiles import tiles_figure
from eigentime.schedules import Plan, Schedule, check_steps, check_strategy, plan, plan_order
from eigentime.tasks import MODELS
from eigentime.tasks.features import frechet, inception_features, real_inception

STRATEGIES = ["uniform", "eds", "wds", "ods", "plan"]
STEPS = [16, 32, 64, 128]
JUDGES = {"frechet_small": "features of the small classifier", "frechet_pixels": "pixels"}
ORDERS = ["halton", "sobol", "farthest"]
BUDGET = 1024
SHOWN = 16
"""Images of every cell that are drawn."""


def reproduce(
    out: Path,
    model: str = "images",
    images: int = 256,
    steps: Sequence[int] = STEPS,
    strategies: Sequence[str] = STRATEGIES,
    fid: Sequence[tuple[str, int]] = (),
    fid_images: int = 2000,
    fid_real: int = 10_000,
    budget: int = BUDGET,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the strategies on a bundled network; write results and figures to `out`.

    fid  cells (strategy, steps) that are also judged by Inception's FID, with `fid_images` samples of their own against
         `fid_real` held-out images

    Finished cells are kept in `out` while it runs, so that an interrupted run goes on.
    """
    check_figures()
    task = MODELS.get(model)
    if task is None or task.shape is None:
        raise EigentimeError(f"{model!r} is not a bundled network for images; `eigentime models` lists them.")
    for name, count in [*((name, count) for name in strategies for count in steps), *fid]:
        check_steps(count)
        if plan_order(name) is None:
            check_strategy(name)
        if name == "jys":
            raise EigentimeError("JYS is not among the strategies that images are sampled with; leave it out.")
    if fid and (task.shape != CIFAR_SHAPE or fid_images < 64):
        raise EigentimeError("FID needs CIFAR-10's shape and at least 64 images a cell.")
    network = api.load(model)
    data = task.draw(max(64, budget // 4), seed)
    out.mkdir(parents=True, exist_ok=True)
    planning = any(plan_order(name) is not None for name in (*strategies, *(name for name, _ in fid)))
    orders = ORDERS if planning else []
    clock = api.measure(network, data, budget=budget, orders=orders, shape=task.shape, seed=seed, progress=progress)
    keep = out / f"{model}.partial.json"
    rows = compare(
        network,
        strategies,
        steps,
        samples=images,
        clock=clock,
        data=data,
        estimator="cross-entropy",
        seed=seed,
        keep=keep,
        progress=progress,
    )
    judged = KeptRows(out / "fid.partial.json", model=model, clock=clock.fingerprint, real=fid_real, seed=seed)
    for name, count in fid:
        if judged.row(name, count, fid_images) is None:
            judged.add(_inception_distance(network, clock, name, count, fid_images, fid_real, seed, progress))
    real = {name: vars(value) for name, value in task.metrics(task.draw(images, seed + 1)).items()}
    curves = four_curves(clock, default_times(128))
    content = {
        "model": model,
        "judge": JUDGES[task.fidelity],
        "images": images,
        "real": real,
        "evaluations": clock.evaluations,
        "rows": rows,
        "fid": judged.rows,
        "speedup": speedups(rows, task.fidelity, seed),
        "dynamics": {name: vars(found) for name, found in curves.items()},
    }
    save_results(out / f"{model}.json", content, images=images, budget=budget, seed=seed, fid_images=fid_images)
    metrics = {
        task.fidelity: f"Fréchet distance, {JUDGES[task.fidelity]}",
        task.diversity: "variance, |log ratio| to real",
    }
    levels = {name: {"real images": real[name]["mean"]} for name in metrics}
    save_figure(quality_figure({model: rows}, metrics, levels), out / f"{model}.png")
    highest = len(network.process.kernel.values) - 1
    save_figure(tiles_figure(_shown(network, clock, strategies, steps, seed), task.shape, highest), out / "samples.png")
    for path in (keep, out / "fid.partial.json"):
        path.unlink(missing_ok=True)
    return content


def planned(clock: Clock, strategy: str, steps: int) -> Schedule | Plan:
    """A plan, or a schedule that trusts the data more than the network's own sureness."""
    order = plan_order(strategy)
    if order is not None:
        return plan(clock, steps, order=order or None)
    return api.schedule(clock, strategy, steps=steps, estimator="cross-entropy")


def _shown(
    model: Model, clock: Clock, strategies: Sequence[str], steps: Sequence[int], seed: int
) -> dict[tuple[str, int], Int[np.ndarray, "n tokens"]]:
    """The first images of every cell: the same seed draws them again."""
    return {
        (strategy, count): api.sample(model, planned(clock, strategy, count), SHOWN, seed=seed).numpy()
        for strategy in strategies
        for count in steps
    }


def _inception_distance(
    model: Model, clock: Clock, strategy: str, steps: int, count: int, real: int, seed: int, progress: bool
) -> dict[str, Any]:
    """FID of so many samples, with a jackknife over eight blocks of them."""
    tokens: Tensor = api.sample(model, planned(clock, strategy, steps), count, seed=seed + 1, progress=progress)
    with progress_bar("Inception on real images", progress) as advance:
        truth = real_inception(real, advance)
    with progress_bar("Inception on samples", progress) as advance:
        features = inception_features(tokens, advance)
    parts = np.array_split(np.arange(count), 8)
    left_out = [frechet(np.delete(features, part, 0), truth) for part in parts]
    stderr = float(np.sqrt((len(parts) - 1) * np.var(left_out)))
    distance = {"mean": frechet(features, truth), "stderr": stderr}
    return {"strategy": strategy, "steps": steps, "samples": count, "real": len(truth), "fid": distance}
