"""Schedules of equal progress (EDS, WDS of the paper; √κ): t_k = Φ⁻¹(1 - k/K) with Φ(t) = ∫_0^t ρ / ∫_0^1 ρ."""

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.curves import integrate, rates_at
from eigentime.measure.excess import excess
from eigentime.measure.profile import Estimator

Array = Float[np.ndarray, " k"]
TIE_BREAK = 1e-9
"""Slope added to Φ, so that it can be inverted where the density vanishes."""


def progress_times(
    clock: Clock,
    strategy: str,
    steps: int,
    estimator: Estimator = "entropy",
    blocks: Int[np.ndarray, " n"] | None = None,
) -> Array:
    """Equal steps of the progress that `strategy` names.

    eds  ρ = max(H_na, 0)      wds  ρ = √(A·max(H_na, 0))      (-data: in the data gauge)
    sqrt-slope  ρ = √κ·|α'|, κ = -L·h' on the absorbing kernel: the limit of ODS for many steps
    """
    times = _fine_times(clock)
    if strategy == "sqrt-slope":
        alpha = clock.noise.alpha(times).numpy()
        curvature = excess(clock, estimator=estimator, blocks=blocks).curvature(alpha)
        density = np.sqrt(curvature) * clock.noise.beta(times).numpy() * alpha
    else:
        rates = rates_at(clock, times, blocks)
        entropy = np.maximum(rates["nonadiabatic_data" if strategy.endswith("-data") else "nonadiabatic"], 0.0)
        density = entropy if strategy.startswith("eds") else np.sqrt(rates["activity"] * entropy)
    return equal_progress(times, density, steps, strategy)


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
