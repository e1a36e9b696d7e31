"""What data cost under the very sampler that people run, and how far its samples are from its own one-token-at-a-time
law: certificates for samplers that look at what they reveal."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime import api
from eigentime.arguments import SEED, Check, checked, flag, kind, number, optional, place, whole
from eigentime.code import code_fingerprint
from eigentime.data.streams import taken
from eigentime.errors import EigentimeError
from eigentime.gathering import Batch, Gathered, Limits, Page, gather, store_of
from eigentime.intervals import PerSequence
from eigentime.ledger import hashed
from eigentime.models import Model, Oracle
from eigentime.models.base import MODEL
from eigentime.models.clean import clean_data
from eigentime.orders import Order
from eigentime.process.process import check_cond, expand_mask
from eigentime.samplers import Condition, Sampler, Shaping, label, make_sampler
from eigentime.samplers.teacher import nelbo
from eigentime.samplers.way import Followed, Way
from eigentime.schedules import Plan, Schedule

OWN_SAMPLES = 64
"""Samples on which the evaluations of adaptive samplers are counted."""


@dataclass(frozen=True)
class Evaluations:
    """Network evaluations per sequence."""

    mean: float
    most: float
    """Of 95 sequences in 100 no more."""
    seconds: float | None = None
    """Per sequence."""


@dataclass(frozen=True, repr=False)
class DataCost:
    """Nats that data cost under a sampler, per sequence, beside two references on the same sequences."""

    nats: PerSequence
    """-ln q(x), or a bound on it. Its mean less the entropy of the data is KL(data ‖ samples)."""
    exact: bool
    """Whether nats are -ln q itself; else chance chooses places, and their mean is a bound."""
    one_at_a_time: PerSequence
    """The same order, one token at a time: what this sampler would cost with as many evaluations as tokens."""
    nelbo: PerSequence
    """One token at a time in random order."""
    by_step: Float[np.ndarray, " steps"]
    """Nats of the tokens that each evaluation reveals, block after block."""
    evaluations: Evaluations
    """On the sampler's own samples."""
    taught: Evaluations
    """On the data."""
    forbidden: float
    """Share of the tokens of the data that the sampler cannot draw: where there are any, nats are infinite."""
    unshaped: PerSequence | None
    """Nats under the same rule at temperature 1 with nothing cut off; None where nothing is shaped."""
    greedy: float | None
    """At temperature 0: of the tokens of its own samples, the share that one token at a time, in the same order, would
    also choose; None at other temperatures."""
    spent: int
    """Sequence evaluations that measuring all this took."""

    @property
    def excess(self) -> PerSequence:
        """What drawing several tokens at once costs, paired by sequence; infinite where shaping forbids a sequence. It
        refers to this sampler's own order: excesses of samplers with different orders do not compare, nats do."""
        impossible = ~(np.isfinite(self.nats.values) & np.isfinite(self.one_at_a_time.values))
        known = np.where(impossible, 0.0, self.nats.values) - np.where(impossible, 0.0, self.one_at_a_time.values)
        return PerSequence(np.where(impossible, np.inf, known))

    def __repr__(self) -> str:
        return f"DataCost({self})"

    def __str__(self) -> str:
        kind = "" if self.exact else " at most"
        parts = [
            f"{self.nats} nats{kind}, {self.excess} above one token at a time",
            f"NELBO {self.nelbo}",
            f"{self.evaluations.mean:.4g} evaluations",
        ]
        if self.forbidden:
            parts.append(f"{self.forbidden:.2%} of the tokens of the data are forbidden")
        if self.unshaped is not None:
            parts.append(f"{self.unshaped} nats at temperature 1")
        if self.greedy is not None:
            parts.append(f"one token at a time would choose {self.greedy:.1%} of its tokens too")
        return "; ".join(parts)


def _keep(value: Any, name: str) -> Any:
    """A file of its own, or a page of one for all that a longer run finds."""
    return value if isinstance(value, Page) else place(value, name)


PLANNED = optional(kind((Schedule, Plan), "a schedule or a plan, or None for samplers that need none"))
SETTINGS: dict[str, Check] = {
    "model": MODEL,
    "planned": PLANNED,
    "shaping": optional(kind(Shaping, "a Shaping(temperature, …)")),
    "block_length": optional(whole(1)),
    "tolerance": optional(number(above=0)),
    "budget": optional(whole(1)),
    "references": whole(1),
    "seed": SEED,
    "keep": optional(_keep),
    "progress": flag,
}
"""What both verbs ask of their arguments."""


@checked(**SETTINGS, end=optional(whole()), sequences=whole(1))
def nll(
    model: Model,
    data: Any = None,
    sampler: str | Sampler = "ancestral",
    planned: Schedule | Plan | None = None,
    *,
    fixed: Any = None,
    cond: Tensor | None = None,
    shaping: Shaping | None = None,
    block_length: int | None = None,
    end: int | None = None,
    sequences: int = 256,
    tolerance: float | None = None,
    budget: int | None = None,
    references: int = 8,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    keep: str | Path | Page | None = None,
    progress: bool = False,
) -> DataCost:
    """What data cost, in nats per sequence, under a sampler with its very steps, by teacher forcing (masked models).

    data          clean sequences (N, L), or a stream of them as in `measure`; an exact model draws its own, a named
                  one's task knows some
    sampler       any whose choice of places does not look at values just drawn: it says so itself (`likelihood`)
    planned       the schedule or plan that it walks along; None for samplers that need none
    fixed, cond   tokens that are given, and classes, as in `sample`
    shaping       the law that values are drawn from; rules always look at the posteriors as they are. Where it forbids
                  data the cost is infinite: look at `forbidden`, `unshaped` and, at temperature 0, `greedy`
    block_length  generate block by block from left to right, every one along the same schedule; blocks that are given
                  cost nothing, and given tokens may begin with padding, -1
    end           the token that ends a text: what follows it costs nothing (see `Ending`)
    sequences     how many of the data at most
    tolerance     stop earlier when the standard error of the mean is at most so many nats. That is asked after 64, 128,
                  256, … sequences only, so that intervals keep what they promise
    budget        sequence evaluations at most, references and all (the first 16 sequences are always measured)
    references    evaluations per sequence for each of the two references
    keep          a file that finished batches go to at once: the same call goes on from there and finds the same, and
                  one with more sequences, a smaller tolerance or a larger budget goes on too
    """
    if data is None and fixed is None:
        fixed = api.own_prompts(model, 1)[1]
    drawn = api.own_data(model, sequences, seed) if data is None else taken(data, sequences)
    x = clean_data(drawn, model, padded=block_length is not None)[:sequences]
    way = Way(model, sampler, planned, shaping, block_length, references, seed, batch_size, end)
    way.check(cond)
    check_cond(cond, len(x), "sequence")
    fixed = _rows(fixed, 0, len(x))
    free = ~expand_mask(fixed, x.shape)
    if not bool(free.any(1).all()):
        raise EigentimeError("`fixed` marks every token of a sequence as given: there is nothing to measure.")
    if end is not None:
        ended = (x == end) & free
        x = x.masked_fill(free & (ended.long().cumsum(1) - ended.long() > 0), end)

    def measure(first: int, last: int) -> Batch:
        return _taught(way, x[first:last], _rows(fixed, first, last), _classes(cond, first, last), first)

    def made_of(first: int, last: int) -> str:
        return hashed(x[first:last], _rows(fixed, first, last), _classes(cond, first, last))

    limits = Limits(len(x), tolerance, budget)
    store = store_of(keep, lambda: _described(way, "forward"))
    found = gather(measure, made_of, limits, "nats", store, progress)
    return _cost(way, found, _known_evaluations(way, fixed))


@checked(**SETTINGS, samples=whole(1))
def reverse_kl(
    model: Model,
    sampler: str | Sampler = "ancestral",
    planned: Schedule | Plan | None = None,
    *,
    given: Any = None,
    fixed: Any = None,
    cond: Tensor | None = None,
    shaping: Shaping | None = None,
    block_length: int | None = None,
    samples: int = 256,
    tolerance: float | None = None,
    budget: int | None = None,
    references: int = 8,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    keep: str | Path | Page | None = None,
    progress: bool = False,
) -> PerSequence:
    """KL(samples ‖ the same steps one token at a time) in nats, from a sampler's own samples, without data.

    ln q(x) - ln p(x) = Σ_j [ln q(x_j | before j's step) - ln p(x_j | all before j)], from `references` tokens j of
    every sample (of every block of it) drawn uniformly: no bias. It sees contexts that contradict each other, which no
    data show. Where chance chooses places it is an upper bound; it is infinite where the exact law gives a sample no
    chance at all. `tolerance`, `budget` and `keep` are those of `nll`.
    """
    if given is None and fixed is None:
        given, fixed = api.own_prompts(model, samples, seed)
    way = Way(model, sampler, planned, shaping, block_length, references, seed, batch_size)
    way.check(cond)
    check_cond(cond, samples, "sample")

    def condition(first: int, last: int) -> Condition:
        return Condition(_rows(given, first, last), _rows(fixed, first, last), _classes(cond, first, last))

    def measure(first: int, last: int) -> Batch:
        total, spent = np.zeros(last - first), 0
        for part in way.drawn(condition(first, last), last - first, first):
            single, chosen, weights = way.singly(part, first)
            total[part.rows.numpy()] += (weights * (part.walked.logs.gather(1, chosen) - single)).sum(1).numpy()
            spent += int(part.walked.spent.sum()) + single.numel()
        return Batch({"divergence": total.tolist()}, {}, spent)

    def made_of(first: int, last: int) -> str:
        asked = condition(first, last)
        return hashed(asked.given, asked.fixed, asked.cond)

    limits = Limits(samples, tolerance, budget)
    store = store_of(keep, lambda: _described(way, "reverse"))
    return PerSequence(gather(measure, made_of, limits, "divergence", store, progress).values("divergence"))


def taught_cost(
    model: Model,
    x: Int[Tensor, "n length"],
    sampler: str | Sampler,
    planned: Schedule | Plan | None,
    *,
    fixed: Bool[Tensor, "n length"] | None = None,
    block_length: int | None = None,
    seed: int = 0,
    first: int = 0,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Nats and evaluations of every sequence, and nothing else."""
    way = Way(model, sampler, planned, block_length=block_length, seed=seed)
    nats, spent = np.zeros(len(x)), np.zeros(len(x))
    for part in way.followed(x, fixed, None, first):
        nats[part.rows.numpy()] -= part.walked.logs.sum(1).numpy()
        spent[part.rows.numpy()] += part.walked.spent.numpy()
    return nats, spent


def _taught(way: Way, x: Int[Tensor, "n length"], fixed: Any, cond: Tensor | None, first: int) -> Batch:
    """What one batch of data costs, beside its references."""
    plain = None if (way.shaping or Shaping()).neutral else replace(way, shaping=Shaping(normalise=True))
    totals: dict[str, Tensor] = {}
    sums: dict[str, list[float]] = {}
    spent = 0

    for part in way.followed(x, fixed, cond, first):
        walked, stretch, rows = part.walked, part.stretch, part.rows

        def add(name: str, values: Tensor, rows: Tensor = rows) -> None:
            totals.setdefault(name, torch.zeros(len(x), dtype=torch.float64))[rows] += values.double()

        cost, reference, asked = _with_reference(way, part, first)
        options: dict[str, Any] = {"cond": part.condition.cond, "seed": stretch.seed, "batch_size": way.batch_size}
        add("nats", cost)
        add("one at a time", reference)
        add("nelbo", nelbo(stretch.model, walked.tokens, walked.free, way.references, first=first, **options))
        add("taught", walked.spent)
        add("forbidden", torch.isneginf(walked.logs).sum(1))
        add("free", walked.free.sum(1))
        steps = range(int(walked.step.max()) + 1)
        sums[f"step {stretch.number}"] = [-walked.logs[walked.step == step].sum().item() for step in steps]
        spent += int(walked.spent.sum()) + asked + way.references * len(rows)
        if plain is not None:
            again = plain.teach(stretch, walked.tokens, part.condition, first)
            add("unshaped", -again.logs.sum(1))
            spent += int(again.spent.sum())
    values = {name: each.tolist() for name, each in totals.items()}
    own, seconds, more = _own(way, x, fixed, cond, first)
    return Batch(values | own, sums | {"seconds": [seconds]}, spent + more)


def _with_reference(way: Way, part: Followed, first: int) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"], int]:
    """Nats of every sequence, nats one token at a time, and the evaluations that took: they differ by an estimate that
    the same tokens make of both, so that their noise drops out."""
    model, walked = part.stretch.model, part.walked
    cost = -walked.logs.sum(1)
    if isinstance(model, Oracle) and (way.shaping or Shaping()).neutral and bool(walked.free.all()):
        return cost, -model.log_likelihood(walked.tokens), 0  # in any order, so that nothing is estimated
    single, chosen, weights = way.singly(part, first)
    difference = (weights * (single - walked.logs.gather(1, chosen))).sum(1)
    return cost, torch.where(cost.isfinite(), cost - difference, -(weights * single).sum(1)), single.numel()


def _own(
    way: Way, x: Int[Tensor, "n length"], fixed: Any, cond: Tensor | None, first: int
) -> tuple[dict[str, list[float]], float, int]:
    """Evaluations of its own samples, beside the first sequences of the data, the seconds they took, and what was
    spent on them; along a schedule they are known beforehand. At temperature 0 also how many of a few tokens of each
    one token at a time would choose too."""
    greedy = way.shaping is not None and way.shaping.temperature == 0
    count = max(0, min(OWN_SAMPLES, first + len(x)) - first)
    if not count or (_known_evaluations(way, fixed) is not None and not greedy):
        return {}, 0.0, 0
    held = None if fixed is None else expand_mask(fixed, x.shape)[:count]
    condition = Condition(None if held is None else x[:count], held, None if cond is None else cond[:count])
    evaluations, agreed, asked = (torch.zeros(count) for _ in range(3))
    seconds, spent = 0.0, 0
    for part in way.drawn(condition, count, first):
        evaluations[part.rows] += part.walked.spent
        seconds += part.seconds
        spent += int(part.walked.spent.sum())
        if greedy:
            single = way.singly(part, first)[0]
            agreed[part.rows] += (single == 0).sum(1)
            asked[part.rows] += single.shape[1]
            spent += single.numel()
    found = {"own": evaluations.tolist()}
    return found | ({"agreed": agreed.tolist(), "asked": asked.tolist()} if greedy else {}), seconds, spent


def _known_evaluations(way: Way, fixed: Any) -> int | None:
    """Along a schedule, where no text ends early and no block is given."""
    if way.planned is None or not make_sampler(way.sampler).scheduled or way.end is not None:
        return None
    if way.block_length is not None and fixed is not None:
        return None
    return way.planned.evaluations * way.blocks


def _cost(way: Way, found: Gathered, known: int | None) -> DataCost:
    """All batches together; `known` are the evaluations where a schedule says them."""
    nats = found.values("nats")
    own = _evaluations(found.values("own"), float(found.sums("seconds").sum())) if known is None else None
    unshaped, asked = found.values("unshaped"), found.values("asked").sum()
    return DataCost(
        nats=PerSequence(nats),
        exact=way.exact,
        one_at_a_time=PerSequence(found.values("one at a time")),
        nelbo=PerSequence(found.values("nelbo")),
        by_step=np.concatenate([found.sums(f"step {number}") for number in range(way.blocks)]) / len(nats),
        evaluations=own or Evaluations(float(known or 0), float(known or 0)),
        taught=_evaluations(found.values("taught")),
        forbidden=float(found.values("forbidden").sum() / max(1.0, found.values("free").sum())),
        unshaped=PerSequence(unshaped) if len(unshaped) else None,
        greedy=float(found.values("agreed").sum() / asked) if asked else None,
        spent=found.spent,
    )


def _evaluations(spent: Float[np.ndarray, " n"], seconds: float | None = None) -> Evaluations:
    """Of whole sequences: all their blocks together."""
    mean, most = float(spent.mean()), float(np.quantile(spent, 0.95))
    return Evaluations(mean, most, None if seconds is None else seconds / len(spent))


def _rows(part: Any, first: int, last: int) -> Any:
    """Some sequences' tokens or booleans; those that are the same for all stay."""
    return part[first:last] if np.ndim(part) == 2 and len(part) > 1 else part


def _classes(cond: Tensor | None, first: int, last: int) -> Tensor | None:
    return None if cond is None else cond[first:last]


def _described(way: Way, direction: str) -> dict[str, Any]:
    """Everything that numbers depend on but the sequences, as plain values."""
    made, planned = make_sampler(way.sampler), way.planned
    settings = {name: each.spec() if isinstance(each, Order) else each for name, each in vars(made).items()}
    along = None if planned is None else f"{planned.evaluations} steps {hashed(str(planned.to_dict()))}"
    return {
        "direction": direction,
        "model": f"{way.model.name} {way.model.fingerprint}",
        "sampler": f"{label(way.sampler)} {code_fingerprint([made.name, settings])}",
        "schedule": along,
        "shaping": repr(way.shaping or Shaping()),
        "block length": way.block_length,
        "end": way.end,
        "number of references": way.references,
        "seed": way.seed,
    }
