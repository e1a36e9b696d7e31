"""Orders: which tokens of a masked sequence are revealed first. No order looks at what a token holds.

An order gives every free token a rank, 0 for the one revealed first; given tokens have rank -1. Where chance plays a
part it is one draw a sequence, so that no place is favoured.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.pictured import settings
from eigentime.process.randomness import Purpose, uniforms

Free = Bool[np.ndarray, " length"]
Permutation = Int[np.ndarray, " n"]
Dependence = Float[np.ndarray, "..."]


class Order(ABC):
    """A rule for where to reveal next."""

    name: str
    chance: bool = True
    """Whether the uniforms play a part."""
    pairwise: ClassVar[bool] = False
    """Whether `build` needs the dependence of every place on every other, (L, L), rather than by offset."""

    @abstractmethod
    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        """The free positions of one sequence in the order in which they are revealed; u are its uniforms."""

    def ranks(self, free: Bool[Tensor, "n length"], seed: int, first: int = 0) -> Int[Tensor, "n length"]:
        """Ranks for sequences first … first+n-1, -1 where a token is given."""
        count, length = free.shape
        chance = uniforms(seed, Purpose.ORDER, count, length, first=first).numpy()
        ranks = np.full((count, length), -1)
        for row, u, mask in zip(ranks, chance, free.numpy(), strict=True):
            arranged = self.arrange(mask, u)
            row[arranged] = np.arange(len(arranged))
        return torch.from_numpy(ranks)

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        """Cumulative counts at which this order is best interrupted, where it has such places."""
        return None

    def spec(self) -> dict[str, Any]:
        """A JSON description from which `order_from_spec` rebuilds this order."""
        return {"name": self.name}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self.spec(), 'name')})"

    @classmethod
    def build(cls, shape: Sequence[int] | None, dependence: Dependence | None) -> Self:
        """The order for tokens that are the cells of a grid, of which this dependence was measured; most need
        neither."""
        return cls()

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "Order":
        """The order that `spec` described."""
        return cls.build(spec.get("shape"), np.array(spec["dependence"]) if "dependence" in spec else None)


def first_visits(places: Int[np.ndarray, " visits"]) -> Permutation:
    """Every place once, in the order of its first visit."""
    return places[np.sort(np.unique(places, return_index=True)[1])]


def offsets(shape: Sequence[int]) -> Int[np.ndarray, "length length"]:
    """For every two cells of a grid, where a table of this shape holds their distance along each axis."""
    cells = np.stack(np.unravel_index(np.arange(prod(shape)), shape))
    return np.asarray(np.ravel_multi_index(tuple(np.abs(cells[:, :, None] - cells[:, None])), shape))


def aligned_stops(own: Int[np.ndarray, " k"] | None, free: int, steps: int) -> list[Int[np.ndarray, " k"]]:
    """Cumulative counts that owe nothing to chance: equal numbers of tokens, and the stops that are an order's `own`.

    Of those the first are merged where there are too many; where there are too few, the largest step is halved.
    """
    equal = np.round(np.linspace(0, free, steps + 1)).astype(int)
    if own is None:
        return [equal]
    fitted = np.append(0, own[max(1, len(own) - steps) :])
    while len(fitted) <= steps:
        largest = int(np.argmax(np.diff(fitted)))
        fitted = np.insert(fitted, largest + 1, (fitted[largest] + fitted[largest + 1]) // 2)
    return [equal, fitted]
