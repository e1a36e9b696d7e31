"""What data cost under the sampler that a schedule or a plan drives: a bound on their negative log-likelihood.

With x_0 from the data and every token drawn from the network's posterior q given what is known before its step,

    -ln p(x_0) ≤ E[Σ_i -ln q(x_0,i | known before i's step)],

the expectation being over which tokens come when. It holds for the sampler with those very steps, network error and
all, so that it compares schedules, orders and networks alike; with infinitely many steps it is the NELBO.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from eigentime.arguments import checked
from eigentime.intervals import Difference, GroupValues, paired
from eigentime.measure.clock import CLOCK, Clock
from eigentime.measure.groups import Grouped, fit, interpolation_gap
from eigentime.measure.profile import Profile
from eigentime.schedules.certificate import check_same_process
from eigentime.schedules.plan import Plan
from eigentime.schedules.planning import measured_name
from eigentime.schedules.schedule import Schedule


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
    groups: GroupValues = field(repr=False)
    """What each group of sequences says of the bound."""
    excess_groups: GroupValues = field(repr=False)
    """The same for the excess."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the bound lies on the average over all data, by the bootstrap of Student's t over groups."""
        return self.groups.interval(self.mean, level)

    def excess_interval(self, level: float = 0.95) -> tuple[float, float]:
        """The same for the excess over infinitely many steps."""
        return self.excess_groups.interval(self.excess, level)

    def numbers(self) -> dict[str, float]:
        """Means and standard errors by name."""
        names = ("mean", "stderr", "excess", "excess_stderr")
        return {name: getattr(self, name) for name in names}

    def __sub__(self, other: "LikelihoodBound") -> Difference:
        """How much more data cost than under another schedule or plan, paired by sequence."""
        return paired(self, other)


@checked(clock=CLOCK)
def nll_bound(clock: Clock, planned: Schedule | Plan) -> LikelihoodBound:
    """The bound for the ancestral sampler, from the cross-entropies that a clock measured on its data (masked models).

    A clock flatters what it chose itself a little; a second one, measured on other data, does not. With a clock that
    has orders, schedules and plans are judged on the same sequences. Where steps stop between measured counts they are
    interpolated, and the error bar says by how much. A score network's posteriors are taken as normalised, as
    `sample(…, normalise=True)` draws from them, and a network that is told the time is told that of the number of
    tokens known.
    """
    if isinstance(planned, Plan):
        orders, name = clock.ordered, measured_name(clock, planned.order)
        stops = planned.stops(orders.free)
        measured = np.isin(stops[:-1], orders.profiles[name].levels).all()
        return _bound(
            orders,
            f"{clock.fingerprint} orders",
            clock.free,
            lambda part: part.costs(name, "cross-entropy").total(stops),
            not measured,
        )
    check_same_process(clock, planned)
    alphas = np.append(planned.alphas, 1.0) if planned.times[-1] > 0 else planned.alphas

    def cost(part: AtRandom) -> float:  # L·Σ_k (α_{k+1} - α_k)·h(α_k)
        return float(clock.free * (np.diff(alphas) * part.at_random().curve("cross").at(alphas[:-1])).sum())

    whole: AtRandom = clock.ordered if clock.orders else clock
    source = f"{clock.fingerprint} {'orders' if clock.orders else 'times'}"
    return _bound(whole, source, clock.free, cost, interpolated=True)


class AtRandom(Grouped, Protocol):
    """Something measured that knows masked tokens where the known ones are anywhere."""

    def at_random(self) -> Profile:
        """Sums over masked tokens by how many others are known."""


A = TypeVar("A", bound=AtRandom)


def _bound(whole: A, source: str, free: float, cost: Callable[[A], float], interpolated: bool) -> LikelihoodBound:
    """A cost and its excess over the NELBO, with error bars; where it was `interpolated` they say by how much."""

    def excess(part: A) -> float:
        return cost(part) - free * float(part.at_random().curve("cross").integral(np.array(1.0)))

    gap = interpolation_gap(cost, whole) if interpolated else 0.0
    found, above = fit(cost, whole), fit(excess, whole)
    groups, above_groups = (GroupValues(tuple(each.values.tolist()), gap, source) for each in (found, above))
    return LikelihoodBound(
        found.mean,
        math.hypot(found.stderr, gap),
        above.mean,
        math.hypot(above.stderr, gap),
        groups,
        above_groups,
    )
