"""What steps cost on kernels without a mask, interpolated between the pairs of angles that were measured."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline, PchipInterpolator, RegularGridInterpolator

from eigentime.measure.costs import Alphas, StepCosts, angle_of

FINE = 1 - np.linspace(0, 1, 401)[::-1] ** 2
"""Where the integrand is tabulated over ρ: dense near ρ = 1, where short steps live."""
STEP_SHARES = np.linspace(0, 1, 13)[1:] ** 2
"""Steps are tabulated by the share v = 1 - θ_s/θ_t of the way to the data that they take."""


class AngleCosts:
    """TC(x_s | x_t), plus what another token law adds, as a function of the two angles."""

    def __init__(
        self,
        nodes: Float[np.ndarray, " n"],
        divergence: Float[np.ndarray, "n n"],
        added: Float[np.ndarray, "n v"] | None = None,
    ) -> None:
        """From the integrand between nodes, and what another token law adds at every step share."""
        excess = _total_correlation(nodes, divergence * 2 * np.tan(nodes)[:, None])
        if added is not None:
            excess[:, :-1] += added[:, :-1]  # the step to the data is always the exact denoising draw
        scaled = excess / STEP_SHARES**2
        scaled = np.concatenate([scaled[:, :1], scaled], axis=1)
        self._infinite = _surface(nodes, np.isinf(scaled).astype(float))
        self._scaled = _surface(nodes, np.where(np.isinf(scaled), 0.0, scaled))

    def __call__(
        self, angle_t: Float[np.ndarray, "..."], angle_s: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """Nats that the steps from angle_t to angle_s cost."""
        share = np.clip(1 - angle_s / np.maximum(angle_t, 1e-300), 0.0, 1.0)
        points = np.stack(np.broadcast_arrays(angle_t, share), axis=-1)
        points[..., 0] = np.clip(points[..., 0], 0.0, self._scaled.grid[0][-1])
        excess = self._scaled(points) * share**2
        return np.where(self._infinite(points) > 1e-9, np.inf, excess)

    def curvature(self, angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """κ(θ) with TC ≈ ½κ·(θ_t - θ_s)² for short steps."""
        angle = np.maximum(angle, 1e-9)
        small = STEP_SHARES[1]
        return np.asarray(2 * self(angle, angle * (1 - small)) / (angle * small) ** 2)


class PairCosts(StepCosts):
    """Interpolated costs of kernels without a mask, in α instead of angles."""

    def __init__(self, between: AngleCosts, at_start: float) -> None:
        self.between, self.at_start = between, at_start

    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        angles = angle_of(alphas)
        return self.between(angles[:-1], angles[1:])

    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        angles = angle_of(alphas)
        first, second = np.triu_indices(len(alphas), 1)
        costs = np.full((len(alphas), len(alphas)), np.inf)
        costs[first, second] = self.between(angles[first], angles[second])
        return costs

    def curvature(self, alpha: Alphas) -> Alphas:
        per_angle = np.maximum(self.between.curvature(angle_of(alpha)), 0.0)
        return np.asarray(per_angle / np.maximum(4 * alpha * (1 - alpha), 1e-12))  # (dθ/dα)² = 1/(4α(1-α))


def _total_correlation(
    nodes: Float[np.ndarray, " n"], divergence: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n v"]:
    """∫ of the divergence from θ_s to θ_t for every node θ_t and step share.

    The divergence falls linearly to 0 at θ' = θ_t and vanishes at the data, so k = divergence/(θ_t - θ') is
    interpolated over ρ = θ'/θ_t, its value at ρ = 1 extrapolated, and TC = θ_t² ∫_{1-v}^1 k·(1-ρ) dρ.
    """
    weights = _step_weights()
    total = np.zeros((len(nodes), len(STEP_SHARES)))
    for j, angle in enumerate(nodes):
        before = nodes[:j]
        slopes = divergence[:j, j] / (angle - before)
        ends = _at_one(before / angle, slopes) if j else _first_slope(nodes, divergence)
        rho, values = np.concatenate([[0.0], before / angle, [1.0]]), np.concatenate([[0.0], slopes, [ends]])
        total[j] = angle**2 * (weights @ PchipInterpolator(rho, values)(FINE))
    return total


@lru_cache(maxsize=1)
def _step_weights() -> Float[np.ndarray, "v fine"]:
    """Weights of k at `FINE` whose sums are ∫_{1-v}^1 k·(1-ρ) dρ for every step share v, by cubic splines."""
    integral = CubicSpline(FINE, np.diag(1 - FINE)).antiderivative()
    return integral(1.0) - integral(1 - STEP_SHARES)


def _at_one(rho: Float[np.ndarray, " n"], slopes: Float[np.ndarray, " n"]) -> float:
    """k at ρ = 1, on the line through its last two values (the first of them may be the 0 at the data)."""
    rho, slopes = np.concatenate([[0.0], rho]), np.concatenate([[0.0], slopes])
    rise = (slopes[-1] - slopes[-2]) / (rho[-1] - rho[-2])
    return float(max(slopes[-1] + rise * (1 - rho[-1]), 0.0))


def _first_slope(nodes: Float[np.ndarray, " n"], divergence: Float[np.ndarray, "n n"]) -> float:
    """k on the diagonal of the first node, which has none before it: that of the second, in proportion to its angle."""
    return divergence[0, 1] / (nodes[1] - nodes[0]) if len(nodes) > 1 else 0.0


def _surface(nodes: Float[np.ndarray, " n"], values: Float[np.ndarray, "n v"]) -> RegularGridInterpolator:
    """A function of (angle, share) on [0, θ(1)] × [0, 1], zero at the data."""
    shares = np.concatenate([[0.0], STEP_SHARES])
    grid = np.concatenate([[0.0], nodes])
    return RegularGridInterpolator((grid, shares), np.concatenate([np.zeros((1, len(shares))), values]))
