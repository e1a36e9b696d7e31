"""Fast-dLLM (NVlabs/Fast-dLLM, v1): a plan or a schedule in place of two functions of its loops.

`get_num_transfer_tokens(mask_index, steps)` opens a block, `get_transfer_index(logits, temperature, remasking,
mask_index, x, num_transfer_tokens, threshold)` says after every evaluation which tokens to write. The loops find both
by name in their own module; nothing of Fast-dLLM is imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.engines.reveals import Walk, key_of, reveals, take_all, tokens_from
from eigentime.errors import EigentimeError
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

NAMES = ("get_num_transfer_tokens", "get_transfer_index")


@contextmanager
def follow(followed: Schedule | Plan, module: Any, seed: int = 0) -> Iterator["Transfer"]:
    """Within this context the loops of Fast-dLLM's `generate` module follow a plan; afterwards they are as before.

    Give the loop `steps` = evaluations per block × blocks, and `temperature=1.0` to draw from the posteriors.
    """
    if not all(hasattr(module, name) for name in NAMES):
        raise EigentimeError(f"{module!r} has no {' and '.join(NAMES)}; give Fast-dLLM's module llada/generate.py.")
    transfer = Transfer(followed, seed)
    before = {name: getattr(module, name) for name in NAMES}
    try:
        for name in NAMES:
            setattr(module, name, getattr(transfer, name))
        yield transfer
    finally:
        for name, function in before.items():
            setattr(module, name, function)


class Transfer:
    """The two functions, and the block that is under way between them."""

    def __init__(self, followed: Schedule | Plan, seed: int = 0) -> None:
        self.follows, self.seed, self.begun = reveals(followed), seed, 0
        self.walks: list[Walk] = []

    def get_num_transfer_tokens(
        self, mask_index: Bool[Tensor, "rows block"], steps: int
    ) -> Int[Tensor, "rows columns"]:
        """Tokens per step for a new block, and a last column of zeros: loops with a cache ask once more."""
        if steps != self.follows.evaluations:
            raise EigentimeError(
                f"The plan takes {self.follows.evaluations} evaluations per block, the loop {steps}; "
                f"give it steps={self.follows.evaluations} × blocks."
            )
        masked = mask_index.cpu().numpy()
        self.walks = [Walk(self.follows, free, key_of(self.seed, self.begun, row)) for row, free in enumerate(masked)]
        self.begun += 1
        counts = [np.bincount(walk.steps[walk.steps >= 0], minlength=steps + 1) for walk in self.walks]
        return torch.from_numpy(np.stack(counts)).to(mask_index.device)

    def get_transfer_index(
        self,
        logits: Float[Tensor, "rows length size"],
        temperature: float,
        remasking: str,
        mask_index: Bool[Tensor, "rows length"],
        x: Int[Tensor, "rows length"],
        num_transfer_tokens: Int[Tensor, " rows"] | None,
        threshold: float | None = None,
    ) -> tuple[Int[Tensor, "rows length"], Bool[Tensor, "rows length"]]:
        """Tokens, and where to write them. `mask_index` marks the block's masks in whichever window the loop has;
        `remasking` has no say, the plan knows the places."""
        if threshold is not None:
            raise EigentimeError("A plan knows how many tokens each evaluation reveals; leave threshold=None.")
        waiting = [walk.masked for walk in self.walks]
        left, hoped = mask_index.sum(1).tolist(), [int(row.sum()) for row in waiting]
        if left != hoped:
            raise EigentimeError(
                f"The loop has {left} masks left in its rows, the plan {hoped}; "
                "call get_num_transfer_tokens for every block."
            )
        rows, places, u = take_all(self.walks)
        marked = mask_index.nonzero().cpu()  # all masks, row by row; the block's are the same ones in the same order
        nth = (np.stack(waiting).cumsum() - 1).reshape(len(waiting), -1)[rows, places]
        where = tuple(marked[torch.from_numpy(nth)].T.to(x.device))
        tokens, chosen = x.clone(), torch.zeros_like(mask_index)
        mask = int(x[where][0]) if len(u) else -1
        tokens[where] = tokens_from(logits[where], u, Shaping(temperature), mask).to(tokens)
        chosen[where] = True
        return tokens, chosen
