"""The two orders that need no thought: by chance, and from left to right."""

import numpy as np
from jaxtyping import Float

from eigentime.orders.base import Free, Order, Permutation


class Random(Order):
    """Any order is as likely as any other: what a time schedule does."""

    name = "random"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        return positions[np.argsort(u[positions])]


class Raster(Order):
    """From the first token to the last."""

    name = "raster"
    chance = False

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        return np.flatnonzero(free)
