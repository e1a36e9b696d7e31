"""A sampling run: the model asked for some tokens at a time, every evaluation counted, and what it said of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.models.base import Model, posterior_rows
from eigentime.models.batching import OUT_OF_MEMORY, BatchSize
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.noise import Times
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.guidance import Guidance
from eigentime.samplers.record import Record
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.state import Mask, State

LEAST = 2.0**-149
"""The smallest positive number of single precision."""


@dataclass(frozen=True)
class Answer:
    """What the network says of some tokens."""

    sequence: Int[Tensor, " rows"]
    position: Int[Tensor, " rows"]
    """Where they are, on the CPU."""
    tokens: Int[Tensor, " rows"]
    """What they are now."""
    laws: list[Rows]
    """The posterior of each, or with guidance those with and without the condition, none of them sharpened."""
    hidden: list[Float[Tensor, "rows d"]]
    """The network's rows that these were made of."""
    last: bool
    """Whether these are the last rows of one call of the network."""


@dataclass
class Run:
    """A model and everything that one call of `sample` says about using it."""

    model: Model
    seed: int = 0
    shaping: Shaping = field(default_factory=Shaping)
    batch_size: int | Literal["auto"] = "auto"
    cond: Tensor | None = None
    guidance: Guidance | None = None
    given: Mask | None = None
    """Which tokens are given: what guidance hides, where there are no classes."""
    evaluations: int = 0
    """Sequences evaluated so far."""
    clipped: Any = 0
    """Token laws that had to be clipped: a number that may still be on the device."""
    drawn: int = 0
    """Token laws that were used."""
    memory: dict[str, Any] = field(default_factory=dict)
    """What a sampler remembers from one step of this run to the next."""
    paths: tuple[dict[int, Tensor], dict[int, Tensor]] = field(default_factory=lambda: ({}, {}))
    """What a model that looks back remembers of each sequence, with the condition and without."""
    record: Record | None = None
    """Where the laws of what is drawn are written down, if anyone wants to know."""
    asked: int = 0
    """How often the network was asked, all sequences together being once."""
    spent: Int[Tensor, " n"] | None = None
    """Evaluations of each sequence so far."""
    first: int = 0
    """Which sequence the first of these is among all: it draws from that one's streams."""

    def __post_init__(self) -> None:
        self.batch = BatchSize(self.model, self.batch_size)

    @property
    def keeps_mass(self) -> bool:
        """Whether posteriors may not sum to one: published score networks, used as they are."""
        plain = self.shaping.neutral and self.guidance is None
        return self.model.predicts == "score" and not self.shaping.normalise and plain

    @property
    def least(self) -> float:
        """The smallest probability that a network's softmax means by 0; shaping and exact laws do forbid."""
        return 0.0 if self.model.exact or not self.shaping.neutral else LEAST

    def uniforms(self, purpose: Purpose, state: State, step: int) -> Float[Tensor, "n length"]:
        """This step's uniforms for all sequences, on the CPU."""
        return uniforms(self.seed, purpose, *state.tokens.shape, step=step, first=self.first)

    def some_uniforms(self, purpose: Purpose, first: int, count: int, numbers: int, step: int) -> Tensor:
        """So many numbers for each of `count` sequences from `first` on, on the CPU."""
        return uniforms(self.seed, purpose, count, numbers, step=step, first=self.first + first)

    def answers(self, state: State, t: float | Float[Tensor, " n"], where: Mask) -> Iterator[Answer]:
        """The network's answers for the tokens of `where`; only sequences with such a token are evaluated.

        t is one time for all, or one for each sequence. Where memory runs out, what is left is asked for again in
        smaller batches.
        """
        left = where.clone()
        self.asked += 1
        self.spent = torch.zeros(len(where), dtype=torch.long) if self.spent is None else self.spent
        self.spent += self.model.busy(state.tokens, where, self.cond)
        while True:
            index = left.any(1).nonzero().squeeze(1)[: self.batch.value]
            if not len(index):
                return
            try:
                for answer in self._evaluated(state, t, left, index):
                    yield answer
                    left[answer.sequence, answer.position] = False
            except OUT_OF_MEMORY as error:
                self.batch.shrink(error, len(index))

    def _evaluated(
        self, state: State, t: float | Float[Tensor, " n"], where: Mask, index: Int[Tensor, " b"]
    ) -> Iterator[Answer]:
        asked = where[index]
        sequence, position = asked.nonzero(as_tuple=True)
        times = t[index] if isinstance(t, Tensor) else torch.full((len(index),), t, dtype=torch.float64)
        x = state.tokens if len(index) == len(where) else state.tokens[index.to(state.device)]
        cond = None if self.cond is None else self.cond[index]
        shown = [(x, cond)]
        if self.guidance is not None:
            given = None if self.given is None else self.given[index]
            shown.append(self.guidance.without(x, given, cond, state.mask))
        passes = [
            self.model.evaluate_along(path, index, tokens, times, asked, c)
            for path, (tokens, c) in zip(self.paths, shown, strict=False)
        ]
        self.evaluations += int(self.model.busy(x, asked, cond).sum()) * len(shown) * self.model.passes
        for parts in zip(*(one.pieces() for one in passes), strict=True):
            piece = parts[0][0]
            inside, places = sequence[piece], position[piece]
            tokens = self.tokens(state, index[inside], places)
            at = times[inside] if isinstance(t, Tensor) else times[0]
            laws = [self.posterior(logs, tokens, at) for _, logs in parts]
            hidden, last = [one.rows[piece] for one in passes], piece.stop == len(sequence)
            yield Answer(index[inside], places, tokens, laws, hidden, last)

    def tokens(self, state: State, sequence: Int[Tensor, " n"], position: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """The present tokens; on masked kernels only masks are asked for, and the CPU knows them."""
        if state.mask is not None:
            return torch.full(sequence.shape, state.mask)
        return state.tokens.view(-1)[state.places(sequence, position)]

    def posterior(self, logs: Rows, tokens: Int[Tensor, " n"], t: Times) -> Rows:
        """The network's logs as posteriors, normalised unless the run keeps their mass."""
        return posterior_rows(self.model, logs, tokens, t, not self.keeps_mass)

    def guided(self, laws: list[Rows]) -> Rows:
        """One law, or those with and without the condition mixed."""
        return laws[0] if self.guidance is None else self.guidance.mix(laws[0], laws[1])

    def normalised(self, rows: Rows) -> Rows:
        """Laws that sum to one, which those of a score network may not do."""
        return rows / rows.sum(-1, keepdim=True) if self.keeps_mass else rows

    def draw(self, state: State, answer: Answer, u: Float[Tensor, " rows"]) -> Int[Tensor, " rows"]:
        """A value for every token of an answer, drawn from its posterior, guided and sharpened."""
        rows = self.law(answer)
        return self.settled(state, answer, rows, draw(rows, u))

    def settled(self, state: State, answer: Answer, rows: Rows, values: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
        """The values that count, drawn from these laws: the teacher's, where a record has one."""
        if self.record is None:
            return values
        place = answer.sequence, answer.position
        return self.record.settle(state, place, self.normalised(rows), values, self.asked - 1, self.least)

    def law(self, answer: Answer) -> Rows:
        """The posterior that values are drawn from: guided and sharpened."""
        return self.shaping(self.guided(answer.laws))


class HiddenRows:
    """The hidden rows of one evaluation: small, and enough to make its laws again."""

    def __init__(self, run: Run, state: State, t: float | Float[Tensor, " n"]) -> None:
        self.run, self.t, self.count = run, t, 0
        self.row_of = torch.full(state.active.shape, -1)
        self.parts: list[list[Tensor]] = []

    def add(self, answer: Answer) -> None:
        """Keep what an answer was made of."""
        rows = len(answer.sequence)
        self.row_of[answer.sequence, answer.position] = torch.arange(self.count, self.count + rows)
        self.parts.append(answer.hidden)
        self.count += rows

    def law(self, answer: Answer, tokens: Int[Tensor, " n"]) -> Rows:
        """The posteriors that these places had then, unsharpened, when their tokens were these. All of them must have
        been added."""
        if len(self.parts) > 1:
            self.parts = [[torch.cat(rows) for rows in zip(*self.parts, strict=True)]]
        rows = self.row_of[answer.sequence, answer.position]
        at = self.t[answer.sequence] if isinstance(self.t, Tensor) else torch.tensor(self.t, dtype=torch.float64)
        laws = [
            self.run.posterior(self.run.model.head(part[rows.to(part.device)]), tokens, at) for part in self.parts[0]
        ]
        return self.run.guided(laws)
