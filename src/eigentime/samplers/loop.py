"""The one loop: a sampler walks, its steps are counted, and a callback may stop it."""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.arguments import SEED, whole
from eigentime.errors import EigentimeError
from eigentime.models.base import MODEL, Model
from eigentime.samplers.base import Moment, Sampler
from eigentime.samplers.condition import Condition
from eigentime.samplers.guidance import make_guidance
from eigentime.samplers.planned import Planned
from eigentime.samplers.record import Record
from eigentime.samplers.registry import make_sampler
from eigentime.samplers.run import Run
from eigentime.samplers.samples import SampleInfo
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule


class Snapshot:
    """What a callback is told after every step: return True to stop there."""

    def __init__(self, moment: Moment) -> None:
        self.step, self.steps, self.time = moment.step, moment.steps, moment.time
        self._tokens = moment.state.tokens

    @property
    def tokens(self) -> Int[Tensor, "n length"]:
        """The sequences as they are now; they come to the CPU only if one looks."""
        return self._tokens.cpu()


NOT_COVERED = (
    "No likelihood covers {name}: teacher forcing needs masked tokens that stay once they are revealed, and a choice "
    "of places that does not look at values just drawn."
)
Callback = Callable[[Snapshot], bool | None]


def run(
    model: Model,
    schedule: Schedule | Plan | None,
    num_samples: int,
    *,
    sampler: str | Sampler = "ancestral",
    seed: int = 0,
    condition: Condition | None = None,
    shaping: Shaping | None = None,
    batch_size: int | Literal["auto"] = "auto",
    callback: Callback | None = None,
) -> tuple[Int[Tensor, "n length"], SampleInfo]:
    """Draw samples of a seed, those that `condition` begins with; see `eigentime.sample` for the other arguments."""
    stepper, condition, shaping = make_sampler(sampler), condition or Condition(), shaping or Shaping()
    MODEL(model, "model")
    num_samples, seed = whole(1)(num_samples, "num_samples"), SEED(seed, "seed")
    if isinstance(schedule, Plan):
        if stepper.name != "ancestral":
            raise EigentimeError(
                f"A plan is drawn token by token from the posterior, not by {stepper.name}; leave `sampler` out."
            )
        # the places are the plan's, so only a value is left to draw
        stepper, shaping = Planned(), replace(shaping, normalise=True)
    state = condition.start(model, num_samples, seed)
    prompt = ~state.free
    guided = make_guidance(model, condition.guidance, condition.cond, prompted=bool(prompt.any()))
    given = prompt.to(state.device)
    walked = Run(model, seed, shaping, batch_size, condition.cond, guided, given, first=condition.first)
    if guided is not None and not model.process.absorbing and (stepper.name != "ancestral" or not shaping.neutral):
        raise EigentimeError(
            "Guidance on a kernel without a mask mixes exact token laws: use the ancestral sampler, unsharpened."
        )
    covered = None if state.mask is None else stepper.likelihood_of(schedule)
    if covered is not None:
        walked.record = Record(state, condition.teacher)
    elif condition.teacher is not None:
        raise EigentimeError(NOT_COVERED.format(name=stepper.name))
    began, nfe, stopped = time.perf_counter(), 0.0, False
    with torch.no_grad():
        for moment in stepper.walk(walked, state, schedule):
            state, nfe = moment.state, moment.nfe
            if callback and callback(Snapshot(moment)):
                stopped = True
                break
        tokens = state.tokens.cpu()
    nfe *= model.passes * (1 if guided is None else 2)
    clipped = float(walked.clipped) / max(walked.drawn, 1)
    if clipped > 0:
        remedy = "" if stepper.name == "ancestral" else ", or sampler='ancestral',"
        warnings.warn(
            f"{clipped:.1%} of the token laws of {stepper.name} were clipped: some steps are too long for this model. "
            f"More steps{remedy} avoid that.",
            stacklevel=3,
        )
    seconds = time.perf_counter() - began
    return tokens, SampleInfo(
        nfe,
        walked.evaluations,
        seconds,
        clipped,
        stopped,
        walked.batch.value,
        spent=_spent(walked, num_samples),
        record=walked.record,
        exact=covered == "exact",
    )


def _spent(walked: Run, count: int) -> Int[Tensor, " n"]:
    """Evaluations of each sequence; guidance takes two at a time."""
    if walked.spent is None:
        return torch.zeros(count, dtype=torch.long)
    return walked.spent * walked.model.passes * (1 if walked.guidance is None else 2)
