"""Schedules of equal progress (EDS, WDS of the paper; √κ): t_k = Φ⁻¹(1 - k/K) with Φ(t) = ∫_0^t ρ / ∫_0^1 ρ."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.costs import Estimator
from eigentime.measure.curves import integrate
from eigentime.process.laws import Law

Array = Float[np.ndarray, " k"]
TIE_BREAK = 1e-9
"""Slope added to Φ, so that it can be inverted where the density vanishes."""


Density = Callable[[Clock, Array, Estimator], Array]
"""Progress per unit time at some times."""


def entropy(gauge: str) -> Density:
    """EDS: ρ = max(H_na, 0)."""
    return lambda clock, times, estimator: np.maximum(clock.rates(times)[gauge], 0.0)


def transport(gauge: str) -> Density:
    """WDS: ρ = √(A·max(H_na, 0))."""

    def density(clock: Clock, times: Array, estimator: Estimator) -> Array:
        rates = clock.rates(times)
        return np.asarray(np.sqrt(rates["activity"] * np.maximum(rates[gauge], 0.0)))

    return density


def curvature(clock: Clock, times: Array, estimator: Estimator) -> Array:
    """√κ·|α'|, κ = -L·h' on the absorbing kernel: the limit of ODS for many steps."""
    alpha = clock.noise.alpha(times).numpy()
    return np.asarray(
        np.sqrt(clock.costs(estimator=estimator).curvature(alpha)) * clock.noise.beta(times).numpy() * alpha
    )


DENSITIES: dict[str, Density] = {
    "eds": entropy("nonadiabatic"),
    "wds": transport("nonadiabatic"),
    "eds-data": entropy("nonadiabatic_data"),
    "wds-data": transport("nonadiabatic_data"),
    "sqrt-slope": curvature,
}
"""What equal steps are made of, by the strategy's name."""
_densities: WeakKeyDictionary[Clock, dict[tuple[str, Estimator], tuple[Array, Array]]] = WeakKeyDictionary()
"""Times and densities, which no number of steps changes, for as long as their clocks live."""


def equal_times(strategy: str, clock: Clock, steps: int, law: Law, estimator: Estimator) -> Array:
    """Equal steps of the progress that `strategy` names; samplers' laws do not change it."""
    kept = _densities.setdefault(clock, {})
    if (strategy, estimator) not in kept:
        times = _fine_times(clock)
        kept[strategy, estimator] = times, DENSITIES[strategy](clock, times, estimator)
    return equal_progress(*kept[strategy, estimator], steps, strategy)


def equal_progress(times: Array, density: Array, steps: int, what: str) -> Float[np.ndarray, " nodes"]:
    """Times at which equal shares of ∫density have been made, from noise to data."""
    if not np.all(np.isfinite(density)) or density.max() <= 0:
        raise EigentimeError(f"The density of {what!r} vanishes or is not finite, so it cannot space any steps.")
    progress = integrate(times, density)
    progress = progress / progress[-1] + TIE_BREAK * times
    inner = np.interp(np.arange(steps - 1, 0, -1) / steps * progress[-1], progress, times)
    return np.concatenate([[1.0], inner, [0.0]])


def _fine_times(clock: Clock) -> Array:
    """A grid fine both in time and in angle, without the ends where rates may diverge."""
    angles = np.linspace(0, np.pi / 2, 2050)[1:-1]
    by_angle = clock.noise.time_of_alpha(np.cos(angles) ** 2).numpy()
    times = np.union1d(by_angle, (np.arange(2048) + 0.5) / 2048)
    return times[(times > 1e-6) & (times <= 1 - 1e-9)]
