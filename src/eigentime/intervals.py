"""Means over sequences with intervals that hold for skewed values too, and differences paired by sequence."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import norm
from scipy.stats import t as student

from eigentime.errors import EigentimeError

RESAMPLES = 2000
LEAST = 8
"""Fewer values say too little of how they spread: their interval is everything."""
PART = 2**22
"""Numbers that are resampled at a time, about."""
SEED = 20_260_000


@dataclass(frozen=True, eq=False)
class PerSequence:
    """A number for each sequence, and what is known of their mean.

    Differences of two that were measured on the same sequences are paired: what the sequences have in common drops out.
    """

    values: Float[np.ndarray, " n"]

    @property
    def mean(self) -> float:
        """Over the sequences."""
        return float(self.values.mean())

    @property
    def stderr(self) -> float:
        """Of the mean."""
        if len(self.values) < 2 or not np.isfinite(self.values).all():
            return math.inf
        return float(self.values.std(ddof=1) / math.sqrt(len(self.values)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the true mean lies, by the bootstrap of Student's t."""
        return bootstrap_t(self.values, level)

    def __sub__(self, other: "PerSequence") -> "PerSequence":
        if len(self.values) != len(other.values):
            raise EigentimeError("A difference is paired by sequence: both must be measured on the same ones.")
        return PerSequence(self.values - other.values)

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.stderr:.2g}"


def bootstrap_t(values: Float[np.ndarray, " n"], level: float = 0.95) -> tuple[float, float]:
    """An interval for the mean: quantiles of (mean* - mean)/stderr* over resamples, in place of Student's.

    Where values are skewed, as costs in nats are, the long tail is on the side where rare large ones would be. Where
    so few values differ that resamples often miss them, that side is infinite: there are too few sequences to tell.
    """
    if not 0 < level < 1:
        raise EigentimeError(f"The level of an interval lies between 0 and 1, not {level}.")
    count, mean = len(values), float(values.mean())
    if count < LEAST or not math.isfinite(mean):
        return -math.inf, math.inf
    spread = float(values.std(ddof=1)) / math.sqrt(count)
    if spread == 0:
        return mean, mean
    t = np.concatenate([_resampled_t(values, mean, rng) for rng in _streams(count)])
    low = np.quantile(t, (1 - level) / 2, method="lower")
    high = np.quantile(t, (1 + level) / 2, method="higher")
    return mean - float(high) * spread, mean - float(low) * spread


def _streams(count: int) -> list[np.random.Generator]:
    """One for every part of the resamples, so many that a part is not large."""
    parts = max(1, RESAMPLES * count // PART)
    return [np.random.default_rng([SEED, part]) for part in range(parts)]


def _resampled_t(
    values: Float[np.ndarray, " n"], mean: float, rng: np.random.Generator
) -> Float[np.ndarray, " resamples"]:
    """(mean* - mean)/stderr*, infinite where a resample holds equal values only: it lacks the rare ones."""
    count = len(values)
    number = -(-RESAMPLES // len(_streams(count)))
    resampled = values[rng.integers(count, size=(number, count))]
    errors = resampled.std(1, ddof=1) / math.sqrt(count)
    errors[errors <= 1e-12 * np.abs(values).max()] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num((resampled.mean(1) - mean) / errors, nan=0.0, posinf=np.inf, neginf=-np.inf))


def student_interval(mean: float, stderr: float, degrees: float | None, level: float) -> tuple[float, float]:
    """mean ± t·stderr, with the quantile of Student's t for these degrees of freedom, the normal one for None."""
    if not 0 < level < 1:
        raise EigentimeError(f"The level of an interval lies between 0 and 1, not {level}.")
    share = (1 + level) / 2
    width = float(norm.ppf(share) if degrees is None else student.ppf(share, max(degrees, 1))) * stderr
    return mean - width, mean + width
