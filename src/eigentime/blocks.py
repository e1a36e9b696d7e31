"""One measurement for texts that are generated block by block: a clock for every position of a block, and whether one
plan serves them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eigentime import api
from eigentime.arguments import SEED, checked, flag, number, optional, whole, words
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.models import Block, Ending, Model
from eigentime.models.base import MODEL
from eigentime.models.clean import clean_data
from eigentime.orders import order_from_spec
from eigentime.process.process import expand_mask
from eigentime.schedules import Certificate, Plan, Schedule, plan
from eigentime.schedules.certificate import extra_schedule_cost
from eigentime.schedules.planning import extra_plan_cost

TOLERANCE = 0.01
"""Nats per token that one plan may cost more than a block's own."""
FEWEST = 2
"""Sequences that must reach a block for it to be measured."""


@dataclass(frozen=True)
class Sharing:
    """What using the first block's schedule or plan in every other block costs, in nats of a block above its own."""

    extra: tuple[Certificate, ...]
    """Of the second block, the third, …; paired: both are judged on the same sequences, which chose neither."""
    tolerance: float
    """Nats of a block that do not matter."""

    @property
    def serves(self) -> bool | None:
        """Whether the first block's serves all: none costs more than the tolerance at 95 %, or one surely does; None
        where that is not known yet."""
        intervals = [each.interval() for each in self.extra]
        if any(low > self.tolerance for low, _ in intervals):
            return False
        return True if all(high <= self.tolerance for _, high in intervals) else None

    def __str__(self) -> str:
        if not self.extra:
            return "There is one block, which its own plan serves."
        worst = max(range(len(self.extra)), key=lambda k: self.extra[k].interval()[0 if self.serves is False else 1])
        low, high = self.extra[worst].interval()
        there = f"in block {worst + 2} it costs {self.extra[worst].mean:.3g} nats more than that block's own"
        verdict = {
            True: f"The first block's plan serves all {len(self.extra) + 1} blocks",
            False: "The first block's plan does not serve all blocks",
            None: "Whether the first block's plan serves all blocks is not known yet",
        }[self.serves]
        return f"{verdict}: {there} ({low:.3g} to {high:.3g}), where {self.tolerance:.3g} are allowed."


@dataclass(frozen=True)
class BlockClocks:
    """A clock for every block that sequences reach."""

    clocks: tuple[Clock, ...]
    starts: tuple[int, ...]
    """Where each block begins."""
    reached: tuple[float, ...]
    """The share of the sequences that each was measured on: those that have not ended before it."""

    def plans(self, steps: int) -> list[Plan]:
        """Each block's best plan."""
        return [plan(clock, steps) for clock in self.clocks]

    def schedules(self, strategy: str, steps: int) -> list[Schedule]:
        """Each block's schedule."""
        return [api.schedule(clock, strategy, steps=steps) for clock in self.clocks]

    @checked(strategy=words, tolerance=number(0))
    def sharing(self, steps: int, strategy: str = "plan", tolerance: float = TOLERANCE) -> Sharing:
        """Whether the first block's plan, or its schedule of another strategy, serves all; nats per token that do not
        matter are the tolerance."""
        first, *others = self.clocks
        if strategy == "plan":
            chosen = plan(first, steps)
            extra = [extra_plan_cost(clock, chosen) for clock in others]
        else:
            grid = api.schedule(first, strategy, steps=steps)
            extra = [extra_schedule_cost(clock, grid) for clock in others]
        return Sharing(tuple(extra), tolerance * first.length)


@checked(model=MODEL, block_length=whole(1), end=optional(whole()), budget=whole(16), seed=SEED, progress=flag)
def measure_blocks(
    model: Model,
    data: Any = None,
    *,
    block_length: int,
    fixed: Any = None,
    end: int | None = None,
    budget: int = 512,
    orders: Sequence[Any] = (),
    batch_size: int | Literal["auto"] = "auto",
    seed: int = 0,
    progress: bool = False,
) -> BlockClocks:
    """Measure every block of sequences that are generated block by block, each given all that comes before it.

    data          clean sequences (N, L); given tokens may begin with padding, -1
    block_length  tokens of a block; blocks that hold given tokens are left out
    fixed         (L,) or (N, L) booleans: given tokens, a prompt
    end           the token that ends a text: a block is measured on the texts that reach it, and what follows the end
                  costs nothing
    budget        evaluations of each block, and of each order of it
    """
    drawn = api.own_data(model, min(max(64, budget // 4), api.MOST_OWN), seed) if data is None else data
    x = clean_data(drawn, model, padded=True)
    if not 0 < block_length <= model.length or model.length % block_length:
        raise EigentimeError(f"{model.length} tokens do not split into blocks of {block_length}.")
    free = ~expand_mask(fixed, x.shape)
    ended = (x == (-2 if end is None else end)) & free
    clocks: list[Clock] = []
    starts, reached, wanted = [], [], [orders] if isinstance(orders, str) else list(orders)
    for start in range(0, model.length, block_length):
        rows = (free[:, start : start + block_length].all(1) & ~ended[:, :start].any(1)).nonzero().squeeze(1)
        if len(rows) < FEWEST:
            continue
        block = Block(model if end is None else Ending(model, end, start), start, start + block_length)
        learned = (
            [order_from_spec(each.order) for each in clocks[0].orders.values() if _learned(each.order)]
            if clocks
            else []
        )
        clock = api.measure(
            block,
            x[rows, start : start + block_length],
            cond=x[rows, :start] if start else None,
            budget=budget,
            orders=[*wanted, *learned],
            batch_size=batch_size,
            seed=seed,
            progress=progress,
        )
        clocks.append(clock)
        starts.append(start)
        reached.append(len(rows) / len(x))
    if not clocks:
        raise EigentimeError(
            f"No block of {block_length} tokens is free in {FEWEST} sequences: nothing can be measured."
        )
    return BlockClocks(tuple(clocks), tuple(starts), tuple(reached))


def _learned(spec: dict[str, Any]) -> bool:
    """Whether an order was made of what was measured in its block: elsewhere it must be measured as it is."""
    return "dependence" in spec
