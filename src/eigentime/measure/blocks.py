"""Jackknife blocks: sequences dealt to a few sums, from which standard errors and cross-fits are made later."""

import numpy as np
from jaxtyping import Float

BLOCKS = 32
"""Sequences are dealt to at most this many blocks."""


def in_blocks(table: Float[np.ndarray, "n ..."], rows: int) -> Float[np.ndarray, "b ..."]:
    """Sums over the sequences of each jackknife block; what comes from the same row of data stays together."""
    different = rows if rows > 1 else len(table)
    count = min(BLOCKS, len(table), different)
    blocks = np.zeros((count, *table.shape[1:]))
    np.add.at(blocks, np.arange(len(table)) % different % count, table)
    return blocks
