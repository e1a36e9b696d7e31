"""Every strategy by name: from a clock and a number of steps to times."""

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.profile import Estimator
from eigentime.process import Noise
from eigentime.process.laws import Law
from eigentime.schedules.fixed import cosine_times, fisher_rao_times, uniform_times
from eigentime.schedules.optimal import optimal_alphas
from eigentime.schedules.progress import progress_times

FIXED = ("uniform", "cosine", "fisher-rao")
MEASURED = ("eds", "wds", "eds-data", "wds-data", "sqrt-slope", "ods")
STRATEGIES = (*FIXED, *MEASURED, "jys")


def check_strategy(strategy: str) -> None:
    """Refuse a name that is no strategy."""
    if strategy not in STRATEGIES:
        raise EigentimeError(f"Unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}.")


def fixed_times(strategy: str, steps: int, noise: Noise) -> Float[np.ndarray, " k"]:
    """Times of a strategy that needs no measurement."""
    if strategy == "uniform":
        return uniform_times(steps)
    return (cosine_times if strategy == "cosine" else fisher_rao_times)(steps, noise)


def measured_times(
    clock: Clock,
    strategy: str,
    steps: int,
    law: Law = "exact",
    estimator: Estimator = "entropy",
    blocks: Int[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, " k"]:
    """Times of a strategy that a clock chooses, from all of its blocks or some."""
    if strategy != "ods":
        return progress_times(clock, strategy, steps, estimator, blocks)
    alphas = optimal_alphas(clock, steps, law, estimator, blocks)
    return np.concatenate([[1.0], clock.noise.time_of_alpha(alphas[1:-1]).numpy(), [0.0]])
