"""What a sampler is: something that walks from noise to data, one state after the other."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.laws import Law
from eigentime.samplers.run import Run
from eigentime.samplers.state import State
from eigentime.schedules import Plan, Schedule

Likelihood = Literal["exact", "bound"]


@dataclass(frozen=True)
class Step:
    """One step of a grid, t → s; the last one goes to the data, α_s = 1, and is always the exact denoising draw."""

    index: int
    t: float
    s: float
    alpha_t: float
    alpha_s: float

    @property
    def last(self) -> bool:
        """Whether this step reaches the data."""
        return self.alpha_s == 1.0


@dataclass(frozen=True)
class Moment:
    """A state on the way, and how far that is."""

    step: int
    steps: int
    time: float
    state: State
    nfe: float
    """Network evaluations per sequence so far."""


class Sampler(ABC):
    """Walks from noise to data. It is an object with its settings, and says itself what it is covered by."""

    name: str
    law: Law | None = None
    """The token law that it draws from, which a certificate speaks of; None where no certificate covers it."""
    scheduled: ClassVar[bool] = True
    """Whether it walks along a schedule; else it decides about its steps itself."""
    likelihood: Likelihood | None = None
    """On masked kernels, what teacher forcing says of it: -ln q(x) exactly, where what is known decides which tokens
    come next, or a bound on it, where chance does; None where values just drawn decide, or known ones change."""

    def likelihood_of(self, schedule: Schedule | Plan | None) -> Likelihood | None:
        """The same along a schedule or plan."""
        return self.likelihood

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def walk(self, run: Run, state: State, schedule: Schedule | Plan | None) -> Iterator[Moment]:
        """The states after each step; the last one is the sample."""


class GridSampler(Sampler):
    """Takes the steps of a schedule. Subclasses say how, and how many evaluations a step costs."""

    evaluations_per_step: ClassVar[int] = 1

    def evaluations(self, step: Step) -> int:
        """What a step costs."""
        return 1 if step.last else self.evaluations_per_step

    @abstractmethod
    def step(self, run: Run, state: State, step: Step) -> State:
        """The state at s, given the state at t."""

    def walk(self, run: Run, state: State, schedule: Schedule | Plan | None) -> Iterator[Moment]:
        steps, nfe = grid_steps(run.model, schedule), 0
        for step in steps:
            state, nfe = self.step(run, state, step), nfe + self.evaluations(step)
            yield Moment(step.index + 1, len(steps), step.s, state, nfe)


def grid_steps(model: Model, schedule: Schedule | Plan | None) -> list[Step]:
    """The steps of a schedule, with the denoising step that a grid ending above 0 still needs."""
    if not isinstance(schedule, Schedule):
        raise EigentimeError("This sampler needs a Schedule: et.schedule makes one.")
    if schedule.noise != model.process.noise:
        raise EigentimeError(
            f"The schedule belongs to {schedule.noise}, the model to {model.process.noise}; "
            "use schedule.convert(model.process.noise)."
        )
    times, alphas = schedule.times, schedule.alphas
    if not np.allclose(alphas, model.process.grid_alphas(times), atol=1e-6):
        raise EigentimeError("The schedule was made for another kernel than the model's: its α do not fit its times.")
    if times[-1] > 0:
        times, alphas = np.append(times, 0.0), np.append(alphas, 1.0)
    return [
        Step(k, float(times[k]), float(times[k + 1]), float(alphas[k]), float(alphas[k + 1]))
        for k in range(len(times) - 1)
    ]


def needs_masks(state: State, what: str = "This sampler") -> int:
    """The mask; refused on other kernels."""
    if state.mask is None:
        raise EigentimeError(f"{what} reveals masked tokens: it needs an absorbing kernel.")
    return state.mask
