"""Where to reveal first: orders of the places of a masked sequence, one file an idea."""

from eigentime.orders.base import Order, aligned_stops, offsets
from eigentime.orders.own import Custom
from eigentime.orders.registry import ORDERS, is_pairwise, make_order, order_from_spec

__all__ = ["ORDERS", "Custom", "Order", "aligned_stops", "is_pairwise", "make_order", "offsets", "order_from_spec"]
