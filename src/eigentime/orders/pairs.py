"""The order made of measured pairs: places that tell much of each other come at different steps."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from eigentime.errors import EigentimeError
from eigentime.orders.base import Dependence, Order
from eigentime.orders.own import Given

Symmetric = Float[np.ndarray, "n n"]
ENOUGH = 1e-12


class PairOrder(Given):
    """Halve the places so that those of one half depend least on each other, then halve the halves, and so on.

    On a line whose neighbours depend most that is every second place, then every fourth, …: van der Corput's sequence.
    But places need no coordinates here: only `dependence` (L, L) counts, how many nats revealing one token takes from
    another's entropy. It is measured when a clock is; what is kept of it is the permutation.
    """

    name = "pairs"
    pairwise = True

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        """Cumulative counts after the halves of halves."""
        sizes = [free]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        return np.array([0, *sizes[::-1]])

    @classmethod
    def build(cls, shape: Sequence[int] | None, dependence: Dependence | None) -> Self:
        if dependence is None or np.ndim(dependence) != 2 or len(set(np.shape(dependence))) != 1:
            raise EigentimeError(
                "The pairs order needs the dependence of every place on every other: et.measure(model, "
                "orders=['pairs']) measures it."
            )
        table = np.asarray(dependence, dtype=np.float64)
        return cls(halved((table + table.T) / 2, np.arange(len(table))))

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Order:
        return cls(spec["permutation"])


def halved(dependence: Float[np.ndarray, "length length"], places: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The places in order: one half, halved in turn, before the other."""
    if len(places) < 2:
        return places
    among = dependence[np.ix_(places, places)]
    first = split(among - np.diag(np.diag(among)))
    return np.concatenate([halved(dependence, places[first]), halved(dependence, places[~first])])


def split(dependence: Symmetric) -> Bool[np.ndarray, " n"]:
    """The half, of ⌈n/2⌉ places, that depends least within itself when both halves together do.

    With signs s = ±1 for the halves, what lies within them is a constant plus sᵀDs/2. Its least value is sought from
    three starts: every second place; every second one along the line on which dependent places are neighbours
    (Fiedler's vector, which finds a chain whose places are mixed up); and the signs of the eigenvector of least
    eigenvalue (which finds the colours of a chessboard). Each is then bettered by exchanging pairs.
    """
    n = len(dependence)
    size = (n + 1) // 2
    fiedler = np.linalg.eigh(np.diag(dependence.sum(1)) - dependence)[1][:, 1]
    lowest = np.linalg.eigh(dependence)[1][:, 0]
    starts = (np.arange(0, n, 2), np.argsort(fiedler, kind="stable")[::2], np.argsort(lowest, kind="stable")[:size])
    found = [_exchanged(dependence, start) for start in starts]
    best = min(found, key=lambda signs: round(float(signs @ dependence @ signs), 9))
    half = best > 0
    within = [dependence[np.ix_(part, part)].sum() for part in (half, ~half)]
    return ~half if n % 2 == 0 and within[1] < within[0] - ENOUGH else half


def _exchanged(dependence: Symmetric, half: Int[np.ndarray, " size"]) -> Float[np.ndarray, " n"]:
    """Signs after exchanging, as long as that helps, the two places for which it helps most.

    Exchanging i (+) and j (-) changes sᵀDs by 4·(-(Ds)_i + (Ds)_j - 2·D_ij).
    """
    signs = -np.ones(len(dependence))
    signs[half] = 1.0
    for _ in range(len(dependence)):
        inside, outside = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
        felt = dependence @ signs
        change = felt[outside] - felt[inside][:, None] - 2 * dependence[np.ix_(inside, outside)]
        i, j = np.unravel_index(change.argmin(), change.shape)
        if change[i, j] >= -ENOUGH:
            break
        signs[inside[i]], signs[outside[j]] = -1.0, 1.0
    return signs
