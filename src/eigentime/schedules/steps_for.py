"""The other way round: how many steps does an error allow?"""

import math
import warnings

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.process.laws import Law
from eigentime.schedules.planning import plan_steps_for
from eigentime.schedules.strategies import MEASURED, UNMEASURED, measured_times, unmeasured_times


def fewest_steps(clock: Clock, error: float, strategy: str, law: Law, order: str | None, most: int) -> int:
    """The fewest steps whose predicted path error is at most `error` nats, for a sampler with this token law.

    strategy="plan" answers for plans: of one measured `order`, or the best.
    """
    if strategy == "plan":
        return plan_steps_for(clock, error, order, most)
    if strategy not in (*UNMEASURED, *MEASURED):
        raise EigentimeError(f"steps_for answers for plan, {', '.join((*UNMEASURED, *MEASURED))}, not {strategy!r}.")
    costs = clock.costs(law)

    def predicted(steps: int) -> float:
        if strategy in UNMEASURED:
            return costs.path(clock.grid_process.grid_alphas(unmeasured_times(strategy, steps, clock.noise)))
        return costs.path(clock.grid_process.grid_alphas(measured_times(clock, strategy, steps, law)))

    low, high = 0, 1
    while predicted(high) > error:
        if high >= most:
            raise EigentimeError(
                f"Even {most} steps of {strategy} stay above {error:g} nats; allow more error{_exact(clock)}."
            )
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if predicted(middle) <= error else (middle, high)
    if clock.absorbing and high > clock.free:
        warnings.warn(
            f"{high} steps of {strategy} are more than there are tokens to reveal{_exact(clock)}.", stacklevel=4
        )
    return high


def _exact(clock: Clock) -> str:
    """What always helps on masked tokens."""
    free = math.ceil(clock.free)
    return (
        f"; one token at a time is exact with {free} evaluations (sampler='first-hitting')" if clock.absorbing else ""
    )
