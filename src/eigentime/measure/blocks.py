"""Jackknife blocks: sequences dealt to a few sums, from which standard errors and cross-fits are made later."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

BLOCKS = 32
"""Sequences are dealt to at most this many blocks."""


def in_blocks(table: Float[np.ndarray, "n ..."], rows: int) -> Float[np.ndarray, "b ..."]:
    """Sums over the sequences of each jackknife block; what comes from the same row of data stays together."""
    different = rows if rows > 1 else len(table)
    count = min(BLOCKS, len(table), different)
    blocks = np.zeros((count, *table.shape[1:]))
    np.add.at(blocks, np.arange(len(table)) % different % count, table)
    return blocks


def jackknife(value: Callable[[Int[np.ndarray, " k"]], float], blocks: int) -> float:
    """The standard error of a number computed from blocks: √((b-1)·variance of what is found without each one).

    One block says nothing about how much blocks differ.
    """
    if blocks < 2:
        return float("inf")
    everything = np.arange(blocks)
    return float(np.sqrt((blocks - 1) * np.var([value(np.delete(everything, b)) for b in everything])))
