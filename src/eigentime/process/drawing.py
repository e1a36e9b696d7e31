"""Drawing from rows of probabilities by inverse CDF, exactly and on any device.

Rows in double precision (exact models) are summed up and searched as they are. Rows in single or half precision
(networks, with vocabularies of 50,000 and more) are never copied in double precision: they are drawn from in two
levels, first a block of the vocabulary and then a token in it, with whole numbers of 2^-38 in place of floats. Whole
numbers add up without rounding and in any order, so that equal rows give equal draws on every device, with float64 or
without, and a token of probability 10^-9 is drawn one time in 10^9.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

Tokens = Int[Tensor, "..."]
Rows = Float[Tensor, "... size"]
LEAST_TOTAL = 1e-26
"""Of a row, so that what it is scaled by is a number."""
UNIT_BITS, HALF_BITS = 38, 24
"""Probabilities are counted in 2^-38; a uniform is cut into two numbers of 24 bits, so that products fit 62 bits."""


def draw(law: Rows, u: Float[Tensor, "..."], chance: Float[Tensor, "..."] | None = None) -> Tokens:
    """Draw y ~ law (any positive scale) with one uniform each: no Gumbel noise, so no truncated tail.

    chance   the probability that anything is drawn at all; -1 stands for nothing
    """
    if law.dtype == torch.float64:
        cumulative = law.cumsum(-1)
        total = cumulative[..., -1:]
        threshold = u.to(law.device)[..., None] * (total if chance is None else total / chance[..., None])
        token = torch.searchsorted(cumulative, threshold, right=True).squeeze(-1).clamp(max=law.shape[-1] - 1)
        return token if chance is None else torch.where((threshold < total).squeeze(-1), token, -1)
    chance = None if chance is None else chance.reshape(-1)
    return _two_levels(law.reshape(-1, law.shape[-1]), u.reshape(-1), chance).reshape(u.shape)


def _two_levels(
    law: Float[Tensor, "n size"], u: Float[Tensor, " n"], chance: Float[Tensor, " n"] | None
) -> Int[Tensor, " n"]:
    size = law.shape[-1]
    width = math.isqrt(size - 1) + 1
    blocks = size // width
    sums = law[:, : blocks * width].unflatten(-1, (blocks, width)).sum(-1, dtype=torch.float32)
    if blocks * width < size:
        sums = torch.cat([sums, law[:, blocks * width :].sum(-1, keepdim=True, dtype=torch.float32)], -1)
    scale = 2.0**UNIT_BITS / sums.sum(-1, keepdim=True).clamp(min=LEAST_TOTAL)
    if chance is not None:
        scale = scale * chance[:, None].float()
    reached = (sums * scale).long().cumsum(-1)
    whole = reached[:, -1:] if chance is None else torch.full_like(reached[:, -1:], 2**UNIT_BITS)
    threshold = _share(whole, u.to("cpu", torch.float64))
    block = (reached <= threshold).sum(-1, keepdim=True).clamp(max=sums.shape[-1] - 1)
    before = torch.where(block > 0, reached.gather(-1, (block - 1).clamp(min=0)), 0)
    tokens = block * width + torch.arange(width, device=law.device)
    values = torch.where(tokens < size, law.gather(-1, tokens.clamp(max=size - 1)).float(), 0.0)
    inside = (values * scale).long().cumsum(-1)
    # a block's sum and the sum of its parts may differ by rounding; one whose parts are all below the unit is rare
    place = (inside <= torch.minimum(threshold - before, inside[:, -1:] - 1)).sum(-1)
    place = torch.where(inside[:, -1] > 0, place, values.argmax(-1))
    token = block.squeeze(-1) * width + place
    return token if chance is None else torch.where((threshold < reached[:, -1:]).squeeze(-1), token, -1)


def _share(total: Int[Tensor, "n 1"], u: Float[Tensor, " n"]) -> Int[Tensor, "n 1"]:
    """⌊u·total⌋ in whole numbers; the uniform travels as two halves of 24 bits that any device can hold."""
    high = torch.floor(u * 2**HALF_BITS)
    low = torch.floor((u * 2**HALF_BITS - high) * 2**HALF_BITS)
    halves = torch.stack([high, low], -1).int().to(total.device).long()
    return (halves[:, :1] * total + (halves[:, 1:] * total >> HALF_BITS)) >> HALF_BITS
