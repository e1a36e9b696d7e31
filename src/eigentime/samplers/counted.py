"""A time schedule with exact counts: as many tokens as a step expects, at random places, in place of coin flips."""

import torch

from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Step, needs_masks
from eigentime.samplers.run import Run
from eigentime.samplers.state import Draws, State


class Counted(GridSampler):
    """After a step to s, round(α_s·L) of the L free tokens are known, whichever a random order of the sequence names.

    It is the ancestral sampler without the chance in its numbers: what `plan-random` does, along any schedule.
    """

    name, law = "counted", "counted"
    likelihood = "bound"

    def step(self, run: Run, state: State, step: Step) -> State:
        needs_masks(state, "counted")
        total = state.free.sum(1)
        known = total if step.last else torch.round(step.alpha_s * total.double()).long()
        order = run.uniforms(Purpose.CHOOSE, state, 0).masked_fill(~state.free, 2.0).argsort(1).argsort(1)
        u, draws = run.uniforms(Purpose.DRAW, state, step.index), Draws(state)
        for answer in run.answers(state, step.t, state.active & (order < known[:, None])):
            place = answer.sequence, answer.position
            draws.put(*place, run.draw(state, answer, u[place]))
        return draws.done()
