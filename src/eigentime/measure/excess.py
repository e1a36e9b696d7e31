"""The path error of any step, read off a Clock: the costs that schedules minimise and certificates add up."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.pairs import StepExcess
from eigentime.measure.profile import Estimator, LevelCurve, Profile, entropy_curve
from eigentime.process import Noise
from eigentime.process.laws import Law

Alphas = Float[np.ndarray, "..."]


class Excess(ABC):
    """Nats that a step α_t → α_s adds to KL(true path ‖ sampled path); α_t = 0 is the start and α_s = 1 the end."""

    at_start: float = 0.0
    """KL(p_1 ‖ prior)."""

    @abstractmethod
    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        """The cost of each step of a schedule."""

    @abstractmethod
    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        """The costs of all steps i → j > i of a grid; only the upper triangle means anything."""

    @abstractmethod
    def curvature(self, alpha: Alphas) -> Alphas:
        """κ(α) ≥ 0 with cost ≈ ½κ·(α_s - α_t)² for short steps."""

    def path(self, alphas: Float[np.ndarray, " k"]) -> float:
        """The path error of a whole schedule."""
        return float(self.steps(alphas).sum() + self.at_start)


def excess(
    clock: Clock,
    *,
    estimator: Estimator = "entropy",
    law: Law = "exact",
    blocks: Int[np.ndarray, " n"] | None = None,
    smooth: bool = True,
) -> Excess:
    """Step costs for a sampler with this token law, from all blocks of the clock or some."""
    if estimator not in ("entropy", "cross-entropy"):
        raise EigentimeError(f"Unknown estimator {estimator!r}; known are entropy and cross-entropy.")
    if isinstance(clock.measured, Profile):
        curve = entropy_curve(clock.measured, estimator, blocks, smooth)
        return AbsorbingExcess(curve, clock.free, clock.noise, law)
    return PairExcess(StepExcess(clock.measured, estimator, law, blocks, clock.gap))


class AbsorbingExcess(Excess):
    """L·[(α_s-α_t)·h(α_t) - ∫ h dα], a left Riemann sum of a decreasing curve.

    A sampler with another reveal probability adds L(1-α_t)·KL(exact ‖ its own).
    """

    def __init__(self, curve: LevelCurve, free: float, noise: Noise, law: Law) -> None:
        self.curve, self.free, self.noise, self.law = curve, free, noise, law

    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        height, area = self.curve.at(alphas[:-1]), self.curve.integral(alphas)
        return self._cost(alphas[:-1], alphas[1:], height, area[1:] - area[:-1])

    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        height, area = self.curve.at(alphas), self.curve.integral(alphas)
        return self._cost(alphas[:, None], alphas[None, :], height[:, None], area[None, :] - area[:, None])

    def _cost(self, alpha_t: Alphas, alpha_s: Alphas, height: Alphas, area: Alphas) -> Alphas:
        riemann = (alpha_s - alpha_t) * height - area
        if self.law == "exact":
            return self.free * riemann
        divergence = reveal_divergence(self.noise, self.law, alpha_t, alpha_s)
        with np.errstate(invalid="ignore"):  # a matrix also asks for steps that do not exist
            return self.free * (riemann + (1 - alpha_t) * divergence)

    def curvature(self, alpha: Alphas) -> Alphas:
        below, above = np.clip(alpha - 1e-4, 0, 1), np.clip(alpha + 1e-4, 0, 1)
        return self.free * np.maximum(self.curve.at(below) - self.curve.at(above), 0.0) / (above - below)


class PairExcess(Excess):
    """Interpolated costs of kernels without a mask, in α instead of angles."""

    def __init__(self, excess: StepExcess) -> None:
        self.excess = excess
        self.at_start = excess.at_start

    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        angles = angle_of(alphas)
        return self.excess(angles[:-1], angles[1:])

    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        angles = angle_of(alphas)
        first, second = np.triu_indices(len(alphas), 1)
        costs = np.full((len(alphas), len(alphas)), np.inf)
        costs[first, second] = self.excess(angles[first], angles[second])
        return costs

    def curvature(self, alpha: Alphas) -> Alphas:
        per_angle = np.maximum(self.excess.curvature(angle_of(alpha)), 0.0)
        return per_angle / np.maximum(4 * alpha * (1 - alpha), 1e-12)  # (dθ/dα)² = 1/(4α(1-α))


def interpolation_error(
    clock: Clock, alphas: Float[np.ndarray, " k"], *, law: Law = "exact", estimator: Estimator = "entropy"
) -> float:
    """About how far interpolating between the measured levels moves a schedule's path error.

    With half of the levels it moves it some 2² times as far, so the truth lies about a third of the change away.
    """
    if isinstance(clock.measured, Profile) and clock.measured.complete:
        return 0.0
    coarse = replace(clock, measured=clock.measured.thinned())
    errors = [excess(each, law=law, estimator=estimator, smooth=False).path(alphas) for each in (clock, coarse)]
    return abs(errors[0] - errors[1]) / 3 if np.isfinite(errors).all() else 0.0


def angle_of(alpha: Alphas) -> Alphas:
    """θ = arccos √α: 0 at the data, π/2 at pure noise."""
    return np.arccos(np.sqrt(np.clip(alpha, 0.0, 1.0)))


def reveal_divergence(noise: Noise, law: Law, alpha_t: Alphas, alpha_s: Alphas) -> Alphas:
    """KL(Bernoulli(p) ‖ Bernoulli(r)), p the exact reveal probability of a step and r the sampler's."""
    t, s = noise.time_of_alpha(alpha_t).numpy(), noise.time_of_alpha(alpha_s).numpy()
    kept = noise.alpha(t).numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (t - s) * noise.beta(t).numpy() * kept / (1 - kept)
        r = np.minimum(rate, 1.0) if law == "euler" else -np.expm1(-rate)
        p = (alpha_s - alpha_t) / (1 - alpha_t)
        revealed = np.where(p > 0, p * np.log(p / r), 0.0)
        hidden = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - r)), 0.0)
    return np.where(alpha_s == 1.0, 0.0, revealed + hidden)  # the last step is the exact denoising draw
