"""Orders: which tokens of a masked sequence are revealed first. No order looks at what a token holds.

An order gives every free token a rank, 0 for the one revealed first; given tokens have rank -1. Where chance plays a
part it is one draw a sequence, so that no place is favoured.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.stats import qmc
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.randomness import Purpose, uniforms

Free = Bool[np.ndarray, " length"]
Permutation = Int[np.ndarray, " n"]
STARTS = 16
"""From how many places a farthest-point order may start."""


class Order(ABC):
    """A rule for where to reveal next."""

    name: str

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

    def spec(self) -> dict[str, Any]:
        """A JSON description from which `order_from_spec` rebuilds this order."""
        return {"name": self.name}


class Random(Order):
    """Any order is as likely as any other: what a time schedule does."""

    name = "random"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        return positions[np.argsort(u[positions])]


class Raster(Order):
    """From the first token to the last."""

    name = "raster"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        return np.flatnonzero(free)


class LowDiscrepancy(Order):
    """Van der Corput's sequence over the free tokens, for any number of them, with a random cyclic shift.

    The j-th place is ⌊n·φ(j)⌋, φ the bits of j mirrored at the point, places already taken left out: after every 2^k
    of them they lie evenly.
    """

    name = "low-discrepancy"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        count = len(positions)
        return positions[(_van_der_corput(count) + int(u[0] * count)) % count] if count else positions


class Dilated(Order):
    """Halving the distance between neighbours round by round, from left to right within a round."""

    name = "dilated"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        count = len(positions)
        if not count:
            return positions
        visited, rounds = _van_der_corput(count), []
        done = 0
        while done < count:
            size = max(1, done)
            rounds.append(np.sort(visited[done : done + size]))
            done += size
        return positions[(np.concatenate(rounds) + int(u[0] * count)) % count]


class Grid(Order):
    """A Halton or Sobol sequence over the cells of a grid such as (C, H, W), every axis with a random cyclic shift."""

    def __init__(self, name: str, shape: Sequence[int]) -> None:
        self.name, self.shape = name, tuple(int(size) for size in shape)
        if any(size < 1 for size in self.shape):
            raise EigentimeError(f"The shape of a grid has sizes of at least 1, not {self.shape}.")

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        if len(free) != prod(self.shape):
            raise EigentimeError(f"A grid of shape {self.shape} has {prod(self.shape)} tokens, not {len(free)}.")
        cells = np.stack(np.unravel_index(_grid_order(self.name, self.shape), self.shape))
        shift = (u[: len(self.shape)] * self.shape).astype(int)
        shifted = (cells + shift[:, None]) % np.array(self.shape)[:, None]
        arranged = np.ravel_multi_index(tuple(shifted), self.shape)
        return arranged[free[arranged]]

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "shape": list(self.shape)}


class Farthest(Order):
    """Always the token that depends least on those already there, given tokens included, from a random start.

    `dependence` says, for every offset along every axis, how many nats revealing a token there takes from another's
    entropy.
    """

    name = "farthest"

    def __init__(self, dependence: Float[np.ndarray, "..."]) -> None:
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


class Given(Order):
    """A permutation of the user's own: entry j is the position revealed j-th."""

    name = "given"

    def __init__(self, permutation: Sequence[int] | np.ndarray) -> None:
        self.permutation = np.asarray(permutation)
        if self.permutation.ndim != 1 or not np.array_equal(
            np.sort(self.permutation), np.arange(self.permutation.size)
        ):
            raise EigentimeError("An order given as a list must hold every position 0 … L-1 once.")

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        if len(free) != len(self.permutation):
            raise EigentimeError(f"The order has {len(self.permutation)} positions, the sequence {len(free)}.")
        return self.permutation[free[self.permutation]]

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


SIMPLE: dict[str, type[Order]] = {order.name: order for order in (Random, LowDiscrepancy, Dilated, Raster)}
GRIDS = ("halton", "sobol")
ORDERS = (*SIMPLE, *GRIDS, "farthest")


def make_order(
    order: Any, shape: Sequence[int] | None = None, dependence: Float[np.ndarray, "..."] | None = None
) -> Order:
    """An order by name, from a permutation, or from a function."""
    if isinstance(order, Order):
        return order
    if callable(order):
        return Custom(order)
    if not isinstance(order, str):
        return Given(order)
    if order in SIMPLE:
        return SIMPLE[order]()
    if order in GRIDS:
        if shape is None:
            raise EigentimeError(f"The {order} order runs over a grid: say its shape, such as shape=(3, 32, 32).")
        return Grid(order, shape)
    if order == "farthest":
        if dependence is None:
            raise EigentimeError(
                "The farthest order needs a measured dependence: et.measure(model, orders=['farthest'])."
            )
        return Farthest(dependence)
    raise EigentimeError(f"Unknown order {order!r}; known are {', '.join(ORDERS)}, a permutation or a function.")


def order_from_spec(spec: dict[str, Any]) -> Order:
    """Rebuild the order that `Order.spec` described."""
    if spec["name"] == Given.name:
        return Given(spec["permutation"])
    if spec["name"] == Custom.name:
        raise EigentimeError("This plan's order is a function, which no file can hold; make the plan again.")
    dependence = np.array(spec["dependence"]) if "dependence" in spec else None
    return make_order(spec["name"], spec.get("shape"), dependence)


@lru_cache(maxsize=32)
def _van_der_corput(count: int) -> Permutation:
    bits = max(1, (count - 1).bit_length())
    mirrored = np.zeros(2**bits, dtype=np.int64)
    for bit in range(bits):
        mirrored |= ((np.arange(2**bits) >> bit) & 1) << (bits - 1 - bit)
    return _first_visits(mirrored * count >> bits)


@lru_cache(maxsize=8)
def _grid_order(name: str, shape: tuple[int, ...]) -> Permutation:
    """Cells in the order in which a low-discrepancy sequence first enters them."""
    engine = (qmc.Sobol if name == "sobol" else qmc.Halton)(len(shape), scramble=False)
    cells, total, visits = np.array(shape), prod(shape), np.empty(0, dtype=np.int64)
    draws = 1 << max(4, (total - 1).bit_length())
    for _ in range(8):
        points = (engine.random(draws) * cells).astype(int)
        visits = _first_visits(np.append(visits, np.ravel_multi_index(tuple(points.T), shape)))
        if len(visits) == total:
            return visits
    return np.append(visits, np.setdiff1d(np.arange(total), visits))  # corners that it would take very long to enter


def _first_visits(places: Int[np.ndarray, " visits"]) -> Permutation:
    return places[np.sort(np.unique(places, return_index=True)[1])]


@lru_cache(maxsize=256)
def _farthest(dependence: bytes, shape: tuple[int, ...], free: bytes, start: int) -> Permutation:
    table = np.frombuffer(dependence, dtype=np.float64).reshape(shape)
    mask = np.frombuffer(free, dtype=bool)
    places = np.stack(np.unravel_index(np.arange(mask.size), shape))

    def felt_from(position: int) -> Float[np.ndarray, " length"]:
        return table[tuple(np.abs(places - places[:, position : position + 1]))]

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
