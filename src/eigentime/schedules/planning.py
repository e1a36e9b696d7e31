"""Choosing a plan by its certificate.

With cumulative counts 0 = n_0 < … < n_K = n and an order π that does not look at content, a sampler that draws the
tokens of one step independently has, for a fixed π,

    KL(data ‖ samples) = Σ_k Σ_{j=n_{k-1}}^{n_k - 1} h_π(j | n_{k-1}) - H(data),

and at most that, on average over π, where the order is drawn for every sequence.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from eigentime.arguments import checked, listed, optional, whole
from eigentime.errors import EigentimeError
from eigentime.intervals import GroupValues
from eigentime.measure.clock import CLOCK, Clock
from eigentime.measure.costs import Estimator
from eigentime.measure.groups import cross_fit, interpolation_gap
from eigentime.measure.ordered import Orders, PlanCosts
from eigentime.orders import Custom, aligned_stops, make_order, order_from_spec
from eigentime.schedules.certificate import Certificate, certificate_of
from eigentime.schedules.paths import lightest_paths, path_nodes
from eigentime.schedules.plan import Plan, Stops
from eigentime.schedules.schedule import check_steps

MOST_NODES = 1024
"""How many counts a plan may choose from at most."""
BEYOND = 0.0
"""By so many standard errors counts of dynamic programming must be better than aligned ones on other sequences. Being
better at all is enough: results/places.json holds what stricter rules cost."""
Choice = tuple[str, Stops]
"""An order by name, and cumulative counts."""


@checked(clock=CLOCK, counts=optional(listed(whole(1))))
def plan(clock: Clock, steps: int | None = None, *, order: Any = None, counts: Sequence[int] | None = None) -> Plan:
    """The plan with the lowest certified error.

    clock    measured with orders=[…], for example et.measure(model, data, orders=["low-discrepancy"])
    steps    network evaluations
    order    only this one, by name; otherwise the best of those measured
    counts   your own numbers of tokens per step, with a given order: then this only certifies them
    """
    orders = clock.ordered
    names = list(clock.orders) if order is None else [measured_name(clock, order)]
    free = orders.free
    provenance: dict[str, Any] = {
        "clock": clock.fingerprint,
        "model": clock.model,
        "package": clock.package,
        "free": clock.free,
    }
    if counts is not None:
        if steps is not None or order is None:
            raise EigentimeError("Your own counts come with an order, and say themselves how many steps there are.")
        name, stops = names[0], np.concatenate([[0], np.cumsum(counts)]).astype(int)
        if min(counts, default=0) < 1 or stops[-1] != free:
            raise EigentimeError(f"counts must be positive and add up to the {free} free tokens, not {stops[-1]}.")
    else:
        steps = check_steps(steps)
        if steps > free:
            raise EigentimeError(f"A plan for {free} free tokens has at most {free} steps, not {steps}.")
        name, stops = _best(orders, steps, names)
        provenance["candidates"] = names
    spec, own = clock.orders[name].order, order is not None and not isinstance(order, str)
    if spec["name"] == Custom.name and not own:
        raise EigentimeError("The order to use is a function, which a clock cannot hold: pass it again as order=….")
    made = make_order(order) if own else order_from_spec(spec)
    planned = Plan(tuple(np.diff(stops).tolist()), made, clock.length, provenance=provenance)
    return replace(planned, predicted_error=certify_plan(clock, planned))


def certify_plan(
    clock: Clock, planned: Plan, estimator: Estimator = "entropy", notes: Sequence[str] = ()
) -> Certificate:
    """The path error of a plan; `notes` say what the number does not cover.

    Where this clock chose the plan, it is cross-fitted: chosen again on one half of the sequences, certified on the
    other, and the halves exchanged.
    """
    orders, mine = clock.ordered, (measured_name(clock, planned.order), planned.stops(clock.ordered.free))
    if orders.groups < 2:
        raise EigentimeError("Certifying a plan needs at least two measured sequences.")
    candidates = planned.provenance.get("candidates", []) if _made_by(clock, planned) else []
    chosen = bool(candidates) and _same(_best(orders, planned.steps, candidates), mine)
    halves = [np.arange(1, orders.groups, 2), np.arange(0, orders.groups, 2)]
    found = cross_fit(
        orders,
        halves,
        lambda groups: _best(orders.take(groups), planned.steps, candidates) if chosen else mine,
        lambda part, choice: part.error(*choice, estimator),
    )
    gap = interpolation_gap(lambda part: part.error(*mine, estimator), orders)
    degrees, source = orders.groups - len(halves), f"{clock.fingerprint} orders"
    lost = found.mean - orders.error(*mine, estimator) if chosen else 0.0
    return certificate_of(found, gap, degrees, source, clock.exact, estimator, notes, lost)


def extra_plan_cost(clock: Clock, planned: Plan) -> Certificate:
    """How many nats more a plan costs here than this clock's own of as many steps, on the same sequences, which did not
    choose it; data decide, and for an exact model its own entropies."""
    orders, mine = clock.ordered, (measured_name(clock, planned.order), planned.stops(clock.ordered.free))
    if orders.groups < 2:
        raise EigentimeError("Comparing plans needs at least two measured sequences.")
    estimator: Estimator = "entropy" if orders.exact else "cross-entropy"
    halves = [np.arange(1, orders.groups, 2), np.arange(0, orders.groups, 2)]
    found = cross_fit(
        orders,
        halves,
        lambda groups: _best(orders.take(groups), planned.steps, list(clock.orders)),
        lambda part, own: part.error(*mine, estimator) - part.error(*own, estimator),
    )
    values = GroupValues(tuple(found.values.tolist()), 0.0, f"{clock.fingerprint} orders")
    degrees = orders.groups - len(halves)
    return Certificate(found.mean, found.stderr, clock.exact, degrees=degrees, groups=values)


def measured_name(clock: Clock, order: Any) -> str:
    """Under which name the clock knows an order, given by name, as a permutation or as a function."""
    if isinstance(order, str):
        if order in clock.orders:
            return order
        raise EigentimeError(f"The order {order!r} was not measured; this clock knows {', '.join(clock.orders)}.")
    spec = make_order(order).spec()
    for name, profile in clock.orders.items():
        if profile.order == spec:
            return name
    raise EigentimeError(f"This {spec['name']} order was not measured; this clock knows {', '.join(clock.orders)}.")


def plan_errors(clock: Clock, name: str, most: int) -> Float[np.ndarray, " most"]:
    """Path errors of the best plans of an order with 1 … `most` steps, from one dynamic programme."""
    costs, few = clock.ordered.costs(name), len(clock.orders[name].levels) - 1
    weights = np.empty(0)
    for steps in sorted({min(few, most), most} - {0}):  # up to `few` steps plans stop only at measured counts
        found, _ = lightest_paths(costs.matrix(_nodes(costs, steps)), steps)
        weights = np.append(weights, found[len(weights) :])
    return weights - clock.ordered.one_by_one()


def plan_steps_for(clock: Clock, error: float, order: str | None, most: int) -> int:
    """The fewest steps of the best plan whose predicted path error is at most `error` nats."""
    names = list(clock.orders) if order is None else [order]
    if not names or any(name not in clock.orders for name in names):
        raise EigentimeError("This clock was not measured in that order: et.measure(model, data, orders=[…]).")
    most = min(most, clock.orders[names[0]].free)
    errors = np.min([plan_errors(clock, name, most) for name in names], 0)
    enough = np.flatnonzero(errors <= error)
    if not len(enough):
        raise EigentimeError(f"Even {most} steps of a plan stay above {error:g} nats; allow more error.")
    steps = int(enough[0]) + 1
    certified = plan(clock, steps, order=order).predicted_error
    assert certified is not None
    if certified.stderr > error:
        warnings.warn(
            f"Plans of {steps} steps cost {certified}: the error bar is larger than the {error:g} nats asked for. "
            "Measure the orders with a larger budget.",
            stacklevel=5,
        )
    return steps


def _nodes(costs: PlanCosts, steps: int) -> Stops:
    """The counts to choose from: where there are enough of them only measured ones, so that nothing is interpolated."""
    if steps < len(costs.levels):
        return np.append(costs.levels, costs.free)
    if costs.free < MOST_NODES:
        return np.arange(costs.free + 1)
    even = np.round(np.linspace(0, costs.free, MOST_NODES)).astype(int)
    return np.unique(np.concatenate([even, costs.levels, [costs.free]]))


def _best(orders: Orders, steps: int, names: list[str]) -> Choice:
    """Order and stops of least error."""
    found = [(name, chosen_stops(orders, steps, name)) for name in names]
    return min(found, key=lambda choice: _judge(orders, choice[0]).total(choice[1]))


def _judge(orders: Orders, name: str) -> PlanCosts:
    """What orders and counts are compared by. A network is judged by cross-entropy, which is what data cost under the
    plan, network error and all; an exact model's own entropies say the same with less noise."""
    return orders.costs(name, "entropy" if orders.exact else "cross-entropy")


def chosen_stops(orders: Orders, steps: int, name: str, beyond: float = BEYOND) -> Stops:
    """Counts for an order: aligned ones, unless those of dynamic programming are better by more than `beyond` standard
    errors of the difference, on sequences that did not choose them. Counts chosen under noise cost more than they seem
    to.

    The sequences are halved; each half judges what the other one chose of both kinds, group by group in pairs.
    """
    everything = np.arange(orders.groups)
    optimal, aligned = lightest_stops(orders, steps, name), best_aligned_stops(orders, steps, name)
    if aligned is None or np.array_equal(optimal, aligned):
        return optimal
    if len(everything) < 2:  # nobody else to judge
        return aligned
    gains = []
    for half in (everything[::2], everything[1::2]):
        other = orders.take(np.setdiff1d(everything, half))
        found, plain = lightest_stops(other, steps, name), best_aligned_stops(other, steps, name)
        for group in half:
            judge = _judge(orders.take(np.array([group])), name)
            gains.append(judge.total(aligned if plain is None else plain) - judge.total(found))
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    return optimal if np.mean(gains) > beyond * error else aligned


def lightest_stops(orders: Orders, steps: int, name: str) -> Stops:
    """What dynamic programming finds for an order, by the model's own entropies."""
    costs = orders.costs(name)
    nodes = _nodes(costs, steps)
    _, previous = lightest_paths(costs.matrix(nodes), steps)
    return np.asarray(nodes[path_nodes(previous, steps)])


def best_aligned_stops(orders: Orders, steps: int, name: str) -> Stops | None:
    """The best aligned counts of an order, of those that were measured (if counts have to be interpolated, of all)."""
    judge = _judge(orders, name)
    measured = np.append(judge.levels, judge.free)
    found = [
        stops
        for stops in aligned_stops(_own_stops(orders, name), orders.free, steps)
        if steps >= len(judge.levels) or np.isin(stops, measured).all()
    ]
    return min(found, key=judge.total, default=None)


def _own_stops(orders: Orders, name: str) -> Stops | None:
    """Where an order is best interrupted, if it says so; a user's function does not."""
    spec = orders.profiles[name].order
    return None if spec["name"] == Custom.name else order_from_spec(spec).stops(orders.free)


def _made_by(clock: Clock, planned: Plan) -> bool:
    return planned.provenance.get("clock") == clock.fingerprint


def _same(one: Choice, other: Choice) -> bool:
    return one[0] == other[0] and np.array_equal(one[1], other[1])
