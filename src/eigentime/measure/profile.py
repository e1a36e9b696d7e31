"""What an absorbing process costs, as one curve: the mean entropy of a masked token when a share of tokens is known.

h_count(m) = mean entropy of a masked token given m revealed ones (the rest masked), and under Bernoulli masks
h(α) = Σ_m Bin(m; L-1, α)·h_count(m). The noise curve drops out: h is measured once and serves every schedule.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.optimize import isotonic_regression
from scipy.stats import binom

from eigentime.measure.blocks import check_levels, check_sums

Estimator = Literal["entropy", "cross-entropy"]
ANGLES = np.linspace(0, np.pi / 2, 1025)


@dataclass(frozen=True)
class Profile:
    """Block sums over sequences (b) at measured levels (g), absorbing kernel.

    With `counts`, level m means exactly m free tokens revealed; otherwise levels are α of Bernoulli masks.
    """

    levels: Float[np.ndarray, " g"]
    counts: bool
    free: int
    """L, how many tokens of a sequence are free (not given)."""
    masked: Float[np.ndarray, "b g"]
    """How many masked tokens were looked at."""
    entropy: Float[np.ndarray, "b g"]
    """Σ over them of H(q), q normalised."""
    cross: Float[np.ndarray, "b g"]
    """Σ of -ln q(x0), the same on average where the model is calibrated."""
    mass: Float[np.ndarray, "b g"]
    """Σ of Σ_y q_y before normalising: 1 a token for posteriors, what a score network makes of it otherwise."""
    raw: Float[np.ndarray, "b g"]
    """Σ of -Σ_y q_y ln q_y before normalising."""

    @property
    def blocks(self) -> int:
        """How many jackknife blocks there are."""
        return len(self.masked)

    def mean(self, what: str, blocks: Int[np.ndarray, " n"] | None = None) -> Float[np.ndarray, " g"]:
        """A masked token's average of one of the sums at every level, from all blocks or some."""
        chosen = slice(None) if blocks is None else blocks
        masked = self.masked[chosen].sum(0)
        return np.divide(getattr(self, what)[chosen].sum(0), masked, out=np.full(len(masked), np.nan), where=masked > 0)

    def check(self) -> None:
        """Refuse what no measurement gives."""
        check_levels(self.levels, self.free - 1 if self.counts else 1.0)
        check_sums(self, finite=["raw"], positive=["masked", "entropy", "mass"], numbers=["cross"])

    @property
    def complete(self) -> bool:
        """Whether every possible count was measured, so that nothing is interpolated."""
        return self.counts and len(self.levels) == self.free

    def thinned(self) -> "Profile":
        """Without every second inner level: how much that matters tells how good the interpolation is."""
        kept = thinned(len(self.levels))
        sums = {name: getattr(self, name)[:, kept] for name in ("masked", "entropy", "cross", "mass", "raw")}
        return replace(self, levels=self.levels[kept], **sums)


class LevelCurve:
    """A measured average as a function of α, with its integral, both tabulated over the angle arcsin √α."""

    def __init__(self, profile: Profile, node_values: Float[np.ndarray, " g"]) -> None:
        shares = np.arange(profile.free) / profile.free
        measured = np.isfinite(node_values)  # a level where no token happened to be masked says nothing
        levels, node_values = profile.levels[measured], node_values[measured]
        if profile.counts:
            self.by_count = interpolate(levels / profile.free, node_values, shares)
            mixing, sums = _binomial_tables(profile.free)
            values, integral = mixing @ self.by_count, sums @ self.by_count
        else:
            self.by_count = interpolate(levels, node_values, shares)
            values = interpolate(levels, node_values, np.sin(ANGLES) ** 2)
            integral = CubicSpline(ANGLES, values * np.sin(2 * ANGLES)).antiderivative()(ANGLES)
        self._values, self._integral = CubicSpline(ANGLES, values), CubicSpline(ANGLES, integral)

    by_count: Float[np.ndarray, " free"]
    """h_count(m) for every m = 0 … L-1, for samplers that reveal exact numbers of tokens."""

    def at(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """h(α) under Bernoulli masks."""
        return self._values(np.arcsin(np.sqrt(alpha)))

    def integral(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """∫_0^α h."""
        return self._integral(np.arcsin(np.sqrt(alpha)))


@lru_cache(maxsize=4)
def _binomial_tables(free: int) -> tuple[Float[np.ndarray, "angles free"], Float[np.ndarray, "angles free"]]:
    """Bin(m; L-1, α) and ∫_0^α Bin(m; L-1, a) da = P(Bin(L, α) > m)/L at the tabulated angles."""
    alpha, count = (np.sin(ANGLES) ** 2)[:, None], np.arange(free)
    return np.asarray(binom.pmf(count, free - 1, alpha)), np.asarray(binom.sf(count, free, alpha)) / free


def entropy_curve(
    profile: Profile,
    estimator: Estimator = "entropy",
    blocks: Int[np.ndarray, " n"] | None = None,
    smooth: bool = True,
) -> LevelCurve:
    """h as a curve. `smooth` makes it decrease, as the truth does, by isotonic regression."""
    values = profile.mean("cross" if estimator == "cross-entropy" else "entropy", blocks)
    if smooth:
        weights = profile.masked[slice(None) if blocks is None else blocks].sum(0)
        known = weights > 0
        values[known] = isotonic_regression(values[known], weights=weights[known], increasing=False).x
    return LevelCurve(profile, values)


def interpolate(
    nodes: Float[np.ndarray, " g"], values: Float[np.ndarray, " g"], at: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Monotone cubic between the nodes, nearest beyond them, in the angle arcsin √share, where h is far from steep."""
    if len(nodes) < 2:
        return np.full(len(at), values[0])
    inside = np.clip(at, nodes[0], nodes[-1])
    return PchipInterpolator(np.arcsin(np.sqrt(nodes)), values)(np.arcsin(np.sqrt(inside)))


def thinned(count: int) -> Int[np.ndarray, " n"]:
    """Indices of every second of `count` levels, always with the first and the last."""
    return np.union1d(np.arange(0, count, 2), [count - 1])
