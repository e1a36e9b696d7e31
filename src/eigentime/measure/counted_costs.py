"""What steps cost where they reveal exact numbers of masked tokens, from the mean entropies h_count."""

import numpy as np
from jaxtyping import Float, Int

from eigentime.measure.costs import Alphas, StepCosts
from eigentime.measure.level_curve import LevelCurve

Counts = Int[np.ndarray, "..."]


class CountedCosts(StepCosts):
    """Σ_{m=n_t}^{n_s-1} [h_count(n_t) - h_count(m)] for a step from n_t to n_s known tokens, n = round(α·L)."""

    def __init__(self, curve: LevelCurve, free: float) -> None:
        self.curve, self.heights = curve, curve.by_count
        self.reached = np.concatenate([[0.0], np.cumsum(self.heights)])
        self.scale = free / len(self.heights)  # where sequences differ in how many tokens are given

    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        known = self._known(alphas)
        return self._cost(known[:-1], known[1:])

    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        known = self._known(alphas)
        return self._cost(known[:, None], known[None, :])

    def curvature(self, alpha: Alphas) -> Alphas:
        below, above = np.clip(alpha - 1e-4, 0, 1), np.clip(alpha + 1e-4, 0, 1)
        fall = np.maximum(self.curve.at(below) - self.curve.at(above), 0.0)
        return np.asarray(self.scale * len(self.heights) * fall / (above - below))

    def _known(self, alphas: Alphas) -> Counts:
        return np.round(alphas * len(self.heights)).astype(int)

    def _cost(self, before: Counts, after: Counts) -> Alphas:
        height = self.heights[np.minimum(before, len(self.heights) - 1)]
        return np.asarray(self.scale * ((after - before) * height - (self.reached[after] - self.reached[before])))
