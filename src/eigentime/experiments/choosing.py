"""Order matters too: samplers that choose which tokens to reveal, with every schedule and without, at equal NFE.

A schedule gives the number of tokens of a step and the sampler picks them; adaptive samplers choose both and are run at
several settings, each with the evaluations that it took.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import planned_for
from eigentime.models import Model, zoo
from eigentime.report.choosing import choosing_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.kept import KeptRows
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import load_results, save_results
from eigentime.samplers import EntropyBounded, Klass, Sampler, Threshold, run
from eigentime.schedules import check_steps
from eigentime.tasks import MODELS

MODELS_SHOWN = tuple(name for name in ("text", "countdown") if name in zoo())
SCHEDULES = ("uniform", "cosine", "eds", "wds", "ods")
SCHEDULED = ("ancestral", "confidence", "margin", "entropy", "remasking")
STEPS = (4, 8, 16)
ADAPTIVE: dict[str, list[Sampler]] = {
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


def reproduce(
    out: Path,
    models: Sequence[str] = MODELS_SHOWN,
    samples: int = 32,
    steps: Sequence[int] = STEPS,
    budget: int = 1024,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Cross samplers with schedules on each model; write MODEL.json of each, and choosing.png of all in `out`."""
    check_figures()
    for number in steps:
        check_steps(number)
    loaded = {name: _masked(name) for name in models}
    content: dict[str, Any] = {}
    for name, model in loaded.items():
        task = MODELS[name]
        data = task.draw(max(64, budget // 4), seed)
        clock = api.measure(model, data, budget=budget, orders=ORDERS, seed=seed, progress=progress)
        out.mkdir(parents=True, exist_ok=True)
        keep = out / f"{name}.partial.json"
        kept = KeptRows(keep, model=name, clock=clock.fingerprint, orders=ORDERS, seed=seed)
        cells = [*_cells(steps, ADAPTIVE.get(task.name, []))]
        with progress_bar(f"Sampling {name}", progress) as advance:
            for done, (label, count, sampler, schedule) in enumerate(cells):
                advance(done, len(cells), label)
                if kept.row(label, count, samples) is not None:
                    continue
                planned = None
                if schedule is not None and count is not None:
                    planned = planned_for(clock, schedule, count, "ancestral", "entropy")
                tokens, info = run(model, planned, num_samples=samples, sampler=sampler, seed=seed)
                kept.add(
                    {
                        "strategy": label,
                        "steps": count,
                        "samples": samples,
                        "sampler": sampler if isinstance(sampler, str) else sampler.name,
                        "schedule": schedule,
                        "nfe": info.nfe,
                        "metrics": {key: vars(value) for key, value in task.metrics(tokens).items()},
                    }
                )
        content[name] = {
            "fidelity": task.fidelity,
            "diversity": task.diversity,
            "real": {key: vars(value) for key, value in task.metrics(task.draw(samples, seed + 2)).items()},
            "rows": [kept.row(label, count, samples) for label, count, _, _ in cells],
        }
        save_results(out / f"{name}.json", content[name], samples=samples, budget=budget, seed=seed)
        keep.unlink(missing_ok=True)
    drawn = {
        name: out / f"{name}.json"
        for name in dict.fromkeys((*MODELS_SHOWN, *models))
        if (out / f"{name}.json").exists()
    }
    save_figure(choosing_figure({name: load_results(path) for name, path in drawn.items()}), out / "choosing.png")
    return content


Cell = tuple[str, int | None, str | Sampler, str | None]


def _cells(steps: Sequence[int], adaptive: Sequence[Sampler]) -> Iterator[Cell]:
    """Label, number of steps, sampler and schedule; adaptive samplers have neither of the two in the middle."""
    for name in SCHEDULED:
        for schedule in SCHEDULES:
            for count in steps:
                yield f"{name} {schedule}", count, name, schedule
    for count in steps:
        yield "plan", count, "ancestral", "plan"
    for sampler in adaptive:
        settings = ", ".join(f"{name} {value:g}" for name, value in vars(sampler).items())
        yield f"{sampler.name} ({settings})", None, sampler, None
    yield "first-hitting", None, "first-hitting", None


def _masked(name: str) -> Model:
    """A bundled model whose tokens can be chosen."""
    task = MODELS.get(name)
    if task is None or task.given:
        raise EigentimeError(f"{name!r} is not a bundled model that generates freely; `eigentime models` lists them.")
    model = api.load(name)
    if not model.process.absorbing:
        raise EigentimeError(f"{name} has no mask: there are no tokens to choose.")
    return model
