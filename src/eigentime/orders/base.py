"""Orders: which tokens of a masked sequence are revealed first. No order looks at what a token holds.

An order gives every free token a rank, 0 for the one revealed first; given tokens have rank -1. Where chance plays a
part it is one draw a sequence, so that no place is favoured.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.process.randomness import Purpose, uniforms

Free = Bool[np.ndarray, " length"]
Permutation = Int[np.ndarray, " n"]
Dependence = Float[np.ndarray, "..."]


class Order(ABC):
    """A rule for where to reveal next."""

    name: str
    chance: bool = True
    """Whether the uniforms play a part."""

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

    @classmethod
    def build(cls, shape: Sequence[int] | None, dependence: Dependence | None) -> Self:
        """The order for tokens that are the cells of a grid, of which this dependence was measured; most need
        neither."""
        return cls()


def first_visits(places: Int[np.ndarray, " visits"]) -> Permutation:
    """Every place once, in the order of its first visit."""
    return places[np.sort(np.unique(places, return_index=True)[1])]
