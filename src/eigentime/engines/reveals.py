"""What a block-wise engine needs of a plan or a schedule: which tokens of a block each evaluation reveals.

Engines that serve masked language models fill one block of tokens after the other. Within a block the counts and
places come from here; an engine's adapter only moves tokens.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.orders import Order, make_order
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

Places = Int[np.ndarray, " n"]
FreeTokens = Bool[np.ndarray, " block"]


@dataclass(frozen=True, eq=False)
class Reveals:
    """After evaluation k, round(reached_k · n / reached_K) of a block's n free tokens are known, the first in order.

    reached   increasing from 0: a plan's cumulative counts, or a schedule's α
    order     which tokens come first
    length    tokens of the block it was made for; None where any will do
    """

    reached: Float[np.ndarray, " k"]
    order: Order
    length: int | None = None

    @property
    def evaluations(self) -> int:
        """Network evaluations of a block; engines with a cache spend one more to store it."""
        return len(self.reached) - 1

    def stops(self, free: int) -> Int[np.ndarray, " k"]:
        """Cumulative counts for a block with this many free tokens."""
        return np.asarray(np.round(self.reached * free / self.reached[-1]).astype(int))

    def check_length(self, length: int) -> None:
        """Refuse blocks of another length than the one that was measured."""
        if self.length is not None and self.length != length:
            raise EigentimeError(
                f"The plan is for blocks of {self.length} tokens, the engine's have {length}; "
                f"measure a block of {length} tokens and plan again."
            )

    def steps(self, free: FreeTokens, key: int) -> Int[np.ndarray, " block"]:
        """At which evaluation each token is revealed, -1 where it is given; evaluations that reveal nothing are
        skipped. The order's chance comes from `key`."""
        self.check_length(len(free))
        ranks = self.order.ranks(torch.from_numpy(free)[None], key)[0].numpy()
        ends = np.unique(self.stops(int(free.sum())))[1:]
        return np.where(free, np.searchsorted(ends, ranks, side="right"), -1)


@singledispatch
def reveals(followed: Any) -> Reveals:
    """A plan's counts and order; a schedule's counts at random places, as the sampler `counted` has them."""
    raise EigentimeError(f"An engine follows a plan or a schedule, not {type(followed).__name__}.")


@reveals.register
def _(followed: Plan) -> Reveals:
    return Reveals(np.cumsum([0, *followed.counts]).astype(float), followed.order, followed.length)


@reveals.register
def _(followed: Schedule) -> Reveals:
    inner = followed.alphas[1 : followed.evaluations]
    return Reveals(np.concatenate([[0.0], inner, [1.0]]), make_order("random"))


class Walk:
    """One block on its way: what is still masked, and what the next evaluation reveals."""

    def __init__(self, followed: Reveals, free: FreeTokens, key: int) -> None:
        self.steps = followed.steps(free, key)
        self.key, self.step = key, 0

    @property
    def masked(self) -> FreeTokens:
        """What is not revealed yet."""
        return self.steps >= self.step

    @property
    def done(self) -> bool:
        """Whether everything is known."""
        return bool(self.step > self.steps.max(initial=-1))

    def take(self) -> tuple[Places, Float[Tensor, " n"]]:
        """The places that the evaluation at hand reveals, with one uniform for each; the walk goes on."""
        places = np.flatnonzero(self.steps == self.step)
        u = uniforms(self.key, Purpose.DRAW, 1, len(self.steps), step=self.step)[0, places]
        self.step += 1
        return places, u


def take_all(walks: Sequence[Walk]) -> tuple[Places, Places, Float[Tensor, " n"]]:
    """Rows, places and uniforms of what the evaluation at hand reveals in all blocks of a batch."""
    taken = [walk.take() for walk in walks]
    rows = np.repeat(np.arange(len(walks)), [len(places) for places, _ in taken])
    return rows, np.concatenate([places for places, _ in taken]), torch.cat([u for _, u in taken])


def key_of(*names: Any) -> int:
    """A seed for one block, the same in every process: 64 bits from whatever tells it from others."""
    return int.from_bytes(hashlib.blake2b(repr(names).encode(), digest_size=8).digest(), "little")


def tokens_from(
    logits: Float[Tensor, "n size"], u: Float[Tensor, " n"], shaping: Shaping, mask: int
) -> Int[Tensor, " n"]:
    """Draw a token from every row by inverse CDF; the mask is never drawn."""
    rows = logits.float().clone()
    if 0 <= mask < rows.shape[-1]:
        rows[:, mask] = -torch.inf
    return draw(shaping(rows.softmax(-1)), u)
