"""dInfer (inclusionAI/dInfer): a plan or a schedule as its decoder.

Its loops take a decoder as an object: `block_init(block_x, block_id)` opens a block, `decode(logits, block_start,
block_end, x)` writes tokens into x after every evaluation, until no mask is left. Nothing of dInfer is imported.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.engines.reveals import Walk, key_of, reveals, take_all, tokens_from
from eigentime.engines.tested import warn_untested
from eigentime.errors import EigentimeError
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

TESTED = ("0.1",)


class Decoder:
    """Reveals what the plan says, drawn from the posteriors.

    mask_id, eos_id   of the model (LLaDA: 126336 and 126081, LLaDA2: 156895 and 156892); dInfer's loops read them
    temperature       1 draws from the posteriors as they are, which is what certificates are about; 0 is greedy
    """

    def __init__(
        self, followed: Schedule | Plan, mask_id: int, eos_id: int, temperature: float = 1.0, seed: int = 0
    ) -> None:
        warn_untested("dinfer", TESTED)
        self.follows = reveals(followed)
        self.mask_id, self.eos_id = mask_id, eos_id
        self.shaping = Shaping(temperature)
        self.seed, self.begun = seed, 0
        self.walks: list[Walk] = []

    @property
    def temperature(self) -> float:
        """As dInfer calls it."""
        return self.shaping.temperature

    def block_init(self, block_x: Int[Tensor, "rows block"], block_id: int) -> None:
        """A new block: every row gets its own places."""
        masked = (block_x == self.mask_id).cpu().numpy()
        keys = [key_of(self.seed, self.begun, row) for row in range(len(masked))]
        self.walks = [Walk(self.follows, free, key) for free, key in zip(masked, keys, strict=True)]
        self.begun += 1

    def decode(
        self,
        logits: Float[Tensor, "rows block size"],
        block_start: int,
        block_end: int,
        x: Any,
        iter_threshold: float | None = None,
    ) -> None:
        """Write what this evaluation reveals. `iter_threshold` has no say: the plan knows the numbers."""
        block = x[:, block_start:block_end].clone()
        masked = (block == self.mask_id).cpu().numpy()
        if len(masked) < len(self.walks):  # its loops drop rows that are complete
            self.walks = [walk for walk in self.walks if not walk.done]
        if len(masked) != len(self.walks) or any(
            (walk.masked != row).any() for walk, row in zip(self.walks, masked, strict=True)
        ):
            raise EigentimeError("decode was given another block than block_init; call block_init for every block.")
        rows, places, u = take_all(self.walks)
        where = torch.from_numpy(rows).to(block.device), torch.from_numpy(places).to(block.device)
        block[where] = tokens_from(logits[where], u, self.shaping, self.mask_id).to(block)
        x[:, block_start:block_end] = block
