"""A way of sampling a model, whole or block by block: given sequences are followed with it, and own samples drawn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.models.block import Block
from eigentime.process.process import expand_mask
from eigentime.samplers.base import Sampler
from eigentime.samplers.blockwise import BLOCK_SEED
from eigentime.samplers.condition import Condition
from eigentime.samplers.loop import NOT_COVERED
from eigentime.samplers.loop import run as walk
from eigentime.samplers.planned import Planned
from eigentime.samplers.registry import make_sampler
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.teacher import Walked, one_at_a_time, teach
from eigentime.schedules import Plan, Schedule


@dataclass(frozen=True)
class Stretch:
    """The whole sequence, or one block of it, as a model of its own."""

    model: Model
    number: int
    start: int
    stop: int
    seed: int


@dataclass(frozen=True)
class Followed:
    """What was walked on one stretch: given sequences, or own samples."""

    stretch: Stretch
    cond: Tensor | None
    walked: Walked
    seconds: float = 0.0


@dataclass(frozen=True)
class Way:
    """A way of sampling a model, whole or block by block, and how closely it is looked at."""

    model: Model
    sampler: str | Sampler
    planned: Schedule | Plan | None = None
    shaping: Shaping | None = None
    block_length: int | None = None
    references: int = 8
    seed: int = 0
    batch_size: int | Literal["auto"] = "auto"

    def check(self, fixed: Any, cond: Any) -> None:
        """Refuse what cannot be measured."""
        if self.references < 1:
            raise EigentimeError(f"references must be at least 1, not {self.references}.")
        if self.block_length is None:
            return
        if fixed is not None or cond is not None:
            raise EigentimeError("Blocks are conditioned on what comes before them: leave `fixed` and `cond` out.")
        length = self.model.length
        if not 0 < self.block_length <= length or length % self.block_length:
            raise EigentimeError(f"{length} tokens do not split into blocks of {self.block_length}.")

    @property
    def blocks(self) -> int:
        """How many there are."""
        return 1 if self.block_length is None else self.model.length // self.block_length

    @property
    def exact(self) -> bool:
        """Whether teacher forcing finds -ln q itself, and not a bound on it."""
        stepper = Planned() if isinstance(self.planned, Plan) else make_sampler(self.sampler)
        return stepper.likelihood_of(self.planned) == "exact"

    def followed(self, x: Int[Tensor, "n length"], fixed: Any, cond: Tensor | None, first: int) -> Iterator[Followed]:
        """Given sequences taught, block by block with all before as condition."""
        for stretch in self._stretches():
            before = cond if self.block_length is None else x[:, : stretch.start]
            yield Followed(stretch, before, self.teach(stretch, x, fixed, before, first))

    def teach(self, stretch: Stretch, x: Tensor, fixed: Any, cond: Tensor | None, first: int) -> Walked:
        """What sequences cost on one stretch."""
        return teach(
            stretch.model,
            x[:, stretch.start : stretch.stop],
            self.planned,
            self.sampler,
            condition=Condition(None, fixed, cond),
            shaping=self.shaping,
            seed=stretch.seed,
            batch_size=self.batch_size,
            first=first,
        )

    def drawn(self, condition: Condition, count: int, first: int) -> Iterator[Followed]:
        """Own samples, block by block with all that was drawn before as condition."""
        tokens = torch.zeros(count, 0, dtype=torch.long)
        for stretch in self._stretches():
            asked = condition if self.block_length is None else Condition(cond=tokens)
            new, info = walk(
                stretch.model,
                self.planned,
                count,
                sampler=self.sampler,
                condition=asked,
                shaping=self.shaping,
                seed=stretch.seed,
                batch_size=self.batch_size,
                first=first,
            )
            if info.record is None:
                raise EigentimeError(NOT_COVERED.format(name=make_sampler(self.sampler).name))
            free = ~expand_mask(asked.fixed, new.shape)
            walked = Walked(new, free, info.record.logs, info.record.asked.long(), info.spent, info.exact)
            yield Followed(stretch, asked.cond, walked, info.seconds)
            tokens = torch.cat([tokens, new], 1)

    def singly(self, part: Followed, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same tokens one at a time: see `one_at_a_time`."""
        return one_at_a_time(
            part.stretch.model,
            part.walked,
            self.references,
            cond=part.cond,
            shaping=self.shaping,
            seed=part.stretch.seed,
            batch_size=self.batch_size,
            first=first,
        )

    def _stretches(self) -> Iterator[Stretch]:
        """The whole, or one block after the other; blocks draw from streams of their own."""
        if self.block_length is None:
            yield Stretch(self.model, 0, 0, self.model.length, self.seed)
            return
        for number, start in enumerate(range(0, self.model.length, self.block_length)):
            stop = start + self.block_length
            yield Stretch(Block(self.model, start, stop), number, start, stop, self.seed + number * BLOCK_SEED)
