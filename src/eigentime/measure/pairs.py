"""What a step costs on kernels without a mask: the excess of a step from any α_t to any α_s.

One evaluation at x_t gives P(x_s,i | x_t) for every s < t analytically. The steps are laid out in the angle
θ = arccos √α (data at 0, noise at π/2), as a node θ_t and the share v = 1 - θ_s/θ_t of the way that the step takes.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import CubicSpline, RegularGridInterpolator

from eigentime.measure.profile import Estimator, thinned
from eigentime.process.laws import Law

STEP_SHARES = np.linspace(0, 1, 21)[1:] ** 2
RATES = ("total", "adiabatic", "nonadiabatic", "nonadiabatic_data", "activity", "mobility")


@dataclass(frozen=True)
class Pairs:
    """Block sums over sequences (b) at measured angles (g) and step shares (v).

    Costs are sums over a sequence's free tokens; slopes and rates are divided by β, so that they belong to σ, not t.
    """

    angles: Float[np.ndarray, " g"]
    """Increasing, all above 0; the last is θ(t = 1)."""
    sequences: Float[np.ndarray, " b"]
    slope: Float[np.ndarray, "b g"]
    """dH(p)/dσ."""
    rates: Float[np.ndarray, "b g r"]
    """The rates of `RATES`, per unit σ."""
    cost: Float[np.ndarray, "b g v"]
    """c(t,s) with the model's own posterior on both sides."""
    cross: Float[np.ndarray, "b g v"]
    """c(t,s) with the true x0 on the left: -Σ P(y|x_t,x0) ln w_y, which includes the model's error."""
    euler: Float[np.ndarray, "b g v"]
    """KL(exact token law ‖ Euler's), infinite where Euler cannot follow."""
    poisson: Float[np.ndarray, "b g v"]
    """KL(exact token law ‖ Poisson τ-leaping's)."""

    @property
    def blocks(self) -> int:
        """How many jackknife blocks there are."""
        return len(self.sequences)

    def mean(self, what: str, blocks: Int[np.ndarray, " n"] | None = None) -> Float[np.ndarray, "..."]:
        """Average over sequences of one of the sums, from all blocks or some."""
        chosen = slice(None) if blocks is None else blocks
        return getattr(self, what)[chosen].sum(0) / self.sequences[chosen].sum()

    def thinned(self) -> "Pairs":
        """Without every second inner level: how much that matters tells how good the interpolation is."""
        kept = thinned(len(self.angles))
        sums = {name: getattr(self, name)[:, kept] for name in ("slope", "rates", "cost", "cross", "euler", "poisson")}
        return replace(self, angles=self.angles[kept], **sums)


class StepExcess:
    """TC(x_s | x_t) (plus what another token law adds) as a function of the two angles.

    The measured cost splits as c(t,s) = H(p_s) - H(p_t) + TC(t,s). H(p_·) is the integral of the measured slopes, from
    the same samples, so that it telescopes along a schedule, and TC/v² is smooth enough to interpolate.
    """

    def __init__(
        self,
        pairs: Pairs,
        estimator: Estimator = "entropy",
        law: Law = "exact",
        blocks: Int[np.ndarray, " n"] | None = None,
    ) -> None:
        angles = pairs.angles
        slope_by_angle = pairs.mean("slope", blocks) * 2 * np.tan(angles)
        nodes, slopes = np.concatenate([[0.0], angles]), np.concatenate([[0.0], slope_by_angle])
        self.entropy = CubicSpline(nodes, slopes).antiderivative()
        reached = angles[:, None] * (1 - STEP_SHARES)
        cost = pairs.mean("cross" if estimator == "cross-entropy" else "cost", blocks)
        excess = cost + self.entropy(angles)[:, None] - self.entropy(reached)
        if law != "exact":
            added = pairs.mean(law, blocks)
            added[:, -1] = 0.0  # the step to the data is always the exact denoising draw
            excess = excess + added
        scaled = excess / STEP_SHARES**2
        scaled = np.concatenate([scaled[:, :1], scaled], axis=1)
        self._infinite = _surface(nodes, np.isinf(scaled).astype(float))
        self._scaled = _surface(nodes, np.where(np.isinf(scaled), 0.0, scaled))
        self.at_start = float(pairs.mean("slope", blocks)[-1] / 2)
        """KL(p_1 ‖ prior) ≈ -dKL/dσ / 2, for KL falls like α² = e^{-2σ} by then."""

    def __call__(
        self, angle_t: Float[np.ndarray, "..."], angle_s: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        share = np.clip(1 - angle_s / np.maximum(angle_t, 1e-300), 0.0, 1.0)
        points = np.stack(np.broadcast_arrays(angle_t, share), axis=-1)
        points[..., 0] = np.clip(points[..., 0], 0.0, self._scaled.grid[0][-1])
        excess = self._scaled(points) * share**2
        return np.where(self._infinite(points) > 1e-9, np.inf, excess)

    def curvature(self, angle: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """κ(θ) with TC ≈ ½κ·(θ_t - θ_s)² for short steps."""
        angle = np.maximum(angle, 1e-9)
        small = STEP_SHARES[2]
        return 2 * self(angle, angle * (1 - small)) / (angle * small) ** 2


def _surface(nodes: Float[np.ndarray, " n"], values: Float[np.ndarray, "g v"]) -> RegularGridInterpolator:
    """A function of (angle, share) on [0, θ(1)] × [0, 1], zero at the data."""
    shares = np.concatenate([[0.0], STEP_SHARES])
    return RegularGridInterpolator((nodes, shares), np.concatenate([np.zeros((1, len(shares))), values]))
