"""What samplers share: the description of a step, a counted network, and the interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models.base import Model, batch_size_for, posterior_rows
from eigentime.process.kernel import Rows
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.guidance import Guidance
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
    guidance: Guidance | None = None
    given: Mask | None = None
    """Which tokens are given: what guidance hides, where there are no classes."""
    evaluations: int = 0
    """Sequences evaluated so far."""
    clipped: int = 0
    """Token laws that had to be clipped."""
    drawn: int = 0
    """Token laws that were used."""
    memory: dict[str, Tensor] = field(default_factory=dict)
    """What a sampler remembers from one step of this run to the next."""

    @property
    def keeps_mass(self) -> bool:
        """Whether posteriors may not sum to one: published score networks, used as they are."""
        plain = self.shaping.neutral and self.guidance is None
        return self.model.predicts == "score" and not self.normalise and plain

    def uniforms(self, purpose: Purpose, like: State, step: int) -> Float[Tensor, "n length"]:
        """This step's uniforms for all sequences."""
        return uniforms(self.seed, purpose, len(like), like.shape[1], step=step)

    def posteriors(
        self, x: State, t: Float[Tensor, " n"], where: Mask
    ) -> Iterator[tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], Rows]]:
        """(sequence, position, posterior) for the rows of `where`; only sequences with such a row are evaluated.

        With guidance the posterior is the guided one.
        """
        for sequence, position, posteriors in self.with_and_without(x, t, where):
            yield sequence, position, self.shaping(self.guided(posteriors))

    def guided(self, laws: list[Rows]) -> Rows:
        """One law, or those with and without the condition mixed."""
        return laws[0] if self.guidance is None else self.guidance.mix(laws[0], laws[1])

    def with_and_without(
        self, x: State, t: Float[Tensor, " n"], where: Mask
    ) -> Iterator[tuple[Int[Tensor, " rows"], Int[Tensor, " rows"], list[Rows]]]:
        """The same with the posterior alone, or with guidance those of both evaluations, none of them sharpened."""
        needed = where.any(1).nonzero().squeeze(1)
        if not len(needed):
            return
        for index in needed.split(self.batch_size or batch_size_for(self.model)):
            asked = where[index]
            sequence, position = asked.nonzero(as_tuple=True)
            tokens, times = x[index][asked], t[index]
            cond = None if self.cond is None else self.cond[index]
            shown = [(x[index], cond)]
            if self.guidance is not None:
                given = None if self.given is None else self.given[index]
                mask = getattr(self.model.process.kernel, "mask", -1)
                shown.append(self.guidance.without(x[index], given, cond, mask))
            self.evaluations += len(index) * len(shown)
            passes = [self.model.row_blocks(tokens_shown, times, asked, c) for tokens_shown, c in shown]
            for parts in zip(*passes, strict=True):
                block = parts[0][0]
                at = times[sequence[block]]
                rows = [posterior_rows(self.model, logs, tokens[block], at, not self.keeps_mass) for _, logs in parts]
                yield index[sequence[block]], position[block], rows


class Sampler(ABC):
    """Takes steps. Subclasses say how, and how many evaluations a step costs."""

    name: str
    evaluations_per_step: ClassVar[int] = 1

    def evaluations(self, step: Step) -> int:
        """What a step costs."""
        return 1 if step.last else self.evaluations_per_step

    @abstractmethod
    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        """The state at s, given the state at t."""


def full(x: State, value: float) -> Float[Tensor, " n"]:
    """One time for every sequence."""
    return torch.full((len(x),), value, dtype=torch.float64)
