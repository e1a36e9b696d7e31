"""Where to reveal first: orders of the places of a masked sequence, one file an idea."""

from eigentime.orders.base import Order
from eigentime.orders.own import Custom
from eigentime.orders.registry import ORDERS, make_order, order_from_spec

__all__ = ["ORDERS", "Custom", "Order", "make_order", "order_from_spec"]
