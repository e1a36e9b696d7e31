"""The sampler for plans: exactly the planned positions at each step, nothing drawn elsewhere."""

from collections.abc import Iterator

from eigentime.errors import EigentimeError
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Likelihood, Moment, Sampler, needs_masks
from eigentime.samplers.run import Run
from eigentime.samplers.state import Draws, State
from eigentime.schedules import Plan, Schedule


class Planned(Sampler):
    """Step k reveals the tokens of S_k, each drawn from its posterior; the network computes only those rows.

    The network is told the time at which as large a share of the free tokens would be known.
    """

    name = "planned"
    likelihood = "bound"

    def likelihood_of(self, schedule: Schedule | Plan | None) -> Likelihood:
        """Exact where the order leaves nothing to chance."""
        assert isinstance(schedule, Plan)
        return "bound" if schedule.order.chance else "exact"

    def walk(self, run: Run, state: State, schedule: Schedule | Plan | None) -> Iterator[Moment]:
        assert isinstance(schedule, Plan)
        needs_masks(state, "A plan")
        if schedule.length != run.model.length:
            raise EigentimeError(f"The plan is for {schedule.length} tokens, the model has {run.model.length}.")
        step_of = schedule.step_of(len(state.tokens), run.seed, ~state.active, run.first)
        free = state.active.sum(1).clamp(min=1)
        for index in range(schedule.steps):
            known = ((step_of >= 0) & (step_of < index)).sum(1) / free
            times = run.model.process.noise.time_of_alpha(known)
            u, draws = run.uniforms(Purpose.DRAW, state, index), Draws(state)
            for answer in run.answers(state, times, step_of == index):
                place = answer.sequence, answer.position
                draws.put(*place, run.draw(state, answer, u[place]))
            state = draws.done()
            yield Moment(index + 1, schedule.steps, 1 - (index + 1) / schedule.steps, state, index + 1)
