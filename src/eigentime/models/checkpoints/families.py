"""Families of masked language models: how each wants to be asked, and what its configuration may not say.

A new family is one entry of `FAMILIES`. The facts are those of the modelling files that the checkpoints bring along.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError

BLOCK_KEYS = ("block_size", "block_length")
"""Where configurations may say how long the blocks are that a network was trained in."""


@dataclass(frozen=True)
class Sight:
    """Which tokens there are, and which of them each token of a window sees."""

    present: Bool[Tensor, "b length"]
    """What is no padding."""
    block: int | None
    """Tokens of a block, where each block sees itself and those before it; None where all see all."""
    first: int
    last: int
    """The window of tokens that ask."""

    @property
    def positions(self) -> Int[Tensor, "b length"]:
        """Places counted from the first token that is there."""
        return (self.present.long().cumsum(1) - 1).clamp(min=0)

    @property
    def plain(self) -> bool:
        """Whether everybody sees everything, so that there is nothing to tell."""
        return self.block is None and bool(self.present.all())

    @property
    def visible(self) -> Bool[Tensor, "b asking length"]:
        """Who sees whom; padding sees itself, so that no softmax is empty."""
        seen = self.present[:, None].expand(-1, self.last - self.first, -1)
        if self.block is not None:
            block = self.positions // self.block
            seen = seen & (block[:, None] <= block[:, self.first : self.last, None])
        places = torch.arange(self.present.shape[1], device=self.present.device)
        return seen | (places[self.first : self.last, None] == places)

    @property
    def asking_at(self) -> Int[Tensor, "b asking"]:
        """Positions of the tokens that ask."""
        return self.positions[:, self.first : self.last]


Told = Callable[[Sight, torch.dtype], dict[str, Any]]
"""What a network is told beside the tokens, from who sees whom and the precision it computes in."""


def by_key(sight: Sight, dtype: torch.dtype) -> dict[str, Any]:
    """One number for each token: 1 where others may look (LLaDA, BERT)."""
    return {} if sight.plain else {"attention_mask": sight.present.long()}


def by_pair(sight: Sight, dtype: torch.dtype) -> dict[str, Any]:
    """A boolean for each pair of tokens, and the positions (Dream, SDAR)."""
    return {} if sight.plain else {"attention_mask": sight.visible[:, None], "position_ids": sight.asking_at}


def added(sight: Sight, dtype: torch.dtype) -> dict[str, Any]:
    """The same as a number that attention adds: 0, or the lowest there is (LLaDA2)."""
    if sight.plain:
        return {}
    bias: Float[Tensor, "b asking length"] = torch.zeros(sight.visible.shape, dtype=dtype, device=sight.present.device)
    bias = bias.masked_fill(~sight.visible, torch.finfo(dtype).min)
    return {"attention_mask": bias[:, None], "position_ids": sight.asking_at}


@dataclass(frozen=True)
class Family:
    """How networks of a family are asked."""

    name: str = ""
    """Part of the `model_type` of its configurations."""
    told: Told = by_key
    mask: int | None = None
    """The mask's id, where neither configuration nor tokenizer says it."""
    shifted: bool = False
    """Whether row i of the output speaks of token i + 1, as in models that began as left-to-right ones."""
    block: int | None = None
    """Tokens of a block, where the family was trained so that blocks do not see later ones."""
    auto: str = "AutoModelForMaskedLM"
    """The class of transformers that loads it."""
    moves: bool = False
    """Whether a token's own place does not matter, only how far others are, or its place may be told: then padding
    before a prompt changes nothing, as long as nobody sees it."""
    with_cache: dict[str, Any] = field(default_factory=dict)
    """What else a network wants to be told where keys and values are kept."""

    def block_of(self, config: dict[str, Any], wanted: int | None) -> int | None:
        """Tokens of a block, by the user, the configuration, or as the family has them."""
        if wanted is not None and (self.block is None or wanted < 1):
            raise EigentimeError(
                "block_length is the number of tokens, at least 1, of the blocks that LLaDA2 and SDAR were trained in; "
                "other models see everything at once: leave it out."
            )
        if self.block is None or wanted is not None:
            return wanted
        return next((int(config[key]) for key in BLOCK_KEYS if config.get(key)), self.block)


ANY = Family()
"""Any masked language model that transformers knows."""
FAMILIES = (
    Family("llada2", added, 156895, block=32, auto="AutoModelForCausalLM", moves=True),
    Family("llada", by_key, 126336, auto="AutoModel", moves=True),
    Family("dream", by_pair, 151666, shifted=True, auto="AutoModel", moves=True),
    Family("sdar", by_pair, 151669, block=4, auto="AutoModelForCausalLM", moves=True, with_cache={"store_kv": True}),
)
"""The first whose name is part of a configuration's `model_type` is its family."""


def family_of(kind: str) -> Family:
    """The family of a `model_type`."""
    return next((family for family in FAMILIES if family.name in kind.lower()), ANY)
