"""Every strategy by name: from a clock and a number of steps to times. A new one is a function and one line here."""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float

from eigentime.arguments import shown
from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.costs import Estimator
from eigentime.process import Noise
from eigentime.process.laws import Law
from eigentime.schedules.densities import DENSITIES, equal_times
from eigentime.schedules.optimal import optimal_times
from eigentime.schedules.unmeasured import cosine_times, fisher_rao_times, uniform_times

Times = Float[np.ndarray, " k"]
Chooser = Callable[[Clock, int, Law, Estimator], Times]
"""Times for so many steps of a sampler with this token law."""

UNMEASURED: dict[str, Callable[[int, Noise], Times]] = {
    "uniform": uniform_times,
    "cosine": cosine_times,
    "fisher-rao": fisher_rao_times,
}
"""Strategies that need no measurement."""
MEASURED: dict[str, Chooser] = {name: partial(equal_times, name) for name in DENSITIES} | {"ods": optimal_times}
"""Strategies that a clock chooses by."""
STRATEGIES = (*UNMEASURED, *MEASURED, "jys")


def check_strategy(strategy: str) -> None:
    """Refuse a name that is no strategy."""
    known = (*UNMEASURED, *MEASURED, "jys")
    if not isinstance(strategy, str) or strategy not in known:
        raise EigentimeError(f"Unknown strategy {shown(strategy)}; known are {', '.join(known)}.")


def unmeasured_times(strategy: str, steps: int, noise: Noise) -> Times:
    """Times of a strategy that needs no measurement."""
    return UNMEASURED[strategy](steps, noise)


def measured_times(
    clock: Clock, strategy: str, steps: int, law: Law = "exact", estimator: Estimator = "entropy"
) -> Times:
    """Times of a strategy that a clock chooses."""
    return MEASURED[strategy](clock, steps, law, estimator)
