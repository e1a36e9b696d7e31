"""Order matters too: samplers that choose which tokens to reveal, with every schedule and without, at equal NFE.

A schedule gives the number of tokens of a step and the sampler picks them; adaptive samplers choose both and are run at
several settings, each with the evaluations that it took.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import planned_for
from eigentime.report.choosing import choosing_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.kept import KeptRows
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import save_results
from eigentime.samplers import EntropyBounded, Sampler, Stable, Threshold, run
from eigentime.schedules import check_steps
from eigentime.tasks import MODELS

MODELS_SHOWN = ("text", "countdown")
SCHEDULES = ("uniform", "cosine", "eds", "wds", "ods")
SCHEDULED = ("ancestral", "confidence", "margin", "entropy", "remasking")
STEPS = (4, 8, 16, 32)
ADAPTIVE: dict[str, Callable[[], list[Sampler]]] = {
    "entropy-bounded": lambda: [EntropyBounded(bound) for bound in (0.3, 1.0, 3.0, 10.0)],
    "threshold": lambda: [Threshold(confidence) for confidence in (0.3, 0.5, 0.7, 0.9)],
    "klass": lambda: [Stable(confidence, 0.05, 1) for confidence in (0.3, 0.5, 0.7, 0.9)],
}
ORDERS = ["low-discrepancy", "farthest"]


def reproduce(
    out: Path,
    models: Sequence[str] = MODELS_SHOWN,
    samples: int = 64,
    steps: Sequence[int] = STEPS,
    budget: int = 1024,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Cross samplers with schedules on each model; write choosing.json and choosing.png to `out`."""
    check_figures()
    for count in steps:
        check_steps(count)
    content: dict[str, Any] = {}
    for name in models:
        task = MODELS.get(name)
        if task is None or task.given:
            raise EigentimeError(
                f"{name!r} is not a bundled model that generates freely; `eigentime models` lists them."
            )
        model = api.load(name)
        if not model.process.absorbing:
            raise EigentimeError(f"{name} has no mask: there are no tokens to choose.")
        data = task.draw(max(64, budget // 4), seed)
        clock = api.measure(model, data, budget=budget, orders=ORDERS, seed=seed, progress=progress)
        out.mkdir(parents=True, exist_ok=True)
        kept = KeptRows(out / f"{name}.partial.json", model=name, clock=clock.fingerprint, seed=seed)
        cells: list[tuple[str, int, str | Sampler, str | None]] = [
            (f"{sampler} {schedule}", count, sampler, schedule)
            for sampler in SCHEDULED
            for schedule in SCHEDULES
            for count in steps
        ]
        cells += [("plan", count, "ancestral", "plan") for count in steps]
        cells += [(kind, k, sampler, None) for kind, made in ADAPTIVE.items() for k, sampler in enumerate(made())]
        cells.append(("first-hitting", 0, "first-hitting", None))
        with progress_bar(f"Sampling {name}", progress) as advance:
            for done, (label, count, sampler, schedule) in enumerate(cells):
                advance(done, len(cells), label)
                if kept.row(label, count, samples) is not None:
                    continue
                planned = None if schedule is None else planned_for(clock, schedule, count, "ancestral", "entropy")
                tokens, info = run(model, planned, num_samples=samples, sampler=sampler, seed=seed)
                kept.add(_row(label, count, sampler, schedule, samples, info.nfe, tokens, task.metrics))
        content[name] = {
            "fidelity": task.fidelity,
            "diversity": task.diversity,
            "real": {key: vars(value) for key, value in task.metrics(task.draw(samples, seed + 2)).items()},
            "rows": [kept.row(label, count, samples) for label, count, _, _ in cells],
        }
    save_results(out / "choosing.json", content, samples=samples, budget=budget, seed=seed)
    save_figure(choosing_figure(content), out / "choosing.png")
    for name in models:
        (out / f"{name}.partial.json").unlink(missing_ok=True)
    return content


def _row(
    label: str,
    count: int,
    sampler: str | Sampler,
    schedule: str | None,
    samples: int,
    nfe: float,
    tokens: Int[Tensor, "n length"],
    metrics: Callable[[Tensor], dict[str, Any]],
) -> dict[str, Any]:
    own = sampler if isinstance(sampler, str) else sampler.name
    return {
        "strategy": label,
        "steps": count,
        "samples": samples,
        "sampler": own,
        "setting": {} if isinstance(sampler, str) else vars(sampler),
        "schedule": schedule,
        "nfe": nfe,
        "metrics": {name: vars(value) for name, value in metrics(tokens).items()},
    }
