"""Curves over time read off a Clock: rates with standard errors, their integrals, and the Wasserstein bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.integrate import cumulative_trapezoid
from scipy.stats import norm

from eigentime.arguments import checked, kind, numbers, one_of, optional
from eigentime.errors import EigentimeError
from eigentime.measure.clock import CLOCK, Clock
from eigentime.measure.costs import RATES
from eigentime.measure.groups import jackknife_curve
from eigentime.pictured import Pictured

Array = Float[np.ndarray, " g"]


@dataclass(frozen=True, repr=False, eq=False)
class Curve(Pictured):
    """A quantity over times with its standard error (jackknife over groups of sequences)."""

    times: Array
    mean: Array
    stderr: Array
    name: str = ""
    """What it is a curve of."""

    def band(self, level: float = 0.95) -> tuple[Array, Array]:
        """Where each value lies, from below and from above: mean ± the normal quantile × standard error."""
        if not 0 < level < 1:
            raise EigentimeError(f"The level of a band lies between 0 and 1, not {level}.")
        width = float(norm.ppf((1 + level) / 2)) * self.stderr
        return self.mean - width, self.mean + width

    def to_pandas(self, level: float = 0.95) -> Any:
        """A pandas DataFrame: time, mean, standard error and the ends of the band."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise EigentimeError("Data frames need pandas: pip install 'eigentime[notebook]'.") from None
        low, high = self.band(level)
        return DataFrame({"time": self.times, "mean": self.mean, "stderr": self.stderr, "low": low, "high": high})

    def __repr__(self) -> str:
        if not len(self.times):
            return "Curve(at no times)"
        peak = int(np.argmax(self.mean))
        return (
            f"Curve({self.name + ', ' if self.name else ''}{len(self.times)} times from {self.times[0]:.3g} to "
            f"{self.times[-1]:.3g}, largest {self.mean[peak]:.4g} ± {self.stderr[peak]:.2g} at {self.times[peak]:.3g})"
        )


def default_times(count: int = 256) -> Array:
    """Midpoints of a uniform grid: no rate is evaluated at the very ends, where it may diverge."""
    return (np.arange(count) + 0.5) / count


TIMES = optional(numbers(0, 1))
RATE = one_of(*RATES)
BOUNDS = ("mobility", "activity", "yoshimura", "practical")


@checked(clock=CLOCK, name=RATE, times=TIMES)
def curve(clock: Clock, name: str, times: Array | None = None) -> Curve:
    """One rate over time: total, adiabatic, nonadiabatic, nonadiabatic_data, activity or mobility."""
    return _with_errors(clock, times, name, lambda rates, _: rates[name])


@checked(clock=CLOCK, name=RATE, times=TIMES)
def cumulative(clock: Clock, name: str, times: Array | None = None) -> Curve:
    """∫_0^t of a rate, in nats or jumps."""
    return _with_errors(clock, times, f"∫ {name}", lambda rates, at: integrate(at, rates[name]))


@checked(clock=CLOCK, bound=one_of(*BOUNDS), times=TIMES)
def wasserstein(clock: Clock, bound: str, times: Array | None = None) -> Curve:
    """An upper bound on W1(p_0, p_t) in Hamming distance; see `wasserstein_bounds` for the names."""
    return _with_errors(clock, times, f"W1, {bound}", lambda rates, at: wasserstein_bounds(at, rates)[bound])


def wasserstein_rate(clock: Clock, times: Array | None = None, gauge: str = "nonadiabatic") -> Curve:
    """√(A·max(H_na, 0)), the paper's Wasserstein rate: what its WDS makes equal at every step. `gauge` is the rate that
    counts as H_na, nonadiabatic or nonadiabatic_data."""
    return _with_errors(clock, times, "Wasserstein rate", lambda rates, at: practical_speed(rates, gauge))


def practical_speed(rates: dict[str, Array], gauge: str = "nonadiabatic") -> Array:
    """√(A·max(H_na, 0)) from rates."""
    return np.asarray(np.sqrt(rates["activity"] * np.maximum(rates[gauge], 0.0)))


@checked(times=numbers(0, 1), rates=kind(dict, "rates by name, such as clock.rates(times)"))
def wasserstein_bounds(times: Array, rates: dict[str, Array]) -> dict[str, Array]:
    """Bounds on W1(p_0, p_t), tightest first, from rates over increasing times.

    mobility   ∫√(M·H_tot); its limit on the absorbing kernel is ∫A, which is W1 itself
    activity   ∫√(A·H_tot/2), infinite on the absorbing kernel
    yoshimura  √(½·∫A·∫H_na)
    practical  ∫√(A·max(H_na, 0)), the paper's surrogate: no bound on the absorbing kernel
    """
    needed = ("total", "activity", "nonadiabatic", "mobility")
    if any(np.shape(rates.get(name, 0.0)) != times.shape for name in needed):
        raise EigentimeError(f"`rates` must hold {', '.join(needed)}, each with one number for every time.")
    total, activity = rates["total"], rates["activity"]
    nonadiabatic = np.maximum(rates["nonadiabatic"], 0.0)
    irreversible = np.isinf(total).all()
    mobility_speed = activity if irreversible else np.sqrt(np.maximum(rates["mobility"] * total, 0.0))
    activity_speed = np.full_like(total, np.inf) if irreversible else np.sqrt(np.maximum(activity * total / 2, 0.0))
    return {
        "mobility": integrate(times, mobility_speed),
        "activity": integrate(times, activity_speed),
        "yoshimura": np.sqrt(integrate(times, activity) * integrate(times, nonadiabatic) / 2),
        "practical": integrate(times, practical_speed(rates)),
    }


def integrate(times: Array, values: Array) -> Array:
    """∫_0^t by the trapezoidal rule; the first interval, from 0 to the first time, takes the first value."""
    if np.isinf(values).any():
        return np.full(len(times), np.inf)
    return np.asarray(cumulative_trapezoid(values, times, initial=0) + values[0] * times[0])


def _with_errors(
    clock: Clock, times: Array | None, name: str, statistic: Callable[[dict[str, Array], Array], Array]
) -> Curve:
    """A function of (rates, times) with its jackknife standard error."""
    if times is None:
        times = default_times() if clock.times is None else np.array(clock.times)
    at = np.asarray(times, dtype=np.float64)
    mean = statistic(clock.rates(at), at)
    stderr = jackknife_curve(lambda part: statistic(part.rates(at), at), clock)
    return Curve(at, mean, np.where(np.isinf(mean) & (clock.groups > 1), 0.0, stderr), name)
