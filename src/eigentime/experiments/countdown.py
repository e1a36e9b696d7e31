"""The countdown experiment: every schedule on a trained network, and on the exact model beside it.

What the two have in common is the schedule's error, what parts them the network's. Violation rates (the true one, and
as the code of Jump Your Steps counts it) and the diversity that violation alone hides, against network evaluations.
"""

from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.speedup import speedups
from eigentime.models import Model
from eigentime.report.experiment import experiment_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.provenance import save_results
from eigentime.tasks import MODELS, TASKS

TASK = TASKS["countdown"]
STRATEGIES = ["uniform", "cosine", "jys", "eds", "wds", "eds-data", "wds-data", "ods"]
STEPS = [2, 4, 8, 16, 32, 64]
LONG_STRATEGIES, LONG_STEPS = ["uniform", "ods"], [256]
FEWER_FROM = 64
"""From this many steps on half the sequences are enough: violations are rarer, but so is what is at stake."""
BUDGET = 2048
Row = dict[str, Any]


def reproduce(
    out: Path,
    model: str = "countdown",
    samples: int = 256,
    jys_samples: int = api.JYS_SEQUENCES,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare all strategies on the network and on the exact model; write results and figure to `out`.

    Finished cells are kept in `out` while it runs, so that an interrupted run goes on.
    """
    check_figures()
    if MODELS.get(model) is not TASK:
        raise EigentimeError(f"{model!r} is not a countdown network; `eigentime models` lists them.")
    out.mkdir(parents=True, exist_ok=True)
    network = api.load(model)
    exact = api.load("countdown-exact", network.process.kernel.name)
    parts, kept = {}, []
    for part, subject in (("exact", exact), ("network", network)):
        kept.append(out / f"{model}-{part}.partial.json")
        parts[part] = _compare(subject, samples, jys_samples, seed, kept[-1], progress)
    floor = {name: vars(value) for name, value in TASK.metrics(TASK.draw(samples, seed + 1)).items()}
    content = {
        "model": model,
        "exact_model": exact.name,
        "data": floor,
        **parts,
        "speedup": {part: speedups(parts[part]["rows"], "violation", seed) for part in parts},
    }
    save_results(out / f"{model}.json", content, samples=samples, jys_samples=jys_samples, budget=BUDGET, seed=seed)
    save_figure(experiment_figure(content, ["violation", "unigrams", "run_starts"]), out / f"{model}.png")
    for path in kept:
        path.unlink()
    return content


def _compare(model: Model, samples: int, jys_samples: int, seed: int, keep: Path, progress: bool) -> dict[str, Any]:
    data = TASK.draw(max(jys_samples, BUDGET // 4), seed)
    clock = api.measure(model, data, budget=BUDGET, tolerance=0.01, seed=seed, progress=progress)
    strategies = STRATEGIES if model.process.absorbing else [name for name in STRATEGIES if not name.endswith("-data")]
    rows: list[Row] = []
    for names, steps in ((strategies, STEPS), (LONG_STRATEGIES, LONG_STEPS)):
        rows += compare(
            model,
            names,
            steps,
            samples=lambda count: samples // 2 if count >= FEWER_FROM else samples,
            clock=clock,
            data=data,
            jys_samples=jys_samples,
            seed=seed,
            keep=keep,
            progress=progress,
        )
    return {"evaluations": clock.evaluations, "rows": rows}
