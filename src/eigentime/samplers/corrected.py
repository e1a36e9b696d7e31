"""tauLDR's predictor–corrector: after a τ-leap, more leaps that stay at the same time and mend what it got wrong."""

import math
from dataclasses import dataclass

import torch

from eigentime.arguments import flag, number, settle, whole
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Step
from eigentime.samplers.factorised import ANCESTRAL
from eigentime.samplers.jumps import SummedJumps, jump_rates, single_jump
from eigentime.samplers.run import Run
from eigentime.samplers.state import Draws, State


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
class PredictorCorrector(GridSampler):
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
        settle(self, correctors=whole(0), scale=number(above=0), entry=number(), ordinal=flag)

    def evaluations(self, step: Step) -> int:
        return 1 + (self.correctors if self._corrects(step) else 0)

    def _corrects(self, step: Step) -> bool:
        return not step.last and step.t <= self.entry

    def step(self, run: Run, state: State, step: Step) -> State:
        if step.last:
            return ANCESTRAL.step(run, state, step)
        length = step.t - step.s
        state = self._leap(run, state, Leap(step.t, length, False, Purpose.COUNT, step.index))
        if self._corrects(step):
            for k in range(self.correctors):
                stream = step.index * self.correctors + k
                leap = Leap(step.s, self.scale * length, True, Purpose.CORRECT, stream)
                state = self._leap(run, state, leap)
        return state

    def _leap(self, run: Run, state: State, leap: Leap) -> State:
        if state.mask is not None:
            return _masked_leap(run, state, leap)
        draws, u = Draws(state), run.uniforms(leap.purpose, state, leap.stream)
        jumps = SummedJumps(run, state, draws, leap.purpose, leap.stream)
        for answer in run.answers(state, leap.t, state.active):
            place = answer.sequence, answer.position
            mean = leap.length * jump_rates(run.model.process, run.law(answer), answer.tokens, leap.t, leap.forward)
            if self.ordinal:
                jumps.add(answer, mean)
            else:
                draws.put(*place, single_jump(answer.tokens, mean, u[place]))
        return draws.done()


def _masked_leap(run: Run, state: State, leap: Leap) -> State:
    """Masked tokens are revealed at rate β·α/(1-α), with `forward` known ones are masked at rate β."""
    noise, masked = run.model.process.noise, state.active
    alpha, beta = noise.alpha(leap.t).item(), noise.beta(leap.t).item()
    u = run.uniforms(leap.purpose, state, leap.stream)
    rate = leap.length * beta * alpha / (1 - alpha)
    chance = -math.expm1(-rate)
    draws = Draws(state)
    run.drawn += int(masked.sum())
    for answer in run.answers(state, leap.t, masked if run.keeps_mass else masked & (u < chance)):
        place, posterior = (answer.sequence, answer.position), run.law(answer)
        if run.keeps_mass:  # a score's mass Σ_y q_y is part of its rate
            draws.put_some(*place, draw(posterior, u[place], -torch.expm1(-rate * posterior.sum(-1))))
        else:
            draws.put(*place, draw(posterior, u[place] / chance))
    if leap.forward:
        draws.hide(state.free & ~masked & (u < -math.expm1(-leap.length * beta)))
    return draws.done()
