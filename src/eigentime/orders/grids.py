"""Orders that spread evenly over a grid, by low-discrepancy sequences."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Self

import numpy as np
from jaxtyping import Float
from scipy.stats import qmc

from eigentime.errors import EigentimeError
from eigentime.orders.base import Dependence, Free, Order, Permutation, first_visits


class Grid(Order):
    """A sequence over the cells of a grid such as (C, H, W), every axis with a random cyclic shift."""

    engine: type[qmc.Halton | qmc.Sobol]

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(int(size) for size in shape)
        if any(size < 1 for size in self.shape):
            raise EigentimeError(f"The shape of a grid has sizes of at least 1, not {self.shape}.")

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        if len(free) != prod(self.shape):
            raise EigentimeError(f"A grid of shape {self.shape} has {prod(self.shape)} tokens, not {len(free)}.")
        cells = np.stack(np.unravel_index(_visits(self.engine, self.shape), self.shape))
        shift = (u[: len(self.shape)] * self.shape).astype(int)
        shifted = (cells + shift[:, None]) % np.array(self.shape)[:, None]
        arranged = np.ravel_multi_index(tuple(shifted), self.shape)
        return np.asarray(arranged[free[arranged]])

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "shape": list(self.shape)}

    @classmethod
    def build(cls, shape: Sequence[int] | None, dependence: Dependence | None) -> Self:
        if shape is None:
            raise EigentimeError(f"The {cls.name} order runs over a grid: say its shape, such as shape=(3, 32, 32).")
        return cls(shape)


class Halton(Grid):
    """Halton's sequence."""

    name, engine = "halton", qmc.Halton


class Sobol(Grid):
    """Sobol's sequence."""

    name, engine = "sobol", qmc.Sobol


@lru_cache(maxsize=8)
def _visits(kind: type[qmc.Halton | qmc.Sobol], shape: tuple[int, ...]) -> Permutation:
    """Cells in the order in which a low-discrepancy sequence first enters them."""
    engine = kind(len(shape), scramble=False)
    cells, total, visits = np.array(shape), prod(shape), np.empty(0, dtype=np.int64)
    draws = 1 << max(4, (total - 1).bit_length())
    for _ in range(8):
        points = (engine.random(draws) * cells).astype(int)
        visits = first_visits(np.append(visits, np.ravel_multi_index(tuple(points.T), shape)))
        if len(visits) == total:
            return visits
    return np.append(visits, np.setdiff1d(np.arange(total), visits))  # corners that it would take very long to enter
