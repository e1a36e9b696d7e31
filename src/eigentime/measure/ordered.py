"""What a token costs when tokens are revealed in an order: h_π(j | m), the entropy of the j-th when m are known."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from eigentime.code import code_fingerprint
from eigentime.errors import EigentimeError
from eigentime.ledger import Rows
from eigentime.measure.costs import Estimator
from eigentime.measure.groups import check_levels, check_sums, thinned
from eigentime.measure.level_curve import interpolate
from eigentime.measure.levels import Source
from eigentime.measure.masked import MASKED_SUMS, masked_values
from eigentime.measure.profile import Profile
from eigentime.orders import Order

PER_OCTAVE = 4
"""How many counts are measured between m and 2m."""
EQUAL = 8
"""Steps of equal numbers of tokens whose stops are measured, where the budget allows."""
ENOUGH_SEQUENCES = 16
"""Before more counts are measured, each is measured on about this many sequences."""
ENTROPY, CROSS = MASKED_SUMS.index("entropy"), MASKED_SUMS.index("cross")


@dataclass(frozen=True)
class OrderProfile:
    """Sums over groups of sequences (b) of the entropy of the token of rank j (n) when the first m (g) are known."""

    order: dict[str, Any]
    """`Order.spec` of the order."""
    levels: Int[np.ndarray, " g"]
    sequences: Float[np.ndarray, " b"]
    """How many sequences each group holds."""
    entropy: Float[np.ndarray, "b g n"]
    """Σ H(q), zero for ranks below the level."""
    cross: Float[np.ndarray, "b g n"]
    """Σ -ln q(x0), the same on average where the model is calibrated."""

    @property
    def free(self) -> int:
        """How many tokens a plan reveals."""
        return int(self.entropy.shape[2])

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""
        return len(self.sequences)

    def take(self, groups: Int[np.ndarray, " k"]) -> "OrderProfile":
        """Only what these groups measured."""
        return replace(self, **{name: getattr(self, name)[groups] for name in ("sequences", "entropy", "cross")})

    def thinned(self) -> "OrderProfile":
        """Without every second inner level."""
        kept = thinned(len(self.levels))
        return replace(self, levels=self.levels[kept], entropy=self.entropy[:, kept], cross=self.cross[:, kept])

    def costs(self, estimator: Estimator = "entropy") -> "PlanCosts":
        """What steps of plans in this order cost: h_π(j | m) at the measured m."""
        sums = self.cross if estimator == "cross-entropy" else self.entropy
        return PlanCosts(self.levels, sums.sum(0) / self.sequences.sum())

    def check(self) -> None:
        """Refuse what no measurement gives."""
        check_levels(self.levels, self.free - 1)
        check_sums(self, positive=["sequences", "entropy"], numbers=["cross"])

    def over_ranks(self) -> Profile:
        """Sums over all masked tokens: for the random order, where ranks do not matter, what time schedules cost."""
        masked = self.sequences[:, None] * (self.free - self.levels)
        entropy, cross = self.entropy.sum(2), self.cross.sum(2)
        return Profile(self.levels.astype(float), True, self.free, masked, entropy, cross, mass=masked, raw=entropy)


ORDER_ARRAYS = ("levels", "sequences", "entropy", "cross")


class PlanCosts:
    """Nats that revealing ranks m … n-1 at once costs, Σ_{j=m}^{n-1} h_π(j | m), for every m < n.

    Between measured m the table is interpolated linearly. Ranks that the next level has already revealed have no value
    there; they are taken to fall in the proportion in which those after them do.
    """

    def __init__(self, levels: Int[np.ndarray, " g"], table: Float[np.ndarray, "g n"]) -> None:
        self.levels, self.table, self.free = levels, table, table.shape[1]

    def row(self, m: int) -> Float[np.ndarray, " n"]:
        """h_π(j | m) for every j; entries below m mean nothing."""
        k = int(np.searchsorted(self.levels, m, side="right")) - 1
        if self.levels[k] == m or k + 1 == len(self.levels):
            return np.asarray(self.table[k])
        low, high = self.levels[k : k + 2].tolist()
        row: np.ndarray = self.table[k].copy()
        share = (m - low) / (high - low)
        later = row[high:].sum()
        fall = min(1.0, self.table[k + 1, high:].sum() / later) if later > 0 else 1.0  # nothing is known: no fall
        row[:high] *= 1 + share * (fall - 1)
        row[high:] += share * (self.table[k + 1, high:] - row[high:])
        return row

    def step(self, m: int, n: int) -> float:
        """The cost of one step."""
        return float(self.row(m)[m:n].sum())

    def total(self, stops: Int[np.ndarray, " k"]) -> float:
        """The cost of a whole plan 0 = n_0 < … < n_K = n."""
        return sum(self.step(m, n) for m, n in pairwise(stops.tolist()))

    def matrix(self, nodes: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k k"]:
        """Costs of all steps between nodes; only the upper triangle means anything."""
        costs = np.full((len(nodes), len(nodes)), np.inf)
        for i, m in enumerate(nodes[:-1]):
            reached = np.concatenate([[0.0], np.cumsum(self.row(int(m))[m:])])
            costs[i, i + 1 :] = reached[nodes[i + 1 :] - m]
        return costs


@dataclass(frozen=True)
class Orders:
    """All orders of one measuring pass: they saw the same sequences, so groups of them are taken together."""

    profiles: dict[str, OrderProfile]
    entropy: float | None
    """H(data) in nats, where it is known."""
    exact: bool
    """Whether the model is an oracle, whose own entropies are the truth."""
    chosen: Int[np.ndarray, " k"] | None = None
    """The groups that count, all where None. Tables are large: each order's is cut only when it is asked for."""
    coarse: bool = False
    """Whether every second inner level is left out."""

    @property
    def free(self) -> int:
        """How many tokens a plan reveals."""
        return self.profiles["random"].free

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""
        return self.profiles["random"].groups if self.chosen is None else len(self.chosen)

    @property
    def complete(self) -> bool:
        """Whether every count was measured, so that nothing is interpolated."""
        return len(self.profiles["random"].levels) == self.free

    def take(self, groups: Int[np.ndarray, " k"]) -> "Orders":
        """Only what these groups measured."""
        return replace(self, chosen=groups if self.chosen is None else self.chosen[groups])

    def thinned(self) -> "Orders":
        """Without every second inner level."""
        return replace(self, coarse=True)

    def profile(self, name: str) -> OrderProfile:
        """What counts of one order."""
        profile = self.profiles[name]
        profile = profile if self.chosen is None else profile.take(self.chosen)
        return profile.thinned() if self.coarse else profile

    def costs(self, name: str, estimator: Estimator = "entropy") -> PlanCosts:
        """What steps of plans in one of the orders cost."""
        return self.profile(name).costs(estimator)

    def at_random(self) -> Profile:
        """Sums over masked tokens by how many others are known, wherever they are."""
        return self.profile("random").over_ranks()

    def one_by_one(self, estimator: Estimator = "entropy") -> float:
        """What no plan can save, H(data): known for an oracle, else as the model sees it in random order.

        It is the same for every order, so that orders compare. In random order h_π(j | m) does not depend on j, so a
        row of the table is averaged; between rows the curve is as smooth as that of a time schedule.
        """
        if self.entropy is not None:
            return self.entropy
        costs = self.costs("random", estimator)
        heights = np.array([row[m:].mean() for m, row in zip(costs.levels, costs.table, strict=True)])
        return float(interpolate(costs.levels / costs.free, heights, np.arange(costs.free) / costs.free).sum())

    def error(self, name: str, stops: Int[np.ndarray, " k"], estimator: Estimator = "entropy") -> float:
        """The path error of a plan in nats."""
        return self.costs(name, estimator).total(stops) - self.one_by_one(estimator)


def plan_levels(free: int, budget: int) -> Int[np.ndarray, " g"]:
    """Counts to measure at: all, where the budget allows; else 0, up to `PER_OCTAVE` to a doubling, and for what is
    left of it eighths, at which steps of equal numbers stop, and evenly spaced ones: doublings are far apart among many
    tokens."""
    affordable = budget // ENOUGH_SEQUENCES
    if affordable >= free:
        return np.arange(free)
    dense = int(np.clip(affordable // max(1, free.bit_length()), 1, PER_OCTAVE))
    steps = np.arange(0, dense * (free - 1).bit_length() + 1) / dense if free > 1 else np.empty(0)
    doubling = np.unique(np.append(0, np.clip(np.round(2**steps), 0, free - 1)))
    left = affordable - len(doubling)
    eighths = np.round(np.linspace(0, free, EQUAL + 1))[1:-1] if left >= EQUAL - 1 else np.empty(0)
    evenly = np.round(np.linspace(0, free - 1, max(0, left - len(eighths))))
    return np.unique(np.concatenate([doubling, eighths, evenly])).astype(int)


def measure_order(
    source: Source,
    order: Order,
    levels: Int[np.ndarray, " g"],
    sequences: int,
    shape: tuple[int, ...] | None = None,
    first: int = 0,
) -> tuple[Float[np.ndarray, "s g n 2"], int, Float[np.ndarray, "s 4 ..."] | None]:
    """Entropy and cross-entropy by (sequence, level, rank) of sequences from `first` on, the evaluations spent and,
    with a `shape`, what the dependence is made of: for every offset along its axes, sums of entropies and numbers of
    pairs whose other token is known, and the same where it is masked."""
    model, count = source.model, int(source.free)
    if not bool(((~source.fixed).sum(1) == count).all()):
        raise EigentimeError("Plans need the same number of free tokens in every sequence; group your data by it.")
    nothing_given = source.cond is None and not bool(source.fixed.any())

    def measured(first: int, number: int) -> Rows:
        x0, fixed, cond = source.rows(first, number)
        ranks = order.ranks(~fixed, source.seed, first)
        by_rank = ranks.masked_fill(fixed, source.data.shape[1]).argsort(1)[:, :count]
        values = np.zeros((number, len(levels), count, 2))
        dependence = np.zeros((number, 4, *(shape or ())))
        for k, level in enumerate(levels.tolist()):
            x = x0.masked_fill(ranks >= level, model.process.mask)
            t = torch.full((number,), model.process.noise.time_of_alpha(level / count).item(), dtype=torch.float64)
            found = masked_values(model, x, x0, t, cond, level == 0 and nothing_given)[..., [ENTROPY, CROSS]]
            values[:, k] = np.take_along_axis(found, by_rank.numpy()[..., None], 1)
            if shape and level > 0:
                dependence += _pairs(found[..., 0], (ranks < level).numpy(), (ranks >= level).numpy(), shape)
        return {"values": values, "near": dependence} if shape else {"values": values}

    name = f"order {order.name} {code_fingerprint([vars(order), levels, shape])}"
    found = source.ledger.rows(name, first, sequences, source.batch, measured)
    spent = sum(1 if level == 0 and nothing_given else sequences for level in levels)
    return found["values"], spent, found.get("near")


def _pairs(
    entropy: Float[np.ndarray, "b length"],
    known: Bool[np.ndarray, "b length"],
    masked: Bool[np.ndarray, "b length"],
    shape: tuple[int, ...],
) -> Float[np.ndarray, "b 4 ..."]:
    """For every offset: Σ entropy of masked tokens with a known one there, how many, and the same with a masked one."""
    padded, axes = [2 * size for size in shape], tuple(range(1, len(shape) + 1))

    def spectrum(values: np.ndarray) -> np.ndarray:
        return np.fft.rfftn(values.reshape(-1, *shape).astype(float), padded, axes)

    here = [spectrum(entropy), spectrum(masked)]
    sums = []
    for other in (known, masked):
        there = np.conj(spectrum(other))
        for mine in here:
            found = np.fft.irfftn(mine * there, padded, axes)
            for axis, size in zip(axes, shape, strict=True):  # offsets +d and -d are one
                found = _fold(found, axis, size)
            sums.append(found)
    return np.stack(sums, 1)


def _fold(values: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Add the entry of offset -d (at 2·size - d) to that of +d."""
    positive = np.take(values, np.arange(size), axis)
    negative = np.take(values, -np.arange(size) % (2 * size), axis)
    negative = np.where(
        (np.arange(size) == 0).reshape([-1 if a == axis else 1 for a in range(values.ndim)]), 0, negative
    )
    return np.asarray(positive + negative)


def dependence_of(sums: Float[np.ndarray, "s 4 ..."]) -> Float[np.ndarray, "..."]:
    """How many nats a known token at an offset takes from a masked one's entropy, averaged over the levels."""
    known, with_known, masked, with_masked = sums.sum(0)
    enough = (with_known > 0.5) & (with_masked > 0.5)
    drop = np.where(enough, masked / np.maximum(with_masked, 1) - known / np.maximum(with_known, 1), 0.0)
    drop[(0,) * drop.ndim] = drop.max() + 1.0  # nothing tells more of a token than the token itself
    return np.maximum(drop, 0.0)
