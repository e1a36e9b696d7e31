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
from eigentime.measure.clock import Clock
from eigentime.measure.ordered import PlanCosts
from eigentime.measure.profile import Profile, entropy_curve
from eigentime.schedules.plan import Plan
from eigentime.schedules.schedule import Schedule

Blocks = Int[np.ndarray, " b"]


@dataclass(frozen=True)
class LikelihoodBound:
    """Nats a sequence, an upper bound on -ln p(data) on average."""

    mean: float
    stderr: float


def nll_bound(clock: Clock, planned: Schedule | Plan) -> LikelihoodBound:
    """The bound for the ancestral sampler, from the cross-entropies that a clock measured on its data (masked models).

    A clock flatters what it chose itself a little; a second one, measured on other data, does not.
    """
    if not isinstance(clock.measured, Profile):
        raise EigentimeError("Likelihood bounds are for masked models: this clock's kernel has no mask.")
    if isinstance(planned, Plan):
        spec = planned.order.spec()
        profile = next((each for each in clock.orders.values() if each.order == spec), None)
        if profile is None:
            raise EigentimeError(f"This clock was not measured in the plan's order, {planned.order.name}.")
        stops, blocks = planned.stops(profile.free), profile.blocks

        def cost(chosen: Blocks) -> float:
            return PlanCosts(profile.levels, profile.table("cross-entropy", chosen)).total(stops)

    else:
        measured, blocks = clock.measured, clock.measured.blocks
        alphas = np.append(planned.alphas, 1.0) if planned.times[-1] > 0 else planned.alphas

        def cost(chosen: Blocks) -> float:
            curve = entropy_curve(measured, "cross-entropy", chosen, smooth=False)
            return float(clock.free * (np.diff(alphas) * curve.at(alphas[:-1])).sum())

    return _jackknifed(cost, blocks)


def _jackknifed(cost: Callable[[Blocks], float], blocks: int) -> LikelihoodBound:
    everything = np.arange(blocks)
    if blocks < 2:
        return LikelihoodBound(cost(everything), float("inf"))
    left_out = [cost(np.delete(everything, b)) for b in everything]
    return LikelihoodBound(cost(everything), float(np.sqrt((blocks - 1) * np.var(left_out))))
