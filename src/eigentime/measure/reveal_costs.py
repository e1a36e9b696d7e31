"""What steps cost where tokens are masked, from the curve h(α) of a masked token's entropy."""

import numpy as np
from jaxtyping import Float

from eigentime.measure.costs import Alphas, StepCosts
from eigentime.measure.level_curve import LevelCurve
from eigentime.process import Noise
from eigentime.process.laws import Law


class RevealCosts(StepCosts):
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
            return np.asarray(self.free * riemann)
        divergence = reveal_divergence(self.noise, self.law, alpha_t, alpha_s)
        with np.errstate(invalid="ignore"):  # a matrix also asks for steps that do not exist
            return np.asarray(self.free * (riemann + (1 - alpha_t) * divergence))

    def curvature(self, alpha: Alphas) -> Alphas:
        below, above = np.clip(alpha - 1e-4, 0, 1), np.clip(alpha + 1e-4, 0, 1)
        return np.asarray(self.free * np.maximum(self.curve.at(below) - self.curve.at(above), 0.0) / (above - below))


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
