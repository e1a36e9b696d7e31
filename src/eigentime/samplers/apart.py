"""Sets of tokens that are sure and far apart: what was measured of their dependence says which may come together."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eigentime.arguments import number, settle, shown
from eigentime.errors import EigentimeError
from eigentime.orders import offsets
from eigentime.samplers.adaptive import Adaptive
from eigentime.samplers.chosen import Look, Rule, certainty, ranked
from eigentime.samplers.run import Run
from eigentime.samplers.state import Mask, State


@dataclass(frozen=True, eq=False)
class Apart(Adaptive):
    """In order of entropy, every token that depends on those already taken by at most `bound` nats:

        Σ_{i taken} min(D_ij, H_i, H_j) ≤ bound,

    D_ij being the measured dependence, and no two tokens sharing more than the entropy that is left of either. It is
    DAPD (M. Jeon, B. Kim, D. Jeon, A. No, 2026, arXiv 2603.12996) with nats that a clock measured in place of
    attention: a set without strong ties within itself, the surest first.

    `dependence` is (L, L) in nats, the `pairs` of a clock measured with orders=["pairs"], or a table of your own by
    offset.
    """

    dependence: Any = field(default=None, repr=False)
    bound: float = 0.1
    name = "apart"

    def __post_init__(self) -> None:
        settle(self, bound=number(0), dependence=_dependence)

    def rule(self) -> Rule:
        return certainty

    def step(self, run: Run, state: State, index: int) -> State:
        if "felt" not in run.memory:
            run.memory["felt"] = torch.from_numpy(between(self.dependence, run.model.length)).to(state.device)
        return super().step(run, state, index)

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        dependence = run.memory["felt"].to(found.scores)
        entropy = torch.where(masked, -found.scores, 0.0).clamp(min=0.0)
        _, places = ranked(found.scores)
        chosen, felt = torch.zeros_like(masked), torch.zeros_like(entropy)
        for place in places[:, : int(masked.sum(1).max())].T[..., None]:
            joins = masked.gather(1, place) & (felt.gather(1, place) <= self.bound)
            chosen.scatter_(1, place, joins)
            shared = torch.minimum(dependence[place.squeeze(1)], torch.minimum(entropy, entropy.gather(1, place)))
            felt += torch.where(joins, shared, 0.0)
        return chosen


def _dependence(value: Any, name: str) -> Float[np.ndarray, "..."] | None:
    """Nats by offset or by two places."""
    if value is None:
        return None
    try:
        table = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        table = np.zeros(0)
    if not table.ndim or not table.size or not np.isfinite(table).all():
        raise EigentimeError(f"{name} must be a table of nats, such as the `pairs` of a clock, not {shown(value)}.")
    return table


def between(dependence: Any, length: int) -> Float[np.ndarray, "length length"]:
    """A dependence by offset or by place as one of every two places; of a longer line the beginning counts."""
    if dependence is None:
        raise EigentimeError(
            "The apart sampler needs a measured dependence: et.Apart(clock.pairs), of a clock measured with "
            "orders=['pairs']."
        )
    table = np.asarray(dependence)
    if table.ndim == 1:
        table = table[:length]
    if table.shape == (length, length) != (1, 1):
        return table
    if table.size != length:
        raise EigentimeError(f"The dependence has the shape {table.shape}, which does not fit {length} tokens.")
    return np.asarray(table.ravel()[offsets(table.shape)])
