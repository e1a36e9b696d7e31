"""The order of the middles: every gap is halved, round by round."""

import numpy as np
from jaxtyping import Float, Int

from eigentime.orders.base import Free, Order, Permutation
from eigentime.orders.spread import van_der_corput


class Bisection(Order):
    """The middle of every gap between known tokens, then the middles of what is left of them, and so on.

    Tokens of one round lie in different gaps, with a known token between any two of them, so that on a Markov chain
    ⌈log2(n + 1)⌉ steps of one round each are exact (V. Bansal, C. Cholyeon, S. Kumar, S. Sanghavi, P. Sarkar:
    Understanding Parallel Samplers in Masked Diffusion via Random Walks on Graphs, 2026, arXiv 2606.22976).

    It differs from `low-discrepancy` in three ways. Ends count as ends: places do not wrap around, and the first round
    is one token, the second two, so that 2^k - 1 are known after k rounds. Given tokens cut the line into gaps of their
    own, where low-discrepancy numbers the free ones through. And no chance plays a part: a certificate is then the
    divergence of the samples itself, not a bound on it.
    """

    name = "bisection"
    chance = False

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        return np.concatenate([np.empty(0, dtype=int), *_rounds(_gaps(free))])

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        """Cumulative counts after each round, where the free tokens are one gap."""
        return np.cumsum([0, *map(len, _rounds([(0, free)]))])


Gap = tuple[int, int]
"""The first place and the one after the last."""


def _gaps(free: Free) -> list[Gap]:
    """Runs of free places."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], free, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _rounds(gaps: list[Gap]) -> list[Permutation]:
    """The middles of all gaps of each round, those of the longest first; among equally long ones places far from each
    other, so that a round may be interrupted."""
    rounds = []
    while gaps:
        spread = [gaps[k] for k in van_der_corput(len(gaps)).tolist()]
        spread.sort(key=lambda gap: gap[0] - gap[1])
        rounds.append(np.array([(first + last - 1) // 2 for first, last in spread]))
        halves = [
            half for first, last in gaps for half in ((first, (first + last - 1) // 2), ((first + last + 1) // 2, last))
        ]
        gaps = [(first, last) for first, last in halves if first < last]
    return rounds
