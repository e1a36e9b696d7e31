"""Orders that spread evenly over a line, by van der Corput's sequence."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from eigentime.orders.base import Free, Order, Permutation, first_visits


class LowDiscrepancy(Order):
    """Van der Corput's sequence over the free tokens, for any number of them, with a random cyclic shift.

    The j-th place is ⌊n·φ(j)⌋, φ the bits of j mirrored at the point, places already taken left out: after every 2^k
    of them they lie evenly.
    """

    name = "low-discrepancy"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        count = len(positions)
        return positions[(van_der_corput(count) + int(u[0] * count)) % count] if count else positions

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        return doublings(free)


class Dilated(Order):
    """Halving the distance between neighbours round by round, from left to right within a round."""

    name = "dilated"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        count = len(positions)
        if not count:
            return positions
        visited, rounds = van_der_corput(count), []
        done = 0
        while done < count:
            size = max(1, done)
            rounds.append(np.sort(visited[done : done + size]))
            done += size
        return np.asarray(positions[(np.concatenate(rounds) + int(u[0] * count)) % count])

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        return doublings(free)


def doublings(count: int) -> Int[np.ndarray, " k"]:
    """0, 1, 2, 4, … and `count`: so many tokens of van der Corput's sequence lie evenly."""
    return np.array([0, *(1 << np.arange((count - 1).bit_length())), count])


@lru_cache(maxsize=32)
def van_der_corput(count: int) -> Permutation:
    """⌊n·φ(j)⌋ for j = 0, 1, …, places already taken left out."""
    bits = max(1, (count - 1).bit_length())
    mirrored = np.zeros(2**bits, dtype=np.int64)
    for bit in range(bits):
        mirrored |= ((np.arange(2**bits) >> bit) & 1) << (bits - 1 - bit)
    return first_visits(mirrored * count >> bits)
