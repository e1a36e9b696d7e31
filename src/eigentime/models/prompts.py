"""Prompts of different lengths beside each other, so that the same block of all of them begins at the same place."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.process import as_tokens

PADDING = -1
"""Stands before prompts that are shorter than others of their batch: no token, nobody sees it."""


def laid_out(prompt: Any, model: Model) -> tuple[Int[Tensor, "n p"], Int[Tensor, "n left"]]:
    """What comes before the first block to be generated, padded at its beginning, and what is known of the rest, else
    `PADDING`.

    Blocks that a network was trained in are counted from the first token of a prompt: tokens of its last block, where
    that is not full, are known tokens of the first block to be generated.
    """
    prompts = _each(prompt)
    for one in prompts:
        model.process.check_tokens(one[one != PADDING], "`prompt`")
    block = model.block or 1
    whole = [len(one) // block * block for one in prompts]
    start = max(whole)
    before = torch.full((len(prompts), start), PADDING)
    after = torch.full((len(prompts), max(0, model.length - start)), PADDING)
    for number, (one, full) in enumerate(zip(prompts, whole, strict=True)):
        before[number, start - full :] = one[:full]
        rest = one[full:]
        if len(rest) > after.shape[1]:
            raise EigentimeError(f"A prompt of {len(one)} tokens leaves no room in the {model.length} of {model.name}.")
        after[number, : len(rest)] = rest
    return before, after


def _each(prompt: Any) -> list[Int[Tensor, " p"]]:
    """Prompts one by one, without padding: a table of tokens, or a list of prompts of any lengths."""
    if isinstance(prompt, list | tuple):
        nothing = torch.zeros(0, dtype=torch.long)
        prompts = [
            nothing if isinstance(one, list | tuple) and not one else as_tokens(one, "`prompt`") for one in prompt
        ]
    else:
        table = as_tokens(prompt, "`prompt`")
        if table.ndim != 2:
            raise EigentimeError(f"`prompt` must have the shape (N, P), not {tuple(table.shape)}.")
        prompts = list(table)
    if not prompts or any(one.ndim != 1 for one in prompts):
        raise EigentimeError("`prompt` must hold at least one prompt, each a list of tokens.")
    return [one[(one != PADDING).long().cumsum(0) > 0] for one in prompts]
