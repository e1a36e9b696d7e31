"""tauLDR's predictor–corrector: after a τ-leap, more leaps that stay at the same time and mend what it got wrong."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from eigentime.errors import EigentimeError
from eigentime.models.base import on_host, some_rows
from eigentime.process.absorbing import Absorbing
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, Sampler, State, Step, full
from eigentime.samplers.factorised import Factorised
from eigentime.samplers.jumps import after_jumps, jump_rates, poisson_jumps


@dataclass(frozen=True)
class Leap:
    """All tokens jump with the rates of time t for so long; `forward` adds the forward rates."""

    t: float
    length: float
    forward: bool
    purpose: Purpose
    stream: int
    """Which random numbers it takes."""


@dataclass(frozen=True)
class PredictorCorrector(Sampler):
    """A leap t → s, then `correctors` leaps of length `scale`·(t - s) at s with rates R + R̄, which keep p_s as it is.
    Each costs an evaluation.

    tauLDR's CIFAR-10: PredictorCorrector(10, 1.5, 0.1, ordinal=True); its piano: PredictorCorrector(2, 0.1, 0.9).
    """

    correctors: int = 1
    scale: float = 1.0
    entry: float = 1.0
    """Correct only in steps that begin at this time or later on the way to the data."""
    ordinal: bool = False
    """Values are ordered: jumps add up and are clamped. Otherwise a token that would jump twice does not jump; a masked
    one is revealed at its first jump."""
    name = "predictor-corrector"

    def __post_init__(self) -> None:
        whole = isinstance(self.correctors, int) and self.correctors >= 0
        if not (whole and math.isfinite(self.scale) and self.scale > 0 and not math.isnan(self.entry)):
            raise EigentimeError(f"A corrector needs a whole number of steps and a positive scale, not {self}.")

    def evaluations(self, step: Step) -> int:
        return 1 + (self.correctors if self._corrects(step) else 0)

    def _corrects(self, step: Step) -> bool:
        return not step.last and step.t <= self.entry

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        if step.last:
            return Factorised("ancestral", "exact").step(network, x, free, step)
        length = step.t - step.s
        x = self._leap(network, x, free, Leap(step.t, length, False, Purpose.COUNT, step.index))
        if self._corrects(step):
            for k in range(self.correctors):
                stream = step.index * self.correctors + k
                x = self._leap(network, x, free, Leap(step.s, self.scale * length, True, Purpose.CORRECT, stream))
        return x

    def _leap(self, network: Network, x: State, free: Mask, leap: Leap) -> State:
        process = network.model.process
        if isinstance(process.kernel, Absorbing):
            return _masked_leap(network, process.kernel, x, free, leap)
        result = x.clone()
        for sequence, position, posterior in network.posteriors(x, full(x, leap.t), free):
            token = x[sequence, position]
            mean = leap.length * jump_rates(process, on_host(posterior), token, leap.t, leap.forward)
            jumps = poisson_jumps(
                mean, sequence, position, x.shape[1], seed=network.seed, purpose=leap.purpose, stream=leap.stream
            )
            result[sequence, position] = after_jumps(token, jumps, self.ordinal)
        return result


def _masked_leap(network: Network, kernel: Absorbing, x: State, free: Mask, leap: Leap) -> State:
    """Masked tokens are revealed at rate β·α/(1-α), with `forward` known ones are masked at rate β."""
    noise = network.model.process.noise
    alpha, beta = noise.alpha(leap.t).item(), noise.beta(leap.t).item()
    u = network.uniforms(leap.purpose, x, leap.stream)
    masked = free & kernel.masked(x)
    rate = torch.tensor(leap.length * beta * alpha / (1 - alpha), dtype=torch.float64)
    chosen = masked if network.keeps_mass else masked & (u < -torch.expm1(-rate))
    result = x.clone()
    network.drawn += int(masked.sum())
    for sequence, position, posterior in network.posteriors(x, full(x, leap.t), chosen):
        # a score's mass Σ_y q_y is part of its rate
        reveal = -torch.expm1(
            -rate * (on_host(posterior.sum(-1)) if network.keeps_mass else torch.ones(len(posterior)))
        )
        revealed = u[sequence, position] < reveal
        value = draw(some_rows(posterior, revealed), u[sequence, position][revealed] / reveal[revealed])
        result[sequence[revealed], position[revealed]] = value.cpu()
    if leap.forward:
        result[free & ~masked & (u < -np.expm1(-leap.length * beta))] = kernel.mask
    return result
