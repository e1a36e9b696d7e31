"""What an absorbing process costs, as one curve: the mean entropy of a masked token when a share of tokens is known.

h_count(m) = mean entropy of a masked token given m revealed ones (the rest masked), and under Bernoulli masks
h(α) = Σ_m Bin(m; L-1, α)·h_count(m). The noise curve drops out: h is measured once and serves every schedule.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression
from scipy.stats import binom

Estimator = Literal["entropy", "cross-entropy"]


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
        return getattr(self, what)[chosen].sum(0) / self.masked[chosen].sum(0)

    def thinned(self) -> "Profile":
        """Without every second inner level: how much that matters tells how good the interpolation is."""
        kept = thinned(len(self.levels))
        sums = {name: getattr(self, name)[:, kept] for name in ("masked", "entropy", "cross", "mass", "raw")}
        return replace(self, levels=self.levels[kept], **sums)


class LevelCurve:
    """A measured average as a function of α, with its integral."""

    def __init__(
        self,
        profile: Profile,
        node_values: Float[np.ndarray, " g"],
    ) -> None:
        self.profile = profile
        if profile.counts:
            shares = np.arange(profile.free) / profile.free
            self._by_count = _interpolate(profile.levels / profile.free, node_values, shares)
        else:
            fine = np.union1d(np.linspace(0, 1, 2049), profile.levels)
            self._alphas, self._values = fine, _interpolate(profile.levels, node_values, fine)
            steps = np.diff(fine) * (self._values[1:] + self._values[:-1]) / 2
            self._integral = np.concatenate([[0.0], np.cumsum(steps)])

    def at(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """h(α) under Bernoulli masks."""
        if not self.profile.counts:
            return np.interp(alpha, self._alphas, self._values)
        count = np.arange(self.profile.free)
        return binom.pmf(count, self.profile.free - 1, np.asarray(alpha)[..., None]) @ self._by_count

    def integral(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """∫_0^α h; over counts ∫_0^α Bin(m; L-1, a) da = P(Bin(L, α) > m)/L exactly."""
        if not self.profile.counts:
            return np.interp(alpha, self._alphas, self._integral)
        count, free = np.arange(self.profile.free), self.profile.free
        return binom.sf(count, free, np.asarray(alpha)[..., None]) @ self._by_count / free

    @property
    def by_count(self) -> Float[np.ndarray, " free"]:
        """h_count(m) for every m = 0 … L-1, for samplers that reveal exact numbers of tokens."""
        if not self.profile.counts:
            return self.at((np.arange(self.profile.free) + 0.5) / self.profile.free)
        return self._by_count


def entropy_curve(
    profile: Profile,
    estimator: Estimator = "entropy",
    blocks: Int[np.ndarray, " n"] | None = None,
    smooth: bool = True,
) -> LevelCurve:
    """h as a curve. `smooth` makes it decrease, as the truth does, by isotonic regression."""
    values = profile.mean("cross" if estimator == "cross-entropy" else "entropy", blocks)
    if smooth:
        chosen = slice(None) if blocks is None else blocks
        weights = profile.masked[chosen].sum(0)
        values = isotonic_regression(values, weights=weights, increasing=False).x
    return LevelCurve(profile, values)


def _interpolate(
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
