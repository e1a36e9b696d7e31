"""What samplers share: the description of a step, a counted network, and the interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models.base import Model, batch_size_for, posterior_rows, row_blocks
from eigentime.process.kernel import Rows
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.shaping import Shaping

State = Int[Tensor, "n length"]
Mask = Bool[Tensor, "n length"]


@dataclass(frozen=True)
class Step:
    """One step of a grid, t → s; the last one goes to the data, α_s = 1, and is always the exact denoising draw."""

    index: int
    t: float
    s: float
    alpha_t: float
    alpha_s: float

    @property
    def last(self) -> bool:
        """Whether this step reaches the data."""
        return self.alpha_s == 1.0


@dataclass
class Network:
    """The model as a sampler sees it: posteriors row block by row block, every evaluation counted."""

    model: Model
    seed: int
    shaping: Shaping = field(default_factory=Shaping)
    normalise: bool = False
    batch_size: int | None = None
    cond: Tensor | None = None
    evaluations: int = 0
    """Sequences evaluated so far."""
    clipped: int = 0
    """Token laws that had to be clipped."""
    drawn: int = 0
    """Token laws that were used."""

    @property
    def keeps_mass(self) -> bool:
        """Whether posteriors may not sum to one: published score networks, used as they are."""
        return self.model.predicts == "score" and not self.normalise and self.shaping.neutral

    def uniforms(self, purpose: Purpose, like: State, step: int) -> Float[Tensor, "n length"]:
        """This step's uniforms for all sequences."""
        return uniforms(self.seed, purpose, len(like), like.shape[1], step=step)

    def posteriors(
        self, x: State, t: Float[Tensor, " n"], where: Mask
    ) -> Iterator[tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], Rows]]:
        """(sequence, position, posterior) for the rows of `where`; only sequences with such a row are evaluated."""
        needed = where.any(1).nonzero().squeeze(1)
        if not len(needed):
            return
        for index in needed.split(self.batch_size or batch_size_for(self.model)):
            asked = where[index]
            sequence, position = asked.nonzero(as_tuple=True)
            tokens, times = x[index][asked], t[index]
            cond = None if self.cond is None else self.cond[index]
            self.evaluations += len(index)
            for block, logs in row_blocks(self.model, x[index], times, asked, cond):
                rows = posterior_rows(self.model, logs, tokens[block], times[sequence[block]], not self.keeps_mass)
                yield index[sequence[block]], position[block], self.shaping(rows)


class Sampler(ABC):
    """Takes steps. Subclasses say how, and how many evaluations a step costs."""

    name: str
    evaluations_per_step: ClassVar[int] = 1

    @abstractmethod
    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        """The state at s, given the state at t."""


def full(x: State, value: float) -> Float[Tensor, " n"]:
    """One time for every sequence."""
    return torch.full((len(x),), value, dtype=torch.float64)
