"""What a sampler and a schedule cost in nats, before a single sample is drawn."""

from eigentime.arguments import checked, kind, number, one_of, optional, whole, words
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.measure.clock import CLOCK
from eigentime.measure.costs import ESTIMATORS, Estimator
from eigentime.samplers import FirstHitting, Sampler, Shaping, make_sampler
from eigentime.schedules import Certificate, Plan, Schedule, certify, certify_plan, check_same_process, fewest_steps
from eigentime.schedules.schedule import MOST_STEPS


@checked(clock=CLOCK, estimator=one_of(*ESTIMATORS), shaping=optional(kind(Shaping, "a Shaping(temperature, …)")))
def path_error(
    clock: Clock,
    planned: Schedule | Plan,
    *,
    sampler: str | Sampler = "ancestral",
    estimator: Estimator = "entropy",
    shaping: Shaping | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
) -> Certificate:
    """KL(true path ‖ sampled path) of a schedule or a plan in nats, an upper bound on KL(data ‖ samples).

    sampler    of a schedule, by name or with settings: it says which token law it draws from, if any
    estimator  "entropy": the model's own; "cross-entropy": of the data under the model, its errors included
    shaping    (or temperature, top_p, top_k) is not covered: the certificate says so
    """
    changed = str(shaping or Shaping(temperature, top_p, top_k))
    notes = [f"for the untempered law; not covered: {changed}"] if changed else []
    if isinstance(planned, Plan):
        return certify_plan(clock, planned, estimator, notes)
    check_same_process(clock, planned)
    stepper = make_sampler(sampler)
    if isinstance(stepper, FirstHitting):
        return Certificate(0.0, 0.0, clock.exact, "; ".join(notes) or "one token at a time is exact")
    if stepper.law is None:
        return Certificate(float("nan"), float("nan"), clock.exact, f"no certificate covers the {stepper.name} sampler")
    return certify(clock, planned, stepper.law, estimator, notes)


@checked(clock=CLOCK, error=number(above=0), strategy=words, order=optional(words), most=whole(1, MOST_STEPS))
def steps_for(
    clock: Clock,
    error: float,
    *,
    strategy: str = "ods",
    sampler: str | Sampler = "ancestral",
    order: str | None = None,
    most: int = 1024,
) -> int:
    """The fewest steps whose predicted path error is at most `error` nats.

    strategy="plan" answers for plans: of one measured `order`, or the best.
    """
    stepper = make_sampler(sampler)
    if stepper.law is None or not stepper.scheduled:
        raise EigentimeError(f"No certificate covers the {stepper.name} sampler along a schedule; take ancestral.")
    return fewest_steps(clock, error, strategy, stepper.law, order, most)
