"""The measuring pass over orders: the same sequences in every order, so that differences are sharp."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.dependence import measure_pairs
from eigentime.measure.groups import in_groups
from eigentime.measure.levels import Source
from eigentime.measure.ordered import OrderProfile, dependence_of, measure_order, plan_levels
from eigentime.orders import is_pairwise, make_order

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
    sequences = max(2, budget // len(levels))
    wanted = ["random", *(order for order in orders if not (isinstance(order, str) and order == "random"))]
    profiles: dict[str, OrderProfile] = {}
    dependence, pairs, spent = None, None, 0
    with torch.no_grad():
        if any(is_pairwise(order) for order in orders):
            pairs, spent = measure_pairs(source, budget, shape, skipped=sequences)
        for number, order in enumerate(wanted):
            made = make_order(order, shape, pairs if is_pairwise(order) else dependence)
            own = made.stops(int(source.free))
            at = levels if own is None else np.union1d(levels, own[:-1])
            values, evaluations, near = measure_order(source, made, at, sequences, None if number else shape)
            dependence = dependence_of(near) if near is not None else dependence
            rows = len(source.data)
            profiles[_unused(made.name, profiles)] = OrderProfile(
                made.spec(),
                at,
                in_groups(values[:, 0, 0, 0] * 0 + 1, rows),
                in_groups(values[..., 0], rows),
                in_groups(values[..., 1], rows),
            )
            spent += evaluations
            if advance:
                advance(number + 1, len(wanted))
    evaluations = clock.evaluations + spent
    return replace(clock, orders=profiles, dependence=dependence, pairs=pairs, evaluations=evaluations)


def _unused(name: str, taken: Iterable[str]) -> str:
    """The order's name, numbered where another of its kind was measured before."""
    number = sum(other == name or other.startswith(f"{name}-") for other in taken)
    return name if not number else f"{name}-{number + 1}"
