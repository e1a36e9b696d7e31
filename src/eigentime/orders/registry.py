"""Every order by name. A new one is a class and one line here."""

from collections.abc import Callable, Sequence
from typing import Any

from eigentime.errors import EigentimeError
from eigentime.orders.base import Dependence, Order
from eigentime.orders.bisection import Bisection
from eigentime.orders.farthest import Farthest
from eigentime.orders.grids import Halton, Sobol
from eigentime.orders.lattice import Lattice
from eigentime.orders.own import Custom, Given
from eigentime.orders.pairs import PairOrder
from eigentime.orders.plain import Random, Raster
from eigentime.orders.spread import Dilated, LowDiscrepancy

ORDERS: dict[str, type[Order]] = {
    Random.name: Random,
    LowDiscrepancy.name: LowDiscrepancy,
    Dilated.name: Dilated,
    Bisection.name: Bisection,
    Raster.name: Raster,
    Halton.name: Halton,
    Sobol.name: Sobol,
    Farthest.name: Farthest,
    PairOrder.name: PairOrder,
}


NUMBERED: dict[str, Callable[[int], Order]] = {"lattice": Lattice}
"""Orders whose names end in a number: lattice-8."""


def make_order(order: Any, shape: Sequence[int] | None = None, dependence: Dependence | None = None) -> Order:
    """An order by name, from a permutation, or from a function."""
    if isinstance(order, Order):
        return order
    if callable(order) and not isinstance(order, type):
        return Custom(order)
    if not isinstance(order, str):
        return Given(order)
    name, _, number = order.rpartition("-")
    if name in NUMBERED and number.isdigit():
        return NUMBERED[name](int(number))
    if order not in ORDERS:
        known = ", ".join((*ORDERS, *(f"{name}-8" for name in NUMBERED)))
        raise EigentimeError(f"Unknown order {order!r}; known are {known}, a permutation or a function.")
    return ORDERS[order].build(shape, dependence)


def order_from_spec(spec: dict[str, Any]) -> Order:
    """Rebuild the order that `Order.spec` described."""
    if spec["name"] == Given.name:
        return Given(spec["permutation"])
    if spec["name"] in NUMBERED:
        return NUMBERED[spec["name"]](spec["period"])
    if spec["name"] == Custom.name:
        raise EigentimeError("This plan's order is a function, which no file can hold; make the plan again.")
    return ORDERS[spec["name"]].from_spec(spec) if spec["name"] in ORDERS else make_order(spec["name"])


def is_pairwise(order: Any) -> bool:
    """Whether an order, by name, is made of the dependence of every place on every other."""
    return isinstance(order, str) and order in ORDERS and ORDERS[order].pairwise
