"""Which part of a sequence a language model computes at an evaluation: all of it, or a window whose surroundings are
kept as keys and values from before.

Three ways to keep them, of which a block of tokens start … stop-1 is generated (x is the sequence now):

    exact    the network was trained in blocks that do not see later ones: what comes before the block does not change
    prefix   every token sees all, yet what comes before the block is kept from when the block was still masked
    dual     so is what comes after it (both: Fast-dLLM)

In the last two the posterior is another function of the tokens known before the block and of those known now. It is
still a function of known tokens alone, so that teacher forcing computes the law of what is sampled exactly.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models.base import rows_at
from eigentime.models.checkpoints.key_values import Layers, between, joined

if TYPE_CHECKING:
    from eigentime.models.checkpoints.masked_lm import MaskedLM

CacheKind = Literal["prefix", "dual"]


class Scope(ABC):
    """What of a sequence is computed."""

    @abstractmethod
    def rows(
        self, model: "MaskedLM", x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"]
    ) -> Float[Tensor, "n d"]:
        """The network's rows for the tokens of `where`."""

    def moved(self, places: int) -> "Scope":
        """The same for sequences that lack so many tokens at their beginning."""
        return self


class Whole(Scope):
    """All of it."""

    def rows(
        self, model: "MaskedLM", x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"]
    ) -> Float[Tensor, "n d"]:
        return rows_at(model.output(x), where)


@dataclass(frozen=True)
class Window(Scope):
    """Tokens start … stop-1, the only ones that are asked for."""

    start: int
    stop: int

    def moved(self, places: int) -> "Window":
        return replace(self, start=self.start - places, stop=self.stop - places)


class Finished(Window):
    """Exact: blocks before this one are computed once, each when it is finished; later ones not at all."""

    def rows(
        self, model: "MaskedLM", x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"]
    ) -> Float[Tensor, "n d"]:
        block = model.block
        assert block is not None
        if bool(((x < 0).sum(1) % block).any()):  # blocks begin at different places of different sequences
            return rows_at(model.output(x), where)
        first, last = self.start // block * block, min(-(-self.stop // block) * block, x.shape[1])
        x, where = x[:, :last], where[:, :last]
        if first == 0 or model.taking is None:
            return rows_at(model.output(x), where)
        before = _kept(model, ("exact", first), x[:, :first], lambda known: _prefix(model, known))
        first -= int(model.family.shifted)
        return rows_at(model.ask(x, first, last, between(before, 0, first))[0], where[:, first:])


class Stale(Window):
    """Approximate: keys and values from when the block was still masked."""

    after: bool = False
    """Whether those of later tokens are kept too."""

    def rows(
        self, model: "MaskedLM", x: Int[Tensor, "b length"], where: Bool[Tensor, "b length"]
    ) -> Float[Tensor, "n d"]:
        first, last = max(0, self.start - int(model.family.shifted)), self.stop if self.after else x.shape[1]
        if first == 0 and last == x.shape[1]:
            return rows_at(model.output(x), where)
        place = (type(self), x.shape[1] - self.start, self.stop - self.start)  # the same whatever the prompt's length
        kept = _kept(model, place, x[:, : self.start], lambda known: _masked_rest(model, known, x.shape[1]))
        before, after = between(kept, 0, first) if first else [], between(kept, last, None) if last < x.shape[1] else []
        return rows_at(model.ask(x, first, last, before, after)[0], where[:, first:last])


class StalePrefix(Stale):
    """Fast-dLLM's prefix cache."""


class StaleBoth(Stale):
    """Fast-dLLM's dual cache."""

    after = True


STALE: dict[CacheKind, type[Stale]] = {"prefix": StalePrefix, "dual": StaleBoth}


def _kept(model: "MaskedLM", place: object, known: Int[Tensor, "b n"], compute: Callable[[Tensor], Layers]) -> Layers:
    """Keys and values that follow from known tokens: kept ones, and what is missing computed."""
    layers, missing = model.kept.get(place, known)
    if layers is not None:
        return layers
    made = compute(known[missing])
    model.kept.put(place, known[missing], made)
    if len(missing) == len(known):
        return made
    layers, _ = model.kept.get(place, known)
    return compute(known) if layers is None else layers  # there was no room for all


def _prefix(model: "MaskedLM", known: Int[Tensor, "b n"]) -> Layers:
    """Keys and values of finished blocks; where those of all but the last ones are kept, only the last are computed."""
    total = known.shape[1]
    for place in reversed(model.kept.places):
        if place[0] == "exact" and place[1] < total:
            before, _ = model.kept.get(place, known[:, : place[1]])
            if before is not None:
                return joined([before, model.ask(known, place[1], total, before)[1]])
    return model.ask(known, 0, total, [])[1]


def _masked_rest(model: "MaskedLM", known: Int[Tensor, "b n"], length: int) -> Layers:
    """Keys and values of a sequence of which nothing else is known."""
    x = torch.full((len(known), length), model.process.mask, dtype=known.dtype, device=known.device)
    x[:, : known.shape[1]] = known
    return model.ask(x, 0, length, [])[1]
