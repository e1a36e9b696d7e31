"""The measuring pass over orders: the same sequences in every order, so that differences are sharp."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.dependence import pair_sequences, pair_sums, pairs_of
from eigentime.measure.levels import Source
from eigentime.measure.ordered import OrderProfile, dependence_of, measure_order, plan_levels
from eigentime.measure.seen import Seen, part_in_groups
from eigentime.measure.share import Share
from eigentime.orders import Order, is_pairwise, make_order, order_from_spec

Advance = Callable[[int, int], None]


def with_orders(
    clock: Clock,
    source: Source,
    orders: Sequence[Any],
    *,
    shape: Sequence[int] | None,
    budget: int,
    advance: Advance | None = None,
) -> Clock:
    """The clock with h_π(j | m) of every order, `random` first: the dependence by offset comes from its pass. Orders
    made of pairs of places need those as well, which takes the budget once more.

    `budget` is for each order; `shape` is that of a grid whose cells the tokens are.
    """
    model, source = source.model, replace(source, most_rows=None)  # orders look at all masked tokens
    if not model.process.absorbing:
        raise EigentimeError("Orders are for masked models: this one's kernel has no mask.")
    shape = (model.length,) if shape is None else tuple(shape)
    levels = plan_levels(int(source.free), budget)
    seen = source.seen(0, max(2, budget // len(levels)))
    wanted = ["random", *(order for order in orders if not (isinstance(order, str) and order == "random"))]
    found = clock
    with torch.no_grad():
        if any(is_pairwise(order) for order in orders):
            after = source.seen(seen.stretches[0].count, pair_sequences(source, budget))
            found = _with_pairs(found, source, after, shape)
        for number, order in enumerate(wanted):
            made = make_order(order, shape, found.pairs if is_pairwise(order) else found.dependence)
            own = made.stops(int(source.free))
            at = levels if own is None else np.union1d(levels, own[:-1])
            name = _unused(made.name, found.orders)
            found = _with_order(found, source, name, made, at, seen, None if number else shape)
            if advance:
                advance(number + 1, len(wanted))
    return found


def with_orders_share(clock: Clock, source: Source, share: Share, advance: Advance | None = None) -> Clock:
    """The same for one of several parts: orders and levels are the pilot's."""
    source, pilot, found = replace(source, most_rows=None), share.pilot, clock
    assert pilot.dependence is not None
    shape = pilot.dependence.shape
    with torch.no_grad():
        if pilot.pairs is not None:
            found = _with_pairs(found, source, share.pairs(source), shape)
        seen = share.orders(source)
        for number, (name, profile) in enumerate(pilot.orders.items()):
            order = order_from_spec(profile.order)
            found = _with_order(found, source, name, order, profile.levels, seen, None if number else shape)
            if advance:
                advance(number + 1, len(pilot.orders))
    return found


def _with_pairs(clock: Clock, source: Source, seen: Seen, shape: tuple[int, ...]) -> Clock:
    """With the dependence of every place on every other."""
    (stretch,) = seen.stretches
    sums, spent = pair_sums(source, stretch.first, stretch.count)
    return replace(
        clock,
        pairs=pairs_of(sums, shape),
        sums={**clock.sums, "pairs": sums},
        seen={**clock.seen, "pairs": seen},
        evaluations=clock.evaluations + spent,
    )


def _with_order(
    clock: Clock,
    source: Source,
    name: str,
    order: Order,
    at: Int[np.ndarray, " g"],
    seen: Seen,
    shape: tuple[int, ...] | None,
) -> Clock:
    """With one more order and, with a shape, the dependence by offset."""
    (stretch,) = seen.stretches
    values, spent, near = measure_order(source, order, at, stretch.count, shape, stretch.first)
    profile = OrderProfile(
        order.spec(),
        at,
        part_in_groups(values[:, 0, 0, 0] * 0 + 1, seen),
        part_in_groups(values[..., 0], seen),
        part_in_groups(values[..., 1], seen),
    )
    found = replace(
        clock,
        orders={**clock.orders, name: profile},
        seen={**clock.seen, "orders": seen},
        evaluations=clock.evaluations + spent,
    )
    if near is None:
        return found
    return replace(found, dependence=dependence_of(near), sums={**clock.sums, "dependence": near.sum(0)})


def _unused(name: str, taken: Iterable[str]) -> str:
    """The order's name, numbered where another of its kind was measured before."""
    number = sum(other == name or other.startswith(f"{name}-") for other in taken)
    return name if not number else f"{name}-{number + 1}"
