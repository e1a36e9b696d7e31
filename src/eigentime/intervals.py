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

    Where values are skewed, as costs in nats are, the long tail is on the side where rare large ones would be.
    """
    if not 0 < level < 1:
        raise EigentimeError(f"The level of an interval lies between 0 and 1, not {level}.")
    count, mean = len(values), float(values.mean())
    if count < LEAST or not math.isfinite(mean):
        return -math.inf, math.inf
    spread = float(values.std(ddof=1)) / math.sqrt(count)
    if spread == 0:
        return mean, mean
    chosen = np.random.default_rng(SEED).integers(count, size=(RESAMPLES, count))
    resampled = values[chosen]
    errors = resampled.std(1, ddof=1) / math.sqrt(count)
    alike = errors > 0
    t = (resampled.mean(1)[alike] - mean) / errors[alike]
    low, high = np.quantile(t, [(1 - level) / 2, (1 + level) / 2])
    return mean - float(high) * spread, mean - float(low) * spread


def student_interval(mean: float, stderr: float, degrees: float | None, level: float) -> tuple[float, float]:
    """mean ± t·stderr, with the quantile of Student's t for these degrees of freedom, the normal one for None."""
    if not 0 < level < 1:
        raise EigentimeError(f"The level of an interval lies between 0 and 1, not {level}.")
    share = (1 + level) / 2
    width = float(norm.ppf(share) if degrees is None else student.ppf(share, max(degrees, 1))) * stderr
    return mean - width, mean + width
