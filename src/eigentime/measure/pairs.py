"""What a step costs on kernels without a mask: the total correlation of a step from any α_t to any α_s.

One evaluation at x_t predicts, token by token, the score at any earlier time t' < t: ŝ_y = w_y/w_a, where a is the
token at t' and w the ratio of `Kernel.ratio`. It is the average of the true score over what x_t does not know,
so by Jensen
    TC(x_s | x_t) = ∫_s^t E Σ_i Σ_y β·Q(y→a)·[ s_y ln(s_y/ŝ_y) - s_y + ŝ_y ] dt',
over states x_t' and x_t of one forward path. The integrand is never negative, so small errors are measured as well as
large ones. Everything is laid out in the angle θ = arccos √α: data at 0, noise at π/2.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import CubicSpline, PchipInterpolator, RegularGridInterpolator

from eigentime.measure.blocks import check_levels, check_sums
from eigentime.measure.profile import Estimator, thinned
from eigentime.process.laws import Law

STEP_SHARES = np.linspace(0, 1, 13)[1:] ** 2
"""Steps are tabulated by the share v = 1 - θ_s/θ_t of the way to the data that they take."""
RATES = ("total", "adiabatic", "nonadiabatic", "nonadiabatic_data", "activity", "mobility")


@dataclass(frozen=True)
class Pairs:
    """Block sums over sequences (b) at measured angles (g), all per sequence and per unit σ.

    Divergences and step laws are measured between some of the angles, the `nodes` (n).
    """

    angles: Float[np.ndarray, " g"]
    """Increasing, all above 0; the last is θ(t = 1)."""
    nodes: Float[np.ndarray, " n"]
    sequences: Float[np.ndarray, " b"]
    slope: Float[np.ndarray, "b g"]
    """dH(p)/dσ."""
    rates: Float[np.ndarray, "b g r"]
    """The rates of `RATES`."""
    divergence: Float[np.ndarray, "b n n"]
    """The integrand at (t', t), with the model's own score as weight; zero unless t' < t."""
    cross: Float[np.ndarray, "b n n"]
    """The same with the score given the true x0 as weight, which includes the model's error."""
    euler: Float[np.ndarray, "b n v"]
    """KL(exact token law ‖ Euler's) at every step share, infinite where Euler cannot follow."""
    poisson: Float[np.ndarray, "b n v"]
    """KL(exact token law ‖ Poisson τ-leaping's)."""

    @property
    def blocks(self) -> int:
        """How many jackknife blocks there are."""
        return len(self.sequences)

    def check(self) -> None:
        """Refuse what no measurement gives."""
        check_levels(self.angles, np.pi / 2)
        check_levels(self.nodes, np.pi / 2)
        check_sums(
            self,
            finite=["slope", "rates"],
            positive=["sequences", "divergence"],
            numbers=["cross", "euler", "poisson"],
        )

    def mean(self, what: str, blocks: Int[np.ndarray, " n"] | None = None) -> Float[np.ndarray, "..."]:
        """Average over sequences of one of the sums, from all blocks or some."""
        chosen = slice(None) if blocks is None else blocks
        return getattr(self, what)[chosen].sum(0) / self.sequences[chosen].sum()

    def thinned(self) -> "Pairs":
        """Without every second inner node: how much that matters tells how good the interpolation is."""
        kept = thinned(len(self.nodes))
        between = {name: getattr(self, name)[:, kept][:, :, kept] for name in ("divergence", "cross")}
        laws = {name: getattr(self, name)[:, kept] for name in ("euler", "poisson")}
        return replace(self, nodes=self.nodes[kept], **between, **laws)


class StepExcess:
    """TC(x_s | x_t), plus what another token law adds, as a function of the two angles."""

    def __init__(
        self,
        pairs: Pairs,
        estimator: Estimator = "entropy",
        law: Law = "exact",
        blocks: Int[np.ndarray, " n"] | None = None,
        gap: float = 1.0,
    ) -> None:
        divergence = pairs.mean("cross" if estimator == "cross-entropy" else "divergence", blocks)
        excess = _total_correlation(pairs.nodes, divergence * 2 * np.tan(pairs.nodes)[:, None])
        if law != "exact":
            added = pairs.mean(law, blocks)
            added[:, -1] = 0.0  # the step to the data is always the exact denoising draw
            excess = excess + added
        scaled = excess / STEP_SHARES**2
        scaled = np.concatenate([scaled[:, :1], scaled], axis=1)
        self._infinite = _surface(pairs.nodes, np.isinf(scaled).astype(float))
        self._scaled = _surface(pairs.nodes, np.where(np.isinf(scaled), 0.0, scaled))
        decay = pairs.mean("rates", blocks)[-1, RATES.index("nonadiabatic")]
        self.at_start = float(max(decay, 0.0) / (2 * gap))
        """KL(p_1 ‖ prior) ≈ -dKL/dσ / (2·gap), for KL falls like e^{-2·gap·σ} by then."""

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
        return 2 * self(angle, angle * (1 - small)) / (angle * small) ** 2


def _total_correlation(
    nodes: Float[np.ndarray, " n"], divergence: Float[np.ndarray, "n n"]
) -> Float[np.ndarray, "n v"]:
    """∫ of the divergence from θ_s to θ_t for every node θ_t and step share.

    The divergence falls linearly to 0 at θ' = θ_t and vanishes at the data, so k = divergence/(θ_t - θ') is
    interpolated over ρ = θ'/θ_t, its value at ρ = 1 extrapolated, and TC = θ_t² ∫_{1-v}^1 k·(1-ρ) dρ.
    """
    fine = 1 - np.linspace(0, 1, 401)[::-1] ** 2  # dense near ρ = 1, where short steps live
    total = np.zeros((len(nodes), len(STEP_SHARES)))
    for j, angle in enumerate(nodes):
        before = nodes[:j]
        slopes = divergence[:j, j] / (angle - before)
        ends = _at_one(before / angle, slopes) if j else _first_slope(nodes, divergence)
        rho, values = np.concatenate([[0.0], before / angle, [1.0]]), np.concatenate([[0.0], slopes, [ends]])
        integral = CubicSpline(fine, PchipInterpolator(rho, values)(fine) * (1 - fine)).antiderivative()
        total[j] = angle**2 * (integral(1.0) - integral(1 - STEP_SHARES))
    return total


def _at_one(rho: Float[np.ndarray, " n"], slopes: Float[np.ndarray, " n"]) -> float:
    """k at ρ = 1, on the line through its last two values (the first of them may be the 0 at the data)."""
    rho, slopes = np.concatenate([[0.0], rho]), np.concatenate([[0.0], slopes])
    rise = (slopes[-1] - slopes[-2]) / (rho[-1] - rho[-2])
    return max(slopes[-1] + rise * (1 - rho[-1]), 0.0)


def _first_slope(nodes: Float[np.ndarray, " n"], divergence: Float[np.ndarray, "n n"]) -> float:
    """k on the diagonal of the first node, which has none before it: that of the second, in proportion to its angle."""
    return divergence[0, 1] / (nodes[1] - nodes[0]) if len(nodes) > 1 else 0.0


def _surface(nodes: Float[np.ndarray, " n"], values: Float[np.ndarray, "n v"]) -> RegularGridInterpolator:
    """A function of (angle, share) on [0, θ(1)] × [0, 1], zero at the data."""
    shares = np.concatenate([[0.0], STEP_SHARES])
    grid = np.concatenate([[0.0], nodes])
    return RegularGridInterpolator((grid, shares), np.concatenate([np.zeros((1, len(shares))), values]))
