"""What data cost under the sampler that a schedule or a plan drives: a bound on their negative log-likelihood.

With x_0 from the data and every token drawn from the network's posterior q given what is known before its step,

    -ln p(x_0) ≤ E[Σ_i -ln q(x_0,i | known before i's step)],

the expectation being over which tokens come when. It holds for the sampler with those very steps, network error and
all, so that it compares schedules, orders and networks alike; with infinitely many steps it is the NELBO.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from eigentime.errors import EigentimeError
from eigentime.measure.blocks import jackknife
from eigentime.measure.clock import Clock
from eigentime.measure.ordered import PlanCosts
from eigentime.measure.profile import Profile, entropy_curve
from eigentime.schedules.certificate import check_same_process
from eigentime.schedules.plan import Plan
from eigentime.schedules.schedule import Schedule

Blocks = Int[np.ndarray, " b"]


@dataclass(frozen=True)
class LikelihoodBound:
    """Nats a sequence, an upper bound on -ln p(data) on average."""

    mean: float
    stderr: float
    """Mostly which sequences were drawn."""
    excess: float
    """Above the bound of infinitely many steps in random order, the network's NELBO, on the same sequences."""
    excess_stderr: float
    """Of that difference, and of every difference between bounds from one clock that was measured with orders."""


def nll_bound(clock: Clock, planned: Schedule | Plan) -> LikelihoodBound:
    """The bound for the ancestral sampler, from the cross-entropies that a clock measured on its data (masked models).

    A clock flatters what it chose itself a little; a second one, measured on other data, does not. With a clock that
    has orders, schedules and plans are judged on the same sequences. Where steps stop between measured counts they are
    interpolated, and the error bar says by how much. A score network's posteriors are taken as normalised, as
    `sample(…, normalise=True)` draws from them, and a network that is told the time is told that of the number of
    tokens known.
    """
    if not isinstance(clock.measured, Profile):
        raise EigentimeError("Likelihood bounds are for masked models: this clock's kernel has no mask.")
    random = clock.orders["random"].over_ranks() if clock.orders else clock.measured
    cost, roughness = _of_plan(clock, planned) if isinstance(planned, Plan) else _of_schedule(clock, planned, random)

    def excess(blocks: Blocks | None) -> float:
        return cost(blocks) - clock.free * float(
            entropy_curve(random, "cross-entropy", blocks, smooth=False).integral(np.array(1.0))
        )

    errors = [float(np.hypot(jackknife(value, random.blocks), roughness)) for value in (cost, excess)]
    return LikelihoodBound(cost(None), errors[0], excess(None), errors[1])


Cost = Callable[[Blocks | None], float]


def _of_schedule(clock: Clock, schedule: Schedule, random: Profile) -> tuple[Cost, float]:
    """L·Σ_k (α_{k+1} - α_k)·h(α_k), and what interpolation may have done to it."""
    check_same_process(clock, schedule)
    alphas = np.append(schedule.alphas, 1.0) if schedule.times[-1] > 0 else schedule.alphas

    def cost(blocks: Blocks | None, measured: Profile = random) -> float:
        curve = entropy_curve(measured, "cross-entropy", blocks, smooth=False)
        return float(clock.free * (np.diff(alphas) * curve.at(alphas[:-1])).sum())

    return cost, 0.0 if random.complete else abs(cost(None) - cost(None, random.thinned())) / 3


def _of_plan(clock: Clock, plan: Plan) -> tuple[Cost, float]:
    """Σ over steps of the cross-entropies in the plan's order, and what interpolation may have done to it."""
    spec = plan.order.spec()
    profile = next((each for each in clock.orders.values() if each.order == spec), None)
    if profile is None:
        raise EigentimeError(f"This clock was not measured in the plan's order, {plan.order.name}.")
    stops = plan.stops(profile.free)

    def cost(blocks: Blocks | None, every: int = 1) -> float:
        kept = np.union1d(np.arange(0, len(profile.levels), every), [len(profile.levels) - 1])
        return PlanCosts(profile.levels[kept], profile.table("cross-entropy", blocks)[kept]).total(stops)

    measured = set(profile.levels.tolist()) >= set(stops[:-1].tolist())
    return cost, 0.0 if measured else abs(cost(None) - cost(None, 2)) / 3
