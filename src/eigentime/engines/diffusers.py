"""A clock, schedule, plan or recommendation as a scheduler of diffusers, for its pipelines of discrete models."""

from typing import TYPE_CHECKING, Any

from eigentime.engines.diffusers_carried import carried
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.packages import need
from eigentime.recommend import Recommendation
from eigentime.schedules import Plan, Schedule

if TYPE_CHECKING:
    from eigentime.engines.diffusers_schedulers import MaskedScheduler, UniformScheduler

TESTED = ("0.42", "0.43")
"""Versions of diffusers: from, and below."""
FOLLOWED = ("ancestral", "counted")
"""Samplers whose steps a scheduler takes."""


def scheduler(
    source: Clock | Schedule | Plan | Recommendation,
    *,
    sampler: str = "ancestral",
    masked: bool | None = None,
    **corrector: Any,
) -> "UniformScheduler | MaskedScheduler":
    """A scheduler that pipelines of diffusers take in place of their own.

    source     a clock serves any `num_inference_steps`: its best schedule (or plan, where it was measured with orders)
               is computed when the pipeline asks; a schedule or plan serves its own number; a recommendation is what it
               recommends
    sampler    masked tokens along a schedule: "ancestral" reveals each with its chance, "counted" exact numbers
    masked     whether the model masks, where a schedule leaves it open (its α begin at 0 only then, so this is rare)
    corrector  corrector_steps, corrector_k, corrector_selection, corrector_selection_tau: diffusers' leave-one-out
               corrector, for the uniform kernel
    """
    need("diffusers", "diffusers", TESTED)
    from eigentime.engines.diffusers_schedulers import MaskedScheduler, UniformScheduler

    if isinstance(source, Recommendation):
        if source.planned is None or source.sampler not in FOLLOWED:
            raise EigentimeError(
                f"The recommendation is {source.candidate}, which decides while it looks; a scheduler follows a plan "
                "or a schedule: et.recommend(…, candidates=[et.Candidate('ancestral', …)]) chooses among such."
            )
        sampler, source = str(source.sampler), source.planned
    if not isinstance(source, Clock | Schedule | Plan):
        raise EigentimeError("A scheduler is made from a clock, a schedule, a plan or a recommendation.")
    if sampler not in FOLLOWED:
        raise EigentimeError(f"A scheduler takes the steps of {' or '.join(FOLLOWED)}, not of {sampler!r}.")
    settings = carried(source)
    if _masks(source, masked):
        if corrector:
            raise EigentimeError("The leave-one-out corrector is for the uniform kernel; leave its settings out.")
        made: MaskedScheduler = MaskedScheduler(**settings, exact_counts=sampler == "counted")
        return made
    if sampler != "ancestral":
        raise EigentimeError("Counts are of masked tokens; leave `sampler` out on the uniform kernel.")
    exact: UniformScheduler = UniformScheduler(**settings, **corrector)
    return exact


def _masks(source: Clock | Schedule | Plan, told: bool | None) -> bool:
    """Whether tokens are masked, as far as the source knows or else as one was told."""
    if isinstance(source, Plan):
        return True
    if isinstance(source, Clock):
        if not source.absorbing and source.process["kernel"]["name"] != "uniform":
            raise EigentimeError("Schedulers are for masked and uniform kernels, not for this clock's.")
        return source.absorbing
    return bool(source.alphas[0] == 0) if told is None else told
