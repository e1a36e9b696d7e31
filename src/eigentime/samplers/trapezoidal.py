"""The θ-trapezoidal method: second order, two evaluations per step."""

from dataclasses import dataclass

import torch

from eigentime.arguments import number, settle
from eigentime.process.drawing import draw
from eigentime.process.laws import leap
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Step
from eigentime.samplers.factorised import ANCESTRAL
from eigentime.samplers.jumps import jump_rates
from eigentime.samplers.run import HiddenRows, Run
from eigentime.samplers.state import Draws, State


@dataclass(frozen=True)
class Trapezoidal(GridSampler):
    """Leap θΔ with rates μ_0, evaluate μ_θ there, then leap (1-θ)Δ with (a1·μ_θ - a2·μ_0)₊.

    a1 = 1/(2θ(1-θ)), a2 = a1 - 1. A token that jumped in the first leap has no μ_0 of its own any more and takes μ_θ.
    Of μ_0 only the network's hidden rows are kept.
    """

    theta: float = 0.5
    name = "trapezoidal"
    evaluations_per_step = 2

    def __post_init__(self) -> None:
        settle(self, theta=number(above=0, below=1))

    def step(self, run: Run, state: State, step: Step) -> State:
        if step.last:
            return ANCESTRAL.step(run, state, step)
        process = run.model.process
        middle = step.t - self.theta * (step.t - step.s)
        a1 = 1 / (2 * self.theta * (1 - self.theta))
        first, kept = Draws(state), HiddenRows(run, state, step.t)
        u = run.uniforms(Purpose.DRAW, state, step.index)
        for answer in run.answers(state, step.t, state.active):
            kept.add(answer)
            rates = jump_rates(process, run.law(answer), answer.tokens, step.t)
            place, law = (answer.sequence, answer.position), leap((step.t - middle) * rates, answer.tokens, "poisson")
            first.move(*place, draw(law, u[place]))
        halfway = first.done()
        second = Draws(halfway)
        u = run.uniforms(Purpose.CHOOSE, state, step.index)
        for answer in run.answers(halfway, middle, halfway.active):
            place = answer.sequence, answer.position
            before = run.tokens(state, *place)
            rates = jump_rates(process, run.law(answer), answer.tokens, middle)
            earlier = jump_rates(process, run.shaping(kept.law(answer, before)), before, step.t)
            moved = (answer.tokens != before)[:, None].to(rates.device)
            extrapolated = (a1 * rates - (a1 - 1) * earlier).clamp(min=0.0)
            law = leap((middle - step.s) * torch.where(moved, rates, extrapolated), answer.tokens, "poisson")
            second.move(*place, draw(law, u[place]))
        return second.done()
