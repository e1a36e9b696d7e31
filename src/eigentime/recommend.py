"""Which sampler, which schedule, which threshold? Certified in nats on data; the answer is something to sample with.

Candidates are compared by what the same sequences cost under them, and the worse ones are dropped early (successive
halving); the winner is then certified on sequences that did not choose it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eigentime import api
from eigentime.arguments import SEED, checked, flag, kind, listed, number, optional, place, whole
from eigentime.code import package_version
from eigentime.data.streams import taken
from eigentime.errors import EigentimeError
from eigentime.gathering import Page
from eigentime.intervals import PerSequence
from eigentime.ledger import Ledger, Rows, hashed
from eigentime.likelihood import DataCost, nll, reverse_kl, taught_cost
from eigentime.measure import Clock
from eigentime.measure.clock import CLOCK
from eigentime.models import Model
from eigentime.models.base import MODEL
from eigentime.models.clean import clean_data
from eigentime.process.process import expand_mask
from eigentime.report.progress import progress_bar
from eigentime.samplers import (
    Apart,
    Candidate,
    EntropyBounded,
    Klass,
    OrderBounded,
    Prefix,
    Sampler,
    Samples,
    Threshold,
)
from eigentime.samplers.blockwise import sample_blocks
from eigentime.samplers.portions import Portions
from eigentime.schedules import Plan, Schedule, check_steps, plan

RUNGS = ((4, 1 / 4), (16, 1 / 4), (64, 0.0))
"""Sequences that candidates have seen after each round, and the share of them that goes on."""
SLACK = 1.02
"""Adaptive rules may take so much more than the evaluations asked for, on the average of a few sequences."""
FEW, MOST_REVERSED = 32, 5
"""Samples of their own that the best of the others draw for the reverse direction, and how many of the best do."""
FAR = 2.0
"""An adaptive rule that takes so many times too many evaluations on the first sequence is not shown others."""
ORDERS = ("low-discrepancy", "farthest")
LOOKING = ("confidence", "margin", "entropy")
ADAPTIVE: tuple[Callable[[float], Sampler], ...] = (
    lambda share: EntropyBounded(30.0 * share**2),
    lambda share: Threshold(1 - share),
    lambda share: Prefix(10.0 * share),
    lambda share: Klass(1 - share, 0.05, 1),
    lambda share: OrderBounded("low-discrepancy", 100.0 * share**2),
)
SHARES = (0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05)
"""How bold adaptive rules are tried to be: once one takes too many evaluations, more careful ones are left out."""
BLOCKS, BLOCK_SHARES, LEAST_BLOCK = (2, 4), (0.8, 0.4, 0.1), 4
"""Numbers of blocks that are tried where the length splits so, how bold rules are there, and the fewest tokens."""


@dataclass
class Contender:
    """What is known of a candidate so far: nats and evaluations of each sequence that it was taught."""

    candidate: Candidate
    nats: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    reverse: PerSequence | None = None
    """Its samples against the same steps one token at a time, for those that came through all rounds."""

    @property
    def cost(self) -> PerSequence:
        """Nats per sequence, with an interval."""
        return PerSequence(np.array(self.nats))

    @property
    def mean(self) -> float:
        """Nats per sequence."""
        return float(np.mean(self.nats))

    @property
    def evaluations(self) -> float:
        """Network evaluations per sequence, those that fill a cache included."""
        return float(np.mean(self.spent))

    def above(self, other: "Contender") -> PerSequence:
        """How much more it costs than another, paired by the sequences that both have seen."""
        shared = min(len(self.nats), len(other.nats))
        return PerSequence(np.array(self.nats[:shared]) - np.array(other.nats[:shared]))


@dataclass(frozen=True, repr=False)
class Recommendation:
    """The best way to sample that was found, certified on sequences that did not choose it."""

    candidate: Candidate
    forward: DataCost
    """What held-out data cost."""
    reverse: PerSequence
    """Its samples against the same steps one token at a time."""
    frontier: list[Contender]
    """All that were tried and how far each got, the best first."""
    runner_up: PerSequence | None
    """How much the next best costs above it on the same sequences, where another got as far."""
    evaluations: int
    """Sequence evaluations that choosing took, measuring included."""
    asked: str
    """What was asked for and what that means, in a sentence."""
    cache_passes: int = 0
    """Evaluations per sequence that only fill an engine's cache."""

    @property
    def sampler(self) -> str | Sampler:
        """For `sample`."""
        return self.candidate.sampler

    @property
    def planned(self) -> Schedule | Plan | None:
        """For `sample`: the schedule or plan, None for an adaptive sampler."""
        return self.candidate.planned

    def save(self, path: str | Path) -> None:
        """Write the way of sampling: a schedule or plan as itself where that is all, else with its sampler."""
        if self.planned is not None and self.sampler == "ancestral" and self.candidate.block_length is None:
            self.planned.save(path)
        else:
            self.candidate.save(path)

    def sample(self, model: Model, num_samples: int, **options: Any) -> Samples:
        """Draw with it."""
        if self.candidate.block_length is not None:
            length = self.candidate.block_length
            return sample_blocks(model, self.planned, num_samples, length, sampler=self.sampler, **options)
        return api.sample(model, self.planned, num_samples, sampler=self.sampler, **options)

    def __repr__(self) -> str:
        return f"Recommendation({self.candidate}; {self.forward}; {len(self.frontier)} ways tried)"

    def __str__(self) -> str:
        low, high = self.forward.excess.interval()
        lead = ""
        if self.runner_up is not None:
            sure = self.runner_up.interval()[0] > 0
            lead = f" The next best costs {self.runner_up} nats more{'' if sure else ', which may be chance'}."
        cache = f" and {self.cache_passes} to fill the cache" if self.cache_passes else ""
        return (
            f"Use {self.candidate}: {self.forward.evaluations.mean:.3g} evaluations{cache}, {self.forward.nats} nats "
            f"per sequence, {self.forward.excess.mean:.3g} ({low:.3g} to {high:.3g}) of them above one token at a "
            f"time, reverse {self.reverse}.{lead} {self.asked} Candidates are ranked by all their nats; nats above one "
            "token at a time refer to each one's own order and do not compare."
        )


@checked(
    model=MODEL,
    nfe=optional(whole(1)),
    error=optional(number(above=0)),
    candidates=optional(listed(kind(Candidate, "an et.Candidate(sampler, planned)"))),
    clock=optional(CLOCK),
    budget=whole(16),
    sequences=whole(1),
    cache_pass=flag,
    seed=SEED,
    keep=optional(place),
    progress=flag,
)
def recommend(
    model: Model,
    data: Any = None,
    *,
    nfe: int | None = None,
    error: float | None = None,
    fixed: Any = None,
    candidates: Sequence[Candidate] | None = None,
    clock: Clock | None = None,
    budget: int = 512,
    sequences: int = 128,
    cache_pass: bool = False,
    seed: int = 0,
    keep: str | Path | None = None,
    progress: bool = False,
) -> Recommendation:
    """The best way to sample a masked model with `nfe` evaluations per sequence, or with as few as an `error` allows.

    Candidates are ranked by the nats that data cost under them. What a candidate costs above one token at a time refers
    to its own order, so that it says how much more evaluations could win, but not which candidate is better.

    data        clean sequences (N, L) or a stream of them, at least 16: half of them choose, half certify; an exact
                model draws its own
    nfe         bounds the mean number of evaluations on the sequences that choose, with 2 % slack for adaptive rules.
                The number that is printed is counted while sampling and may be larger
    error       in nats above one token at a time; the number of evaluations is doubled until the winner meets it on the
                sequences that choose. It is a target there, and no guarantee elsewhere
    fixed       (L,) or (N, L) booleans: tokens of the data that are given, such as a prompt
    candidates  ways of your own in place of schedules, plans and adaptive rules over a range of settings, whole and, if
                nothing is given, in blocks
    clock       measured before, with orders for plans; else it is measured here with `budget`
    sequences   of the data at most
    cache_pass  for engines that keep a cache and spend one more evaluation per block to fill it: K + 1 are counted
    keep        a file that finished work goes to at once, with one for the clock beside it: the same call goes on there
    """
    if (nfe is None) == (error is None):
        raise EigentimeError("Say how many evaluations you can spend (nfe=8), or which error you allow (error=0.5).")
    if not model.process.absorbing:
        raise EigentimeError("Recommendations rest on teacher forcing, which needs masked tokens.")
    if candidates is not None and not candidates:
        raise EigentimeError("There are no candidates to choose from; leave `candidates` out for the usual ones.")
    x = clean_data(api.own_data(model, sequences, seed) if data is None else taken(data, sequences), model)[:sequences]
    if len(x) < 16:
        raise EigentimeError(f"Half of the data choose and half certify: {len(x)} sequences are too few, take 16.")
    fixed = api.own_prompts(model, 1)[1] if fixed is None else fixed
    given = None if fixed is None else expand_mask(fixed, torch.Size((len(x), x.shape[1])))
    choosing, held_out = (
        Part(x[half], None if given is None else given[half]) for half in (slice(len(x) // 2), slice(len(x) // 2, None))
    )
    shown = hashed(x, given)
    made_with = {} if keep is None else _made_with(model, shown, cache_pass, seed)
    with Ledger(keep, made_with, shown) as ledger:
        kept = None if keep is None else Path(keep)
        search = Search(model, choosing, candidates, clock, budget, cache_pass, seed, progress, ledger, kept)
        return _found(search, held_out, nfe, error)


def _made_with(model: Model, shown: str, cache_pass: bool, seed: int) -> dict[str, Any]:
    """All that the numbers of a sequence depend on, but the way of sampling."""
    process = model.process
    return {
        "model": f"{model.name} {model.fingerprint}",
        "process": hashed(json.dumps(process.spec()), *process.kernel.arrays().values()),
        "data": shown,
        "cache_pass": cache_pass,
        "seed": seed,
        "version": package_version(),
    }


def _found(search: "Search", held_out: "Part", nfe: int | None, error: float | None) -> Recommendation:
    """The answer to what was asked."""
    if nfe is not None:
        asked = (
            f"nfe={nfe} bounds the mean number of evaluations on the sequences that chose (2 % slack); the number "
            "above was counted while sampling along adaptive rules and may be larger."
        )
        return search.certified(held_out, search.chosen(check_steps(nfe)), asked)
    assert error is not None
    found, excess = search.within(error)
    asked = f"error={error:g} was a target on the sequences that chose, which it meets with {excess:.3g}: no guarantee."
    if not excess <= error:
        asked = (
            f"Nothing meets error={error:g} on the sequences that chose, not even with as many evaluations as tokens: "
            f"this comes with {excess:.3g} nats above one token at a time."
        )
    return search.certified(held_out, found, asked)


class Unaffordable(EigentimeError):
    """No candidate makes do with so few evaluations."""


@dataclass(frozen=True)
class Chosen:
    """What came out of comparing on the sequences that choose."""

    alive: list[Contender]
    tried: list[Contender]
    spent: int

    @property
    def best(self) -> Candidate:
        """The winner."""
        return self.alive[0].candidate


@dataclass(frozen=True)
class Part:
    """Sequences, and which of their tokens are given."""

    x: Tensor
    given: Tensor | None

    def cost(self, model: Model, way: Candidate, seed: int, page: Page) -> DataCost:
        """What they cost under a candidate, beside its references."""
        options: dict[str, Any] = {"fixed": self.given, "block_length": way.block_length, "sequences": len(self.x)}
        return nll(model, self.x, way.sampler, way.planned, seed=seed, keep=page, **options)

    def reverse(self, model: Model, way: Candidate, seed: int, page: Page, references: int = 8) -> PerSequence:
        """As many samples of its own, given the same tokens, against the same steps one token at a time."""
        options: dict[str, Any] = {"given": None if self.given is None else self.x, "fixed": self.given}
        options |= {"block_length": way.block_length, "samples": len(self.x), "references": references}
        return reverse_kl(model, way.sampler, way.planned, seed=seed, keep=page, **options)

    def first(self, count: int) -> "Part":
        """The first of them."""
        return Part(self.x[:count], None if self.given is None else self.given[:count])


@dataclass(frozen=True)
class Search:
    """A model, the sequences that choose, and what they choose from."""

    model: Model
    data: Part
    candidates: Sequence[Candidate] | None
    clock: Clock | None
    budget: int
    cache_pass: bool
    seed: int
    progress: bool
    ledger: Ledger
    """Where everything that is found of sequences is written down."""
    keep: Path | None
    """The file that it is in, beside which the clock is kept."""

    def chosen(self, nfe: int) -> Chosen:
        """The best candidates with so many evaluations."""
        spent, clock = 0, self.clock
        if self.candidates is None:
            if clock is None:
                orders = [*ORDERS, f"lattice-{nfe}"]
                kept = None if self.keep is None else self.keep.with_name(f"{self.keep.name}.clock")
                options: dict[str, Any] = {"orders": orders, "seed": self.seed, "keep": kept, "progress": self.progress}
                clock = api.measure(self.model, self.data.x, fixed=self.data.given, budget=self.budget, **options)
                spent = clock.evaluations
            usual = usual_candidates(clock, nfe, self.cache_pass)
            tried = [Contender(each) for each in usual if self.data.given is None or each.block_length is None]
        else:
            tried = [Contender(each) for each in self.candidates]
        alive, evaluations = self._halved(tried, nfe)
        return Chosen(alive, tried, spent + evaluations)

    def within(self, error: float) -> tuple[Chosen, float]:
        """The winner with the fewest evaluations, a power of two, that meets an error on these sequences, and what it
        costs above one token at a time; if none does, the best with one token per evaluation."""
        steps, spent, length = 1, 0, self.model.length
        while True:
            try:
                found = self.chosen(min(steps, length) + self.cache_pass)
            except Unaffordable:
                if steps >= length:
                    raise
            else:
                spent += found.spent
                excess = self._excess(found.best)
                if excess > error and steps >= length:
                    found = _one_token_each(found, length)
                    excess = self._excess(found.best)
                if excess <= error or steps >= length:
                    return replace(found, spent=spent), excess
            steps *= 2

    def certified(self, held_out: Part, found: Chosen, asked: str) -> Recommendation:
        """The winner on sequences that did not choose it."""
        winner, second = found.alive[0], None
        way, seed = winner.candidate, self.seed + 1
        forward = held_out.cost(self.model, way, seed, self._page("held out", way))
        own = self._page("own samples", way)
        winner.reverse = reverse = held_out.reverse(self.model, way, seed, own)
        few = held_out.first(FEW)
        for each in found.alive[1:MOST_REVERSED]:
            own = self._page("own samples", each.candidate)
            each.reverse = few.reverse(self.model, each.candidate, seed, own, references=2)
        if len(found.alive) > 1:
            second = found.alive[1].above(winner)
        ranked = sorted((each for each in found.tried if each.nats), key=lambda each: (-len(each.nats), each.mean))
        return Recommendation(way, forward, reverse, ranked, second, found.spent, asked, self._passes(way))

    def _excess(self, way: Candidate) -> float:
        """Nats above one token at a time on these sequences."""
        return self.data.cost(self.model, way, self.seed, self._page("choosing", way)).excess.mean

    def _page(self, what: str, way: Candidate) -> Page:
        """Where batches of a candidate are written."""
        return Page(self.ledger, f"{what} {way.fingerprint}")

    def _passes(self, way: Candidate) -> int:
        """Evaluations that only fill a cache."""
        return way.blocks(self.model.length) if self.cache_pass else 0

    def _halved(self, tried: list[Contender], nfe: int) -> tuple[list[Contender], int]:
        """Those that came through all rounds, the best first, and the evaluations spent.

        The usual adaptive rules stand from bold to careful: the first round leaves out those more careful than one that
        takes too many evaluations.
        """
        alive, seen, spent = tried, 0, 0
        for rung, share in RUNGS:
            last = min(rung, len(self.data.x))
            too_careful: set[tuple[type, int | None]] = set()
            with progress_bar(f"Comparing on {last} sequences", self.progress) as advance:
                for done, each in enumerate(alive):
                    advance(done, len(alive), str(each.candidate))
                    way = each.candidate
                    kind = (type(way.sampler), way.block_length)
                    if way.planned is None and kind in too_careful:
                        continue
                    adaptive = self.candidates is None and not seen and way.planned is None
                    if adaptive:
                        spent += self._look(each, 0, 1)
                    if not adaptive or each.evaluations <= FAR * nfe:
                        spent += self._look(each, len(each.nats), last)
                    if adaptive and each.evaluations > SLACK * nfe:
                        too_careful.add(kind)
            affordable = [each for each in alive if len(each.nats) == last and each.evaluations <= SLACK * nfe]
            if not affordable:  # what looked affordable on fewer sequences is not: the best of those that were dropped
                dropped = [each for each in tried if each.nats and each.evaluations <= SLACK * nfe]
                if not dropped:
                    raise Unaffordable(
                        f"No candidate makes do with {nfe} evaluations; allow more, or take bolder ones."
                    )
                return [min(dropped, key=lambda each: each.mean)], spent
            affordable.sort(key=lambda each: each.mean)
            alive = affordable[: max(1, round(share * len(affordable)))] if share else affordable
            seen = last
            if seen == len(self.data.x):
                break
        return alive, spent

    def _look(self, each: Contender, first: int, last: int) -> int:
        """Teach a candidate some more sequences; returns the evaluations that took."""
        way, given = each.candidate, self.data.given

        def taught(start: int, number: int) -> Rows:
            part = slice(start, start + number)
            nats, spent = taught_cost(
                self.model,
                self.data.x[part],
                way.sampler,
                way.planned,
                fixed=None if given is None else given[part],
                block_length=way.block_length,
                seed=self.seed,
                first=start,
            )
            return {"nats": nats, "spent": spent}

        count = last - first
        found = self.ledger.rows(f"taught {way.fingerprint}", first, count, Portions(count), taught)
        each.nats += found["nats"].tolist()
        each.spent += (found["spent"] + self._passes(way)).tolist()
        return int(found["spent"].sum())


def _one_token_each(found: Chosen, length: int) -> Chosen:
    """The best of the plans that reveal one token per evaluation, which cost nothing above one token at a time by what
    that means; where none was tried, what was found."""
    plans = [(each, each.candidate.planned) for each in found.tried if each.nats]
    single = [each for each, planned in plans if isinstance(planned, Plan) and planned.steps >= length]
    return replace(found, alive=[min(single, key=lambda each: each.mean)]) if single else found


def usual_candidates(clock: Clock, nfe: int, cache_pass: bool = False) -> list[Candidate]:
    """Schedules, plans and samplers that look, with this many steps, and adaptive rules from bold to careful; sets that
    are apart where the clock measured pairs of places; the same block by block. Where a cache takes an evaluation per
    block, schedules have one step less."""
    steps = nfe - cache_pass
    if steps < 1:
        raise Unaffordable("An evaluation that fills the cache leaves none to sample with; allow more.")
    grids = [api.schedule(clock, name, steps=steps) for name in ("uniform", "cosine", "ods")]
    counted = api.schedule(clock, "ods", steps=steps, sampler="counted")
    found = [Candidate("ancestral", grid) for grid in grids]
    found += [Candidate("counted", grid) for grid in (*grids, counted)]
    found += [Candidate(name, grid) for name in LOOKING for grid in (grids[0], grids[-1])]
    if clock.orders and steps <= clock.ordered.free:
        found += [Candidate("ancestral", plan(clock, steps, order=name)) for name in clock.orders]
    if clock.pairs is not None:
        found += [Candidate(Apart(clock.pairs, 10.0 * share**2)) for share in SHARES]
    found += [Candidate(make(share)) for make in ADAPTIVE for share in SHARES]
    for blocks in BLOCKS:
        length, each = clock.length // blocks, nfe // blocks - cache_pass
        if clock.length % blocks == 0 and length >= LEAST_BLOCK and each >= 1:
            grid = api.schedule(clock, "uniform", steps=each)
            found += [Candidate(name, grid, length) for name in ("counted", *LOOKING)]
            found += [Candidate(make(share), None, length) for make in ADAPTIVE for share in BLOCK_SHARES]
    return found
