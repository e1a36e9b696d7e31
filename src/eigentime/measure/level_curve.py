"""A curve over the share of tokens that are known, from its values at a few levels."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.stats import binom

ANGLES = np.linspace(0, np.pi / 2, 1025)


class LevelCurve:
    """A measured average as a function of α, with its integral, both tabulated over the angle arcsin √α."""

    def __init__(
        self, levels: Float[np.ndarray, " g"], node_values: Float[np.ndarray, " g"], free: int, counts: bool
    ) -> None:
        """With `counts` a level is how many of the `free` tokens are known, else α."""
        shares = np.arange(free) / free
        measured = np.isfinite(node_values)  # a level where no token happened to be masked says nothing
        levels, node_values = levels[measured], node_values[measured]
        if counts:
            self.by_count = interpolate(levels / free, node_values, shares)
            mixing, sums = _binomial_tables(free)
            values, integral = mixing @ self.by_count, sums @ self.by_count
        else:
            self.by_count = interpolate(levels, node_values, shares)
            values = interpolate(levels, node_values, np.sin(ANGLES) ** 2)
            integral = CubicSpline(ANGLES, values * np.sin(2 * ANGLES)).antiderivative()(ANGLES)
        self._both = CubicSpline(ANGLES, np.stack([values, integral], 1))

    by_count: Float[np.ndarray, " free"]
    """h_count(m) for every m = 0 … L-1, for samplers that reveal exact numbers of tokens."""

    def at(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """h(α) under Bernoulli masks."""
        return self._both(np.arcsin(np.sqrt(alpha)))[..., 0]

    def integral(self, alpha: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """∫_0^α h."""
        return self._both(np.arcsin(np.sqrt(alpha)))[..., 1]


@lru_cache(maxsize=4)
def _binomial_tables(free: int) -> tuple[Float[np.ndarray, "angles free"], Float[np.ndarray, "angles free"]]:
    """Bin(m; L-1, α) and ∫_0^α Bin(m; L-1, a) da = P(Bin(L, α) > m)/L at the tabulated angles."""
    alpha, count = (np.sin(ANGLES) ** 2)[:, None], np.arange(free)
    return np.asarray(binom.pmf(count, free - 1, alpha)), np.asarray(binom.sf(count, free, alpha)) / free


def interpolate(
    nodes: Float[np.ndarray, " g"], values: Float[np.ndarray, " g"], at: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Monotone cubic between the nodes, nearest beyond them, in the angle arcsin √share, where h is far from steep."""
    if len(nodes) < 2:
        return np.full(len(at), values[0])
    inside = np.clip(at, nodes[0], nodes[-1])
    return PchipInterpolator(np.arcsin(np.sqrt(nodes)), values)(np.arcsin(np.sqrt(inside)))
