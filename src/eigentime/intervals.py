"""Means over sequences with intervals that hold for skewed values too, and differences paired by sequence.

Costs in nats are skewed: most sequences are cheap and a few are dear. A sample without the dear ones has too low a mean
and, what is worse, too small a spread, so that mean ± 2 standard errors misses more often than it says, always on the
low side. The bootstrap of Student's t sees the skew in the sample itself and puts the longer arm where it belongs.
"""

import math
import warnings
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy.stats import norm
from scipy.stats import t as student

from eigentime.arguments import number
from eigentime.errors import EigentimeError

RESAMPLES = 2000
LEVEL = number(above=0, below=1)
LEAST = 8
"""Fewer values say too little of how they spread: their interval is everything."""
PART = 2**22
"""Numbers that are resampled at a time, about."""
SEED = 20_260_000
HEAVY = 0.4
"""Of how often a number may lie above its interval, the share that quantiles are taken for where tails are heavy:
misses are all on that side, and this brings them back to what they should be (results/coverage/clocks.json)."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        return f"PerSequence({self}, {len(self.values)} sequences)"

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.stderr:.2g}"


@dataclass(frozen=True)
class GroupValues:
    """What each group of sequences says of a number, from which its interval and paired differences are made."""

    values: tuple[float, ...]
    """One for each group; their mean is the number itself."""
    gap: float = 0.0
    """About how far interpolating between measured levels has moved it."""
    source: str = ""
    """Which clock and which of its passes the groups are of: only groups of one pass are pairs."""
    chosen: float = 0.0
    """Where the sequences chose what is judged: how much more the choices of a part of them cost the others (what the
    number says) than the choice of all costs themselves. The truth of that choice lies between."""
    heavy: bool = False
    """Whether costs have a tail that few sequences hardly show, as those of kernels without a mask."""

    @property
    def spread(self) -> float:
        """The standard error of the mean over groups, joined with the gap."""
        return math.hypot(PerSequence(np.array(self.values)).stderr, self.gap)

    def interval(self, mean: float, level: float) -> tuple[float, float]:
        """Where the number lies, by the bootstrap of Student's t over groups; infinite where they are too few."""
        values = np.array(self.values)
        low, high = t_quantiles(values, level)
        if self.heavy:
            low = min(low, t_quantiles(values, 1 - HEAVY * (1 - level))[0])
        if not math.isfinite(low) or not math.isfinite(high):
            warnings.warn(
                f"The interval is open: {len(self.values)} groups of sequences are too few, or their tail too heavy, "
                "to say where it ends. Measure more sequences (a larger budget).",
                stacklevel=3,
            )
        return _ends(mean, math.hypot(self.spread, self.chosen), low, high)

    def __sub__(self, other: "GroupValues") -> "GroupValues":
        if not self.source or self.source != other.source or len(self.values) != len(other.values):
            raise EigentimeError(
                "A difference is paired by sequence: both must come from the same pass of the same clock "
                "(et.nll_bound judges schedules and plans of a clock with orders on the same sequences)."
            )
        values = np.array(self.values) - np.array(other.values)
        chosen, heavy = self.chosen - other.chosen, self.heavy or other.heavy
        return GroupValues(tuple(values.tolist()), math.hypot(self.gap, other.gap), self.source, chosen, heavy)


@dataclass(frozen=True)
class Difference:
    """How much more nats one way of sampling costs than another, both measured on the same sequences."""

    mean: float
    stderr: float
    """What the sequences have in common has dropped out."""
    groups: GroupValues = field(repr=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the true difference lies, by the bootstrap of Student's t over groups of sequences."""
        return self.groups.interval(self.mean, level)

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.stderr:.2g} nats"


class Measured(Protocol):
    """A number with what each group of sequences says of it."""

    @property
    def mean(self) -> float:
        """The number."""

    @property
    def groups(self) -> GroupValues | None:
        """None where it was not measured in groups."""


def paired(one: Measured, other: Measured) -> Difference:
    """one - other, paired by group of sequences."""
    if one.groups is None or other.groups is None:
        raise EigentimeError("A difference is paired by sequence: one of these numbers was not measured on sequences.")
    groups = one.groups - other.groups
    return Difference(one.mean - other.mean, groups.spread, groups)


def bootstrap_t(values: Float[np.ndarray, " n"], level: float = 0.95) -> tuple[float, float]:
    """An interval for the mean: quantiles of (mean* - mean)/stderr* over resamples, in place of Student's.

    Where values are skewed, as costs in nats are, the long tail is on the side where rare large ones would be. Where
    so few values differ that resamples often miss them, that side is infinite: there are too few sequences to tell.
    """
    low, high = t_quantiles(values, level)
    return _ends(float(values.mean()), PerSequence(values).stderr, low, high)


def t_quantiles(values: Float[np.ndarray, " n"], level: float) -> tuple[float, float]:
    """The quantiles of (mean* - mean)/stderr* that leave (1 - level)/2 below and above, infinite where unknown."""
    level = LEVEL(level, "The level of an interval")
    if len(values) < LEAST or not np.isfinite(values).all():
        return -math.inf, math.inf
    if values.std() <= 1e-12 * np.abs(values).max():
        share = float(norm.ppf((1 + level) / 2))
        return -share, share
    t = np.concatenate([_resampled_t(values, rng) for rng in _streams(len(values))])
    low = np.quantile(t, (1 - level) / 2, method="lower")
    high = np.quantile(t, (1 + level) / 2, method="higher")
    return float(low), float(high)


def _ends(mean: float, stderr: float, low: float, high: float) -> tuple[float, float]:
    """mean - t·stderr at both quantiles of t."""
    if not math.isfinite(mean):
        return -math.inf, math.inf
    below = -math.inf if high == math.inf else mean - high * stderr
    return below, math.inf if low == -math.inf else mean - low * stderr


def _streams(count: int) -> list[np.random.Generator]:
    """One for every part of the resamples, so many that a part is not large."""
    parts = max(1, RESAMPLES * count // PART)
    return [np.random.default_rng([SEED, part]) for part in range(parts)]


def _resampled_t(values: Float[np.ndarray, " n"], rng: np.random.Generator) -> Float[np.ndarray, " resamples"]:
    """(mean* - mean)/stderr*, infinite where a resample holds equal values only: it lacks the rare ones."""
    count = len(values)
    number = -(-RESAMPLES // len(_streams(count)))
    resampled = values[rng.integers(count, size=(number, count))]
    errors = resampled.std(1, ddof=1) / math.sqrt(count)
    errors[errors <= 1e-12 * np.abs(values).max()] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (resampled.mean(1) - values.mean()) / errors
    return np.asarray(np.nan_to_num(t, nan=0.0, posinf=np.inf, neginf=-np.inf))


def student_interval(mean: float, stderr: float, degrees: float | None, level: float) -> tuple[float, float]:
    """mean ± t·stderr, with the quantile of Student's t for these degrees of freedom, the normal one for None."""
    level = LEVEL(level, "The level of an interval")
    share = (1 + level) / 2
    width = float(norm.ppf(share) if degrees is None else student.ppf(share, max(degrees, 1))) * stderr
    return mean - width, mean + width
