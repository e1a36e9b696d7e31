"""What samples are given: tokens, classes, how strongly they are to follow them, and which samples they are."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.process import check_cond, expand_mask, given_tokens
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.state import State


@dataclass(frozen=True)
class Condition:
    """Tokens that are given and which of them count, classes, and the weight of guidance towards either."""

    given: Any = None
    fixed: Any = None
    cond: Tensor | None = None
    guidance: float | None = None
    teacher: Tensor | None = None
    """Sequences to follow: values are not drawn but taken from here, and what they cost is written down."""
    first: int = 0
    """Which of all sequences of a seed the first one is."""

    def start(self, model: Model, count: int, seed: int) -> State:
        """Noise for sequences first … first+count-1, with the given tokens put in."""
        x = model.process.prior(uniforms(seed, Purpose.PRIOR, count, model.length, first=self.first))
        if (self.given is None) != (self.fixed is None):
            raise EigentimeError("Conditioning takes both: `given` (the tokens) and `fixed` (which of them count).")
        check_cond(self.cond, count, "sample")
        mask = expand_mask(self.fixed, x.shape)
        if self.given is not None:
            tokens = given_tokens(self.given, x.shape)
            model.process.check_tokens(tokens[mask], "`given`")
            x = torch.where(mask, tokens, x)
        return State(x.to(model.device), ~mask, ~mask, model.process.kernel.mask)
