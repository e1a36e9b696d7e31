"""First-hitting: one token at a time at its own random time. Exact, no grid, as many evaluations as free tokens."""

from collections.abc import Iterator

import torch

from eigentime.errors import EigentimeError
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Moment, Sampler, needs_masks
from eigentime.samplers.run import Run
from eigentime.samplers.state import Draws, State
from eigentime.schedules import Plan, Schedule


class FirstHitting(Sampler):
    """With n masks left the next reveal is at 1-α_s = (1-α_t)·u^{1/n}; which one is uniform."""

    name = "first-hitting"
    law = "exact"
    scheduled = False
    likelihood = "bound"

    def walk(self, run: Run, state: State, schedule: Schedule | Plan | None) -> Iterator[Moment]:
        needs_masks(state, "first-hitting")
        if schedule is not None:
            raise EigentimeError(f"The {self.name} sampler chooses its own steps; pass None as schedule.")
        steps = int(state.active.sum(1).max())
        survival = torch.ones(len(state.tokens), dtype=torch.float64)  # 1-α of each sequence
        for index in range(steps):
            left = state.active.sum(1)
            when = run.uniforms(Purpose.CHOOSE, state, index)[:, 0]
            survival = torch.where(left > 0, survival * when ** (1 / left.clamp(min=1)), survival)
            which = run.uniforms(Purpose.REPLACE, state, index).masked_fill(~state.active, 2.0).argmin(1)
            chosen = torch.zeros_like(state.active)
            chosen[torch.arange(len(chosen)), which] = left > 0
            u, draws = run.uniforms(Purpose.DRAW, state, index), Draws(state)
            times = run.model.process.noise.time_of_alpha(1 - survival)
            for answer in run.answers(state, times, chosen):
                place = answer.sequence, answer.position
                draws.put(*place, run.draw(state, answer, u[place]))
            state = draws.done()
            yield Moment(index + 1, steps, 1 - (index + 1) / steps, state, index + 1)
