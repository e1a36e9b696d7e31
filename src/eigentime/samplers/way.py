"""A way of sampling a model, whole or block by block: it follows given sequences, and draws its own samples."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.models.block import Block
from eigentime.models.ending import Ending
from eigentime.process.process import expand_mask, given_tokens
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

NO_TOKEN = -2
"""What no sequence holds."""


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
    """What was walked on one stretch: given sequences, or samples of its own."""

    stretch: Stretch
    rows: Int[Tensor, " m"]
    """Which of the sequences: those that have something to draw there."""
    condition: Condition
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
    end: int | None = None
    """The token that ends a text: what follows it is settled, and costs nothing."""

    def check(self, cond: Any) -> None:
        """Refuse what cannot be measured."""
        if self.block_length is None:
            return
        if cond is not None:
            raise EigentimeError("Blocks are conditioned on what comes before them: leave `cond` out.")
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
        return stepper.likelihood_of(self.planned) == "exact" and self.end is None

    def followed(self, x: Int[Tensor, "n length"], fixed: Any, cond: Tensor | None, first: int) -> Iterator[Followed]:
        """Given sequences taught, block by block with all before as condition."""
        free = ~expand_mask(fixed, x.shape)
        going = torch.ones(len(x), dtype=torch.bool)
        for number, inside in enumerate(self._places()):
            rows = (free[:, inside].any(1) & going).nonzero().squeeze(1)
            if len(rows):
                stretch = self._stretch(number, inside, free[rows])
                condition = replace(self._condition(inside, x[rows], free[rows], cond, rows), given=None)
                yield Followed(stretch, rows, condition, self.teach(stretch, x[rows, inside], condition, first))
            going &= ~self._ended(x, free, inside).any(1)

    def teach(self, stretch: Stretch, x: Int[Tensor, "m part"], condition: Condition, first: int) -> Walked:
        """What sequences cost on one stretch."""
        return teach(
            stretch.model,
            x,
            self.planned,
            self.sampler,
            condition=condition,
            shaping=self.shaping,
            seed=stretch.seed,
            batch_size=self.batch_size,
            first=first,
        )

    def drawn(self, condition: Condition, count: int, first: int) -> Iterator[Followed]:
        """Own samples, block by block with all that was drawn before as condition."""
        shape = torch.Size((count, self.model.length))
        free, tokens = ~expand_mask(condition.fixed, shape), torch.zeros(shape, dtype=torch.long)
        if condition.given is not None:
            tokens = torch.where(free, tokens, given_tokens(condition.given, shape))
        going = torch.ones(count, dtype=torch.bool)
        for number, inside in enumerate(self._places()):
            rows = (free[:, inside].any(1) & going).nonzero().squeeze(1)
            if len(rows):
                stretch = self._stretch(number, inside, free[rows])
                asked = self._condition(inside, tokens[rows], free[rows], condition.cond, rows)
                new, info = walk(
                    stretch.model,
                    self.planned,
                    len(rows),
                    sampler=self.sampler,
                    condition=replace(asked, first=first),
                    shaping=self.shaping,
                    seed=stretch.seed,
                    batch_size=self.batch_size,
                )
                if info.record is None:
                    raise EigentimeError(NOT_COVERED.format(name=make_sampler(self.sampler).name))
                here = free[rows, inside]
                walked = Walked(new, here, info.record.logs, info.record.asked.long(), info.spent, info.exact)
                yield Followed(stretch, rows, asked, walked, info.seconds)
                tokens[rows, inside] = new
            going &= ~self._ended(tokens, free, inside).any(1)

    def singly(self, part: Followed, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same tokens one at a time: see `one_at_a_time`."""
        return one_at_a_time(
            part.stretch.model,
            part.walked,
            self.references,
            cond=part.condition.cond,
            shaping=self.shaping,
            seed=part.stretch.seed,
            batch_size=self.batch_size,
            first=first,
        )

    def _places(self) -> Iterator[slice]:
        """The whole, or one block after the other."""
        length = self.block_length or self.model.length
        for start in range(0, self.model.length, length):
            yield slice(start, start + length)

    def _stretch(self, number: int, inside: slice, free: Bool[Tensor, "m length"]) -> Stretch:
        """What sequences walk on there; blocks draw from streams of their own. End tokens of a prompt end nothing."""
        model, start, stop = self.model, inside.start, inside.stop
        if self.end is not None:
            model = Ending(model, self.end, start + int(free[:, inside].long().argmax(1).max()))
        part = model if self.block_length is None else Block(model, start, stop)
        return Stretch(part, number, start, stop, self.seed + number * BLOCK_SEED)

    def _condition(
        self,
        inside: slice,
        x: Int[Tensor, "m length"],
        free: Bool[Tensor, "m length"],
        cond: Tensor | None,
        rows: Int[Tensor, " m"],
    ) -> Condition:
        """What is given there: tokens, and classes or all that comes before."""
        held = ~free[:, inside]
        given = bool(held.any())
        before = x[:, : inside.start] if self.block_length is not None else None if cond is None else cond[rows]
        return Condition(x[:, inside] if given else None, held if given else None, before)

    def _ended(
        self, x: Int[Tensor, "n length"], free: Bool[Tensor, "n length"], inside: slice
    ) -> Bool[Tensor, "n part"]:
        """Where texts end there."""
        return (x[:, inside] == (NO_TOKEN if self.end is None else self.end)) & free[:, inside]
