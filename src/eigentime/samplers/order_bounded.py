"""A plan whose counts adapt: as many tokens of an order at a time as an error budget allows."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from eigentime.arguments import number, settle
from eigentime.orders import Order, make_order
from eigentime.samplers.adaptive import Adaptive
from eigentime.samplers.base import Likelihood
from eigentime.samplers.chosen import Look, Rule, certainty
from eigentime.samplers.run import Run
from eigentime.samplers.state import Mask, State


@dataclass(frozen=True)
class OrderBounded(Adaptive):
    """The next tokens of an order with Σ H - max H ≤ `bound` nats, a bound on the dependence that drawing them at once
    ignores, given the posteriors at hand: easy passages take few evaluations, hard ones more.

    `order` is a name such as "low-discrepancy" or "lattice-8", a permutation, or that of a measured plan.
    """

    order: Any = "low-discrepancy"
    bound: float = 1.0
    name = "order-bounded"

    def __post_init__(self) -> None:
        settle(self, bound=number(0))
        make_order(self.order)

    @property
    def likelihood(self) -> Likelihood | None:  # type: ignore[override]
        """Chance plays a part only through the order."""
        return "bound" if make_order(self.order).chance else "exact"

    def rule(self) -> Rule:
        return certainty

    def step(self, run: Run, state: State, index: int) -> State:
        if "ranks" not in run.memory:
            order: Order = make_order(self.order)
            run.memory["ranks"] = order.ranks(state.free, run.seed, run.first)
        return super().step(run, state, index)

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        ranks = run.memory["ranks"].to(masked.device).masked_fill(~masked, masked.shape[1])
        places = ranks.argsort(1)
        entropies = torch.where(masked, -found.scores, 0.0).clamp(min=0.0).gather(1, places)
        allowed = entropies.cumsum(1) - entropies.cummax(1).values <= self.bound
        return torch.zeros_like(masked).scatter(1, places, allowed.cumprod(1).bool())
