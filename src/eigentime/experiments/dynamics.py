"""The paper's dynamics figure: entropy production and transport along the reverse process, one column a modality."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.measure import Clock, cumulative, curve, wasserstein
from eigentime.measure.curves import Curve, default_times, wasserstein_rate
from eigentime.models import zoo
from eigentime.report.dynamics import modalities_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.provenance import save_results

MODELS = ("countdown", "music", "images", "text")
BUDGET, TIMES = 1024, 128


def four_curves(clock: Clock, times: np.ndarray) -> dict[str, Curve]:
    """Rate and amount of the non-adiabatic entropy production and of the paper's Wasserstein surrogate."""
    return {
        "entropy rate": curve(clock, "nonadiabatic", times),
        "cumulative entropy": cumulative(clock, "nonadiabatic", times),
        "Wasserstein rate": wasserstein_rate(clock, times),
        "Wasserstein distance": wasserstein(clock, "practical", times),
    }


def reproduce(
    out: Path, models: Sequence[str] = MODELS, budget: int = BUDGET, seed: int = 0, progress: bool = False
) -> dict[str, Any]:
    """Measure the bundled networks and draw their curves side by side; write results and figure to `out`."""
    check_figures()
    unknown = [name for name in models if name not in zoo()]
    if unknown:
        raise EigentimeError(f"{unknown[0]!r} is not a bundled network; `eigentime models` lists them.")
    out.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {}
    for name in models:
        model = api.load(name)
        clock = api.measure(model, budget=budget, tolerance=0.0, seed=seed, progress=progress)
        curves = four_curves(clock, default_times(TIMES))
        content[name] = {
            "kernel": model.process.kernel.name,
            "evaluations": clock.evaluations,
            "curves": {label: vars(found) for label, found in curves.items()},
        }
    save_results(out / "dynamics.json", content, budget=budget, times=TIMES, seed=seed)
    save_figure(modalities_figure(content), out / "dynamics.png")
    return content
