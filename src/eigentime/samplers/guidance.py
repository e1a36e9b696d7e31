"""Classifier-free guidance: two evaluations, with and without the condition, mixed into one law."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.arguments import number
from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.kernel import Rows

Tokens = Int[Tensor, "n length"]
MOST = 1e3
"""A weight beyond which single precision holds nothing but the likeliest value."""
FLOOR = 1e-30
"""Of a probability without the condition, which guidance divides by."""


@dataclass(frozen=True)
class Guidance:
    """law ∝ with^γ · without^{1-γ}: γ = 1 is no guidance, more sharpens towards the condition.

    UDLM's γ as it stands; LLaDA's `cfg_scale` w is γ = w + 1. On the absorbing kernel posteriors are mixed (as both
    do) and may be sharpened afterwards; on others the exact token laws of the step (as UDLM does).
    """

    weight: float
    no_class: int | None
    """The class that stands for none; without classes the prompt is hidden instead."""

    def without(
        self, x: Tokens, given: Tensor | None, cond: Tensor | None, mask: int | None
    ) -> tuple[Tokens, Tensor | None]:
        """What the network is shown without the condition."""
        if cond is not None and self.no_class is not None:
            return x, torch.full_like(cond, self.no_class)
        assert given is not None
        assert mask is not None
        return torch.where(given.to(x.device), mask, x), cond

    def mix(self, law: Rows, without: Rows) -> Rows:
        """Rows of both laws as rows of the guided one; what is impossible with the condition stays so."""
        logs = self.weight * law.clamp(min=FLOOR).log() + (1 - self.weight) * without.clamp(min=FLOOR).log()
        return logs.masked_fill(law <= 0, -torch.inf).softmax(-1)


def make_guidance(model: Model, weight: float | None, cond: Tensor | None, prompted: bool) -> Guidance | None:
    """Guidance of this weight, or none; refused where there is no condition to leave out."""
    if weight is None:
        return None
    weight = float(number(-MOST, MOST)(weight, "guidance"))
    if weight == 1:
        return None
    prompted = prompted and model.process.absorbing
    if cond is not None and model.no_class is None and not prompted:
        raise EigentimeError(f"{model.name} has no class that stands for none, which guidance needs.")
    if cond is None and not prompted:
        raise EigentimeError(
            "Guidance needs a condition: `cond` classes, or a prompt (`given`, `fixed`) of a masked model."
        )
    return Guidance(weight, model.no_class)
