"""Clean sequences as they come in from outside, checked against the model that is to look at them."""

from typing import Any

from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.models.prompts import PADDING
from eigentime.process.process import as_tokens

TELLING = 64
"""So many equal tokens are no chance."""


def clean_data(data: Any, model: Model, padded: bool = False) -> Int[Tensor, "n length"]:
    """Tokens (N, L) of the model's values: not empty, not of another length, without its mask, and not all the same.

    padded   whether sequences may begin with padding, for models that take it
    """
    tokens = as_tokens(data, "The data")
    if tokens.ndim != 2 or not len(tokens) or tokens.shape[1] != model.length:
        raise EigentimeError(
            f"The data must have the shape (sequences, {model.length}) for {model.name}, not {tuple(tokens.shape)}."
        )
    mask = model.process.kernel.mask
    if mask is not None and bool((tokens == mask).any()):
        raise EigentimeError(
            f"The data hold the mask, token {mask}, which stands for what is not known: give clean sequences, and say "
            "with `fixed` which of their tokens are given."
        )
    held = tokens[tokens != PADDING] if padded and model.takes_padding else tokens
    model.process.check_tokens(held, "The data")
    if held.numel() >= TELLING and len(model.process.kernel.values) > 1 and bool((held == held.flatten()[0]).all()):
        raise EigentimeError(
            f"The data hold nothing but token {int(held.flatten()[0])}, so that there is nothing to measure: was the "
            "array filled?"
        )
    return tokens
