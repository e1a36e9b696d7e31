"""Jackknife blocks: sequences dealt to a few sums, from which standard errors and cross-fits are made later."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int, Real

BLOCKS = 32
"""Sequences are dealt to at most this many blocks."""


def in_blocks(table: Float[np.ndarray, "n ..."], rows: int) -> Float[np.ndarray, "b ..."]:
    """Sums over the sequences of each jackknife block; what comes from the same row of data stays together."""
    different = rows if rows > 1 else len(table)
    count = min(BLOCKS, len(table), different)
    blocks = np.zeros((count, *table.shape[1:]))
    np.add.at(blocks, np.arange(len(table)) % different % count, table)
    return blocks


def check_levels(levels: Real[np.ndarray, " g"], highest: float) -> None:
    """Levels as measured ones are: increasing, from 0 to `highest`."""
    if not (len(levels) and levels[0] >= 0 and levels[-1] <= highest and np.all(np.diff(levels) > 0)):
        raise ValueError("levels out of order or range")


def check_sums(
    what: object, finite: Sequence[str] = (), positive: Sequence[str] = (), numbers: Sequence[str] = ()
) -> None:
    """Block sums that a measurement can give: `finite` ones, those that are also never negative, and `numbers` that may
    be infinite but are not NaN."""
    for name in (*finite, *positive, *numbers):
        values = getattr(what, name)
        wrong = np.isnan(values) if name in numbers else ~np.isfinite(values)
        if name in positive:
            wrong = wrong | (values < -1e-3)  # sums of roundings of zero
        if wrong.any():
            raise ValueError(f"{name} holds {values[wrong].flat[0]}")


def jackknife(value: Callable[[Int[np.ndarray, " k"]], float], blocks: int) -> float:
    """The standard error of a number computed from blocks: √((b-1)·variance of what is found without each one).

    One block says nothing about how much blocks differ.
    """
    if blocks < 2:
        return float("inf")
    everything = np.arange(blocks)
    return float(np.sqrt((blocks - 1) * np.var([value(np.delete(everything, b)) for b in everything])))
