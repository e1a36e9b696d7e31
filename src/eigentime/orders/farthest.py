"""The order that stays away from what is known, by the dependence that was measured."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from eigentime.errors import EigentimeError
from eigentime.orders.base import Dependence, Free, Order, Permutation

STARTS = 16
"""From how many places a farthest-point order may start."""


class Farthest(Order):
    """Always the token that depends least on those already there, given tokens included, from a random start.

    `dependence` says, for every offset along every axis, how many nats revealing a token there takes from another's
    entropy.
    """

    name = "farthest"

    def __init__(self, dependence: Dependence) -> None:
        self.dependence = np.asarray(dependence, dtype=np.float64)

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        if len(free) != self.dependence.size:
            raise EigentimeError(
                f"The dependence was measured on {self.dependence.size} tokens, this sequence has {len(free)}."
            )
        start = int(u[0] * STARTS)
        return _farthest(self.dependence.tobytes(), self.dependence.shape, free.tobytes(), start)

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "dependence": self.dependence.tolist()}

    @classmethod
    def build(cls, shape: Sequence[int] | None, dependence: Dependence | None) -> Self:
        if dependence is None:
            raise EigentimeError(
                "The farthest order needs a measured dependence: et.measure(model, orders=['farthest'])."
            )
        return cls(dependence)


@lru_cache(maxsize=256)
def _farthest(dependence: bytes, shape: tuple[int, ...], free: bytes, start: int) -> Permutation:
    table = np.frombuffer(dependence, dtype=np.float64).reshape(shape)
    mask = np.frombuffer(free, dtype=bool)
    places = np.stack(np.unravel_index(np.arange(mask.size), shape))

    def felt_from(position: int) -> Float[np.ndarray, " length"]:
        return np.asarray(table[tuple(np.abs(places - places[:, position : position + 1]))])

    strongest, total = np.full(mask.size, -np.inf), np.zeros(mask.size)
    for position in np.flatnonzero(~mask).tolist():
        strongest, total = np.maximum(strongest, felt_from(position)), total + felt_from(position)
    left, arranged = mask.copy(), []
    positions = np.flatnonzero(mask)
    if len(positions) == mask.size:  # nothing is given: start somewhere, else far from what is given
        arranged.append(int(positions[start * len(positions) // STARTS]))
    while left.any():
        if not arranged or not left[arranged[-1]]:
            candidates = np.flatnonzero(left)
            ranked = np.lexsort((total[candidates], strongest[candidates]))
            arranged.append(int(candidates[ranked[0]]))
        left[arranged[-1]] = False
        felt = felt_from(arranged[-1])
        strongest, total = np.maximum(strongest, felt), total + felt
    return np.array(arranged, dtype=int)
