"""Orders of the user's own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from eigentime.arguments import shown
from eigentime.errors import EigentimeError
from eigentime.orders.base import Free, Order, Permutation


class Given(Order):
    """A permutation of the user's own: entry j is the position revealed j-th."""

    name = "given"
    chance = False

    def __init__(self, permutation: Sequence[int] | np.ndarray) -> None:
        try:
            self.permutation = np.asarray(permutation)
        except (TypeError, ValueError, RuntimeError):
            self.permutation = np.zeros(0)
        flat = self.permutation.ndim == 1 and np.issubdtype(self.permutation.dtype, np.integer)
        if not flat or not np.array_equal(np.sort(self.permutation), np.arange(self.permutation.size)):
            raise EigentimeError(
                "An order is a name, a function, or a list that must hold every position 0 … L-1 once, not "
                f"{shown(permutation)}."
            )

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        if len(free) != len(self.permutation):
            raise EigentimeError(f"The order has {len(self.permutation)} positions, the sequence {len(free)}.")
        return np.asarray(self.permutation[free[self.permutation]])

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "permutation": self.permutation.tolist()}


class Custom(Order):
    """A function of the user's own: (free (L,) booleans, u (L,) uniforms) → the free positions in order."""

    name = "custom"

    def __init__(self, function: Callable[[Free, Float[np.ndarray, " length"]], Any]) -> None:
        self.function = function

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        arranged = np.asarray(self.function(free, u))
        if not np.array_equal(np.sort(arranged), np.flatnonzero(free)):
            raise EigentimeError("The order's function must return every free position once.")
        return arranged
