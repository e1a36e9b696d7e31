"""Operations on lists whose answers are known in closed form: a list of different items in, a list of `length` out.

The waiting-line tasks of ParallelBench (arXiv 2510.04767). Given the prompt all answers that an operation allows are
equally likely: one for `copy`, `length` for `replace-random`, length! for `shuffle`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Answers = Int[Tensor, "b length"]


@dataclass(frozen=True)
class Prompt:
    """What an operation is given."""

    items: Int[Tensor, "b k"]
    """The list, all different."""
    new: Int[Tensor, " b"]
    """An item that is not in it."""
    place: Int[Tensor, " b"]
    """Where to act, counted from 0."""


@dataclass(frozen=True)
class Operation(ABC):
    """A list in, one of equally likely lists of `length` items out."""

    name: str
    extra: int = 0
    """By how many items the list of the prompt is longer than the answer."""
    new: bool = False
    """Whether the prompt names a new item."""
    indexed: bool = False
    """Whether the prompt names the place."""

    @abstractmethod
    def answers(self, length: int) -> int:
        """How many answers there are."""

    @abstractmethod
    def draw(self, prompt: Prompt, u: Float[Tensor, "b length"]) -> Answers:
        """One of them."""

    @abstractmethod
    def allows(self, prompt: Prompt, answer: Answers) -> Bool[Tensor, " b"]:
        """Whether it is one of them."""

    @abstractmethod
    def choice(self, prompt: Prompt, answer: Answers) -> Int[Tensor, " b"]:
        """Something about an allowed answer that is equally likely to be any of `choices`."""

    @abstractmethod
    def choices(self, length: int) -> int:
        """How many."""

    @abstractmethod
    def posterior(
        self, prompt: Prompt, answer: Answers, known: Bool[Tensor, "b length"], size: int
    ) -> Float[Tensor, "b length size"]:
        """P(answer_i | prompt, known tokens) at every place, over `size` values.

        A sampled answer may hold tokens that no answer allows. The answers with the fewest tokens that disagree count
        then: the limit of answers seen through vanishing noise.
        """


@dataclass(frozen=True)
class Few(Operation):
    """So few answers that all are written down."""

    possible: Callable[[Prompt], Int[Tensor, "b c length"]] = lambda prompt: prompt.items[:, None]

    def answers(self, length: int) -> int:
        one = torch.zeros(1, dtype=torch.long)
        return self.possible(Prompt(torch.arange(length + self.extra)[None], one, one)).shape[1]

    def draw(self, prompt: Prompt, u: Float[Tensor, "b length"]) -> Answers:
        possible = self.possible(prompt)
        chosen = (u[:, 0] * possible.shape[1]).long()
        return possible[torch.arange(len(possible)), chosen]

    def allows(self, prompt: Prompt, answer: Answers) -> Bool[Tensor, " b"]:
        return self._equal(prompt, answer).any(1)

    def choice(self, prompt: Prompt, answer: Answers) -> Int[Tensor, " b"]:
        return self._equal(prompt, answer).int().argmax(1)

    def choices(self, length: int) -> int:
        return self.answers(length)

    def _equal(self, prompt: Prompt, answer: Answers) -> Bool[Tensor, "b c"]:
        return (self.possible(prompt) == answer[:, None]).all(-1)

    def posterior(
        self, prompt: Prompt, answer: Answers, known: Bool[Tensor, "b length"], size: int
    ) -> Float[Tensor, "b length size"]:
        possible = self.possible(prompt)
        wrong = (known[:, None] & (possible != answer[:, None])).sum(-1)
        weight = (wrong == wrong.amin(1, keepdim=True)).double()
        weight = (weight / weight.sum(1, keepdim=True))[..., None].expand(possible.shape)
        rows = torch.zeros(*answer.shape, size, dtype=torch.float64)
        return rows.scatter_add_(2, possible.transpose(1, 2), weight.transpose(1, 2))


@dataclass(frozen=True)
class Shuffle(Operation):
    """Every order of the items: what is not known yet is equally likely everywhere."""

    def answers(self, length: int) -> int:
        return math.factorial(length)

    def draw(self, prompt: Prompt, u: Float[Tensor, "b length"]) -> Answers:
        return prompt.items.gather(1, u.argsort(1))

    def allows(self, prompt: Prompt, answer: Answers) -> Bool[Tensor, " b"]:
        return (prompt.items.sort(1).values == answer.sort(1).values).all(1)

    def choice(self, prompt: Prompt, answer: Answers) -> Int[Tensor, " b"]:
        """Which of the items comes first."""
        return (prompt.items == answer[:, :1]).int().argmax(1)

    def choices(self, length: int) -> int:
        return length

    def posterior(
        self, prompt: Prompt, answer: Answers, known: Bool[Tensor, "b length"], size: int
    ) -> Float[Tensor, "b length size"]:
        left = torch.zeros(len(answer), size, dtype=torch.float64).scatter_(1, prompt.items, 1.0)
        seen = torch.zeros(len(answer), size).scatter_add_(1, answer, known.float())
        left = left.masked_fill(seen > 0, 0.0)
        return (left / left.sum(1, keepdim=True).clamp(min=1.0))[:, None].expand(*answer.shape, size)


def replaced(prompt: Prompt) -> Int[Tensor, "b c length"]:
    """The new item in place of each item in turn."""
    there = torch.eye(prompt.items.shape[1], dtype=torch.bool)
    return torch.where(there, prompt.new[:, None, None], prompt.items[:, None])


def inserted(prompt: Prompt) -> Int[Tensor, "b c length"]:
    """The new item before each item in turn, and at the end."""
    count = prompt.items.shape[1]
    place, position = torch.arange(count + 1)[:, None], torch.arange(count + 1)
    source = torch.where(position == place, count, position - (position > place).long())
    return torch.cat([prompt.items, prompt.new[:, None]], 1)[:, source]


def removed(prompt: Prompt) -> Int[Tensor, "b c length"]:
    """Without each item in turn."""
    count = prompt.items.shape[1]
    place, position = torch.arange(count)[:, None], torch.arange(count - 1)
    return prompt.items[:, position + (position >= place).long()]


def at_place(every: Callable[[Prompt], Int[Tensor, "b c length"]]) -> Callable[[Prompt], Int[Tensor, "b 1 length"]]:
    """The one of these answers whose place the prompt names."""

    def only(prompt: Prompt) -> Int[Tensor, "b 1 length"]:
        possible = every(prompt)
        return possible[torch.arange(len(possible)), prompt.place.clamp(0, possible.shape[1] - 1)][:, None]

    return only


OPERATIONS: dict[str, Operation] = {
    each.name: each
    for each in (
        Few("copy"),
        Few("reverse", possible=lambda prompt: prompt.items.flip(1)[:, None]),
        Few("sort", possible=lambda prompt: prompt.items.sort(1).values[:, None]),
        Few("replace-index", new=True, indexed=True, possible=at_place(replaced)),
        Few("insert-index", extra=-1, new=True, indexed=True, possible=at_place(inserted)),
        Few("remove-index", extra=1, indexed=True, possible=at_place(removed)),
        Few("replace-random", new=True, possible=replaced),
        Few("insert-random", extra=-1, new=True, possible=inserted),
        Few("remove-random", extra=1, possible=removed),
        Shuffle("shuffle"),
    )
}
CERTAIN = tuple(name for name, operation in OPERATIONS.items() if operation.answers(4) == 1)
RANDOM = tuple(name for name in OPERATIONS if name not in CERTAIN)


def places(length: int, extra: int) -> int:
    """Places that an index may name: one for every item, and for a shorter list also its end."""
    return length + max(extra, 0)
