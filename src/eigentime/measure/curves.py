"""Curves over time read off a Clock: rates with standard errors, their integrals, and the Wasserstein bounds."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.integrate import cumulative_trapezoid
from scipy.interpolate import PchipInterpolator

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.excess import angle_of
from eigentime.measure.pairs import RATES, Pairs
from eigentime.measure.profile import LevelCurve, Profile, entropy_curve

Array = Float[np.ndarray, " g"]


@dataclass(frozen=True)
class Curve:
    """A quantity over times with its standard error (jackknife over blocks of sequences)."""

    times: Array
    mean: Array
    stderr: Array


def default_times(count: int = 256) -> Array:
    """Midpoints of a uniform grid: no rate is evaluated at the very ends, where it may diverge."""
    return (np.arange(count) + 0.5) / count


def rates_at(clock: Clock, times: Array, blocks: Int[np.ndarray, " n"] | None = None) -> dict[str, Array]:
    """The rates of `RATES` at any times in (0, 1), from all blocks or some."""
    times = np.asarray(times, dtype=np.float64)
    if isinstance(clock.measured, Profile):
        return _absorbing_rates(clock, clock.measured, times, blocks)
    return _pair_rates(clock, clock.measured, times, blocks)


def _absorbing_rates(
    clock: Clock, profile: Profile, times: Array, blocks: Int[np.ndarray, " n"] | None
) -> dict[str, Array]:
    """L·(-α')·h and, in the bare gauge, L·(-α')·[h + ln((1-α)/α)]; total and adiabatic rates are infinite."""
    alpha = clock.noise.alpha(times).numpy()
    speed = clock.free * clock.noise.beta(times).numpy() * alpha
    mass = LevelCurve(profile, profile.mean("mass", blocks)).at(alpha)
    # a posterior is normalised, so its raw entropy is its entropy, which may be smoothed
    normalised = np.allclose(profile.mass, profile.masked, rtol=1e-4)
    entropy = entropy_curve(profile, "entropy", blocks).at(alpha)
    raw = entropy if normalised else LevelCurve(profile, profile.mean("raw", blocks)).at(alpha)
    with np.errstate(divide="ignore"):
        where = np.log((1 - alpha) / alpha)
    infinite = np.full(len(times), np.inf)
    return {
        "total": infinite,
        "adiabatic": infinite,
        "nonadiabatic": speed * (raw + mass * where),
        "nonadiabatic_data": speed * entropy,
        "activity": speed * mass,
        "mobility": np.zeros(len(times)),
    }


def _pair_rates(clock: Clock, pairs: Pairs, times: Array, blocks: Int[np.ndarray, " n"] | None) -> dict[str, Array]:
    """Interpolated per unit angle, where all rates vanish at the data, then carried back to time."""
    per_angle = pairs.mean("rates", blocks) * 2 * np.tan(pairs.angles)[:, None]
    nodes = np.concatenate([[0.0], pairs.angles])
    angle = angle_of(clock.noise.alpha(times).numpy())
    values = PchipInterpolator(nodes, np.concatenate([np.zeros((1, len(RATES))), per_angle]))(
        np.clip(angle, 0, nodes[-1])
    )
    speed = clock.noise.beta(times).numpy() / (2 * np.tan(np.maximum(angle, 1e-12)))
    return {name: values[:, k] * speed for k, name in enumerate(RATES)}


def curve(clock: Clock, name: str, times: Array | None = None) -> Curve:
    """One rate over time: total, adiabatic, nonadiabatic, nonadiabatic_data, activity or mobility."""
    if name not in RATES:
        raise EigentimeError(f"Unknown rate {name!r}; known are {', '.join(RATES)}.")
    return _with_errors(clock, times, lambda rates, _: rates[name])


def cumulative(clock: Clock, name: str, times: Array | None = None) -> Curve:
    """∫_0^t of a rate, in nats or jumps."""
    if name not in RATES:
        raise EigentimeError(f"Unknown rate {name!r}; known are {', '.join(RATES)}.")
    return _with_errors(clock, times, lambda rates, at: integrate(at, rates[name]))


def wasserstein(clock: Clock, bound: str, times: Array | None = None) -> Curve:
    """An upper bound on W1(p_0, p_t) in Hamming distance; see `wasserstein_bounds` for the names."""
    if bound not in BOUNDS:
        raise EigentimeError(f"Unknown bound {bound!r}; known are {', '.join(BOUNDS)}.")
    return _with_errors(clock, times, lambda rates, at: wasserstein_bounds(at, rates)[bound])


def wasserstein_rate(clock: Clock, times: Array | None = None) -> Curve:
    """√(A·max(H_na, 0)), the paper's Wasserstein rate: what its WDS makes equal at every step."""
    return _with_errors(clock, times, lambda rates, at: practical_speed(rates))


def practical_speed(rates: dict[str, Array]) -> Array:
    """√(A·max(H_na, 0)) from rates."""
    return np.sqrt(rates["activity"] * np.maximum(rates["nonadiabatic"], 0.0))


BOUNDS = ("mobility", "activity", "yoshimura", "practical")


def wasserstein_bounds(times: Array, rates: dict[str, Array]) -> dict[str, Array]:
    """Bounds on W1(p_0, p_t), tightest first, from rates over increasing times.

    mobility   ∫√(M·H_tot); its limit on the absorbing kernel is ∫A, which is W1 itself
    activity   ∫√(A·H_tot/2), infinite on the absorbing kernel
    yoshimura  √(½·∫A·∫H_na)
    practical  ∫√(A·max(H_na, 0)), the paper's surrogate: no bound on the absorbing kernel
    """
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
    return cumulative_trapezoid(values, times, initial=0) + values[0] * times[0]


def _with_errors(clock, times, statistic) -> Curve:  # type: ignore[no-untyped-def]
    """A function of (rates, times) on all blocks, with its jackknife standard error."""
    if times is None:
        times = default_times() if clock.times is None else np.array(clock.times)
    times = np.asarray(times, dtype=np.float64)
    everything = np.arange(clock.measured.blocks)
    mean = statistic(rates_at(clock, times), times)
    if len(everything) < 2:
        return Curve(times, mean, np.full_like(mean, np.inf))
    left_out = np.stack([statistic(rates_at(clock, times, np.delete(everything, b)), times) for b in everything])
    with np.errstate(invalid="ignore"):
        stderr = np.sqrt((len(everything) - 1) * left_out.var(0))
    return Curve(times, mean, np.where(np.isinf(mean), 0.0, stderr))
