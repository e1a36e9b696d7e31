"""Every strategy by name: from a clock and a number of steps to times. A new one is a function and one line here."""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.profile import Estimator
from eigentime.process import Noise
from eigentime.process.laws import Law
from eigentime.schedules.fixed import cosine_times, fisher_rao_times, uniform_times
from eigentime.schedules.optimal import optimal_times
from eigentime.schedules.progress import PROGRESS, progress_times

Times = Float[np.ndarray, " k"]
Blocks = Int[np.ndarray, " n"] | None
Chooser = Callable[[Clock, int, Law, Estimator, Blocks], Times]
"""Times for so many steps of a sampler with this token law, from all blocks of the clock or some."""


def _progress(name: str, clock: Clock, steps: int, law: Law, estimator: Estimator, blocks: Blocks) -> Times:
    return progress_times(clock, name, steps, estimator, blocks)


FIXED: dict[str, Callable[[int, Noise], Times]] = {
    "uniform": uniform_times,
    "cosine": cosine_times,
    "fisher-rao": fisher_rao_times,
}
"""Strategies that need no measurement."""
MEASURED: dict[str, Chooser] = {name: partial(_progress, name) for name in PROGRESS} | {"ods": optimal_times}
"""Strategies that a clock chooses by."""
STRATEGIES = (*FIXED, *MEASURED, "jys")


def check_strategy(strategy: str) -> None:
    """Refuse a name that is no strategy."""
    known = (*FIXED, *MEASURED, "jys")
    if strategy not in known:
        raise EigentimeError(f"Unknown strategy {strategy!r}; known are {', '.join(known)}.")


def fixed_times(strategy: str, steps: int, noise: Noise) -> Times:
    """Times of a strategy that needs no measurement."""
    return FIXED[strategy](steps, noise)


def measured_times(
    clock: Clock,
    strategy: str,
    steps: int,
    law: Law = "exact",
    estimator: Estimator = "entropy",
    blocks: Blocks = None,
) -> Times:
    """Times of a strategy that a clock chooses, from all of its blocks or some."""
    return MEASURED[strategy](clock, steps, law, estimator, blocks)
