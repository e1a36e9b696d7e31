"""Which sampler, which schedule, which threshold? Certified in nats on data; the answer is something to sample with.

Candidates are compared on the same sequences and the worse ones are dropped early (successive halving); the winner is
then certified on sequences that did not choose it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.intervals import PerSequence
from eigentime.likelihood import DataCost, nll, reverse_kl
from eigentime.measure import Clock
from eigentime.models import Model
from eigentime.process.process import as_tokens, expand_mask
from eigentime.report.progress import progress_bar
from eigentime.samplers import (
    Candidate,
    Condition,
    EntropyBounded,
    Klass,
    OrderBounded,
    Prefix,
    Sampler,
    Samples,
    Threshold,
)
from eigentime.samplers.teacher import Walked, teach
from eigentime.schedules import Plan, Schedule, check_steps, plan

RUNGS = ((6, 1 / 3), (18, 1 / 3), (64, 0.0))
"""Sequences that candidates have seen after each round, and the share of them that goes on."""
SLACK = 1.02
"""Adaptive rules may take so much more than the evaluations asked for, on the average of a few sequences."""
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


@dataclass
class Seen:
    """What is known of a candidate so far: nats and evaluations of each sequence that it was taught."""

    candidate: Candidate
    nats: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Nats per sequence."""
        return float(np.mean(self.nats))

    @property
    def evaluations(self) -> float:
        """Network evaluations per sequence."""
        return float(np.mean(self.spent))


@dataclass(frozen=True)
class Recommendation:
    """The best way to sample that was found, certified on sequences that did not choose it."""

    candidate: Candidate
    forward: DataCost
    """What held-out data cost."""
    reverse: PerSequence
    """Its samples against the same steps one token at a time."""
    frontier: list[Seen]
    """All that were tried and how far each got, the best first."""
    runner_up: PerSequence | None
    """How much the next best costs above it on the same sequences, where another got as far."""
    evaluations: int
    """Sequence evaluations that choosing took, measuring included."""

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
        if self.planned is not None and self.candidate == Candidate("ancestral", self.planned):
            self.planned.save(path)
        else:
            self.candidate.save(path)

    def sample(self, model: Model, num_samples: int, **options: Any) -> Samples:
        """Draw with it."""
        return api.sample(model, self.planned, num_samples, sampler=self.sampler, **options)

    def __str__(self) -> str:
        low, high = self.forward.excess.interval()
        lead = ""
        if self.runner_up is not None:
            sure = self.runner_up.interval()[0] > 0
            lead = f" The next best costs {self.runner_up} nats more{'' if sure else ', which may be chance'}."
        return (
            f"Use {self.candidate}: {self.forward.evaluations.mean:.3g} evaluations, {self.forward.excess.mean:.3g} "
            f"nats ({low:.3g} to {high:.3g}) above one token at a time, reverse {self.reverse}.{lead}"
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
    seed: int = 0,
    progress: bool = False,
) -> Recommendation:
    """The best way to sample a masked model with `nfe` evaluations per sequence, or with as few as an `error` allows.

    data        clean sequences (N, L): half of them choose, half certify; an exact model draws its own
    nfe         bounds the mean number of evaluations
    error       in nats above one token at a time; the number of evaluations is doubled until it is met
    fixed       (L,) or (N, L) booleans: tokens of the data that are given, such as a prompt
    candidates  ways of your own in place of schedules, plans and adaptive rules over a range of settings
    clock       measured before, with orders for plans; else it is measured here with `budget`
    sequences   of the data at most
    """
    if (nfe is None) == (error is None):
        raise EigentimeError("Say how many evaluations you can spend (nfe=8), or which error you allow (error=0.5).")
    if not model.process.absorbing:
        raise EigentimeError("Recommendations rest on teacher forcing, which needs masked tokens.")
    if candidates is not None and not candidates:
        raise EigentimeError("There are no candidates to choose from; leave `candidates` out for the usual ones.")
    if error is not None and not error > 0:
        raise EigentimeError(f"error must be a positive number of nats, not {error}.")
    x = as_tokens(api.own_data(model, sequences, seed) if data is None else data, "The data")[:sequences]
    if len(x) < 16:
        raise EigentimeError(f"Half of the data choose and half certify: {len(x)} sequences are too few, take 16.")
    fixed = api.own_prompts(model, 1)[1] if fixed is None else fixed
    given = None if fixed is None else expand_mask(fixed, torch.Size((len(x), x.shape[1])))
    choosing, held_out = (_Taught(x[part], given if given is None else given[part]) for part in _halves(len(x)))
    if nfe is not None:
        found = _chosen(model, choosing, check_steps(nfe), candidates, clock, budget, seed, progress)
        return _certified(model, held_out, found, seed)
    assert error is not None
    spent, steps = 0, 1
    while True:
        try:
            found = _chosen(model, choosing, min(steps, model.length), candidates, clock, budget, seed, progress)
        except Unaffordable:
            if steps >= model.length:
                raise
        else:
            spent += found.spent
            cost = choosing.cost(model, found.best, seed)
            if cost.excess.mean <= error or steps >= model.length:
                return _certified(model, held_out, replace(found, spent=spent), seed)
        steps *= 2


@dataclass(frozen=True)
class _Taught:
    """Sequences, and which of their tokens are given."""

    x: Tensor
    given: Tensor | None

    def part(self, first: int, last: int) -> "_Taught":
        """Some of them."""
        return _Taught(self.x[first:last], None if self.given is None else self.given[first:last])

    def walk(self, model: Model, way: Candidate, seed: int) -> Walked:
        """What each costs."""
        return teach(model, self.x, way.planned, way.sampler, condition=Condition(fixed=self.given), seed=seed)

    def cost(self, model: Model, way: Candidate, seed: int) -> DataCost:
        """The same, beside its references."""
        return nll(model, self.x, way.sampler, way.planned, fixed=self.given, sequences=len(self.x), seed=seed)


def _halves(count: int) -> tuple[slice, slice]:
    return slice(count // 2), slice(count // 2, count)


class Unaffordable(EigentimeError):
    """No candidate makes do with so few evaluations."""


@dataclass(frozen=True)
class Chosen:
    """What came out of comparing on the sequences that choose."""

    alive: list[Seen]
    tried: list[Seen]
    spent: int

    @property
    def best(self) -> Candidate:
        """The winner."""
        return self.alive[0].candidate


def _chosen(
    model: Model,
    data: _Taught,
    nfe: int,
    candidates: Sequence[Candidate] | None,
    clock: Clock | None,
    budget: int,
    seed: int,
    progress: bool,
) -> Chosen:
    """The best candidates on these sequences."""
    spent = 0
    if candidates is None:
        if clock is None:
            orders = [*ORDERS, f"lattice-{nfe}"]
            options: dict[str, Any] = {"budget": budget, "orders": orders, "seed": seed, "progress": progress}
            clock = api.measure(model, data.x, fixed=data.given, **options)
            spent = clock.evaluations
        tried = [Seen(each) for each in usual_candidates(clock, nfe)]
    else:
        tried = [Seen(each) for each in candidates]
    alive, evaluations = _halved(model, data, tried, nfe, seed, progress, bold_first=candidates is None)
    return Chosen(alive, tried, spent + evaluations)


def _halved(
    model: Model, data: _Taught, tried: list[Seen], nfe: int, seed: int, progress: bool, bold_first: bool
) -> tuple[list[Seen], int]:
    """Those that came through all rounds, the best first, and the evaluations spent.

    Where adaptive rules stand `bold_first`, the first round leaves out those more careful than one that takes too many
    evaluations.
    """
    alive, seen, spent = tried, 0, 0
    for rung, share in RUNGS:
        last, too_careful = min(rung, len(data.x)), set()
        with progress_bar(f"Comparing on {last} sequences", progress) as advance:
            for done, each in enumerate(alive):
                advance(done, len(alive), str(each.candidate))
                kind, planned = type(each.candidate.sampler), each.candidate.planned
                if planned is None and kind in too_careful:
                    continue
                walked = data.part(seen, last).walk(model, each.candidate, seed + seen)
                each.nats += (-walked.logs.sum(1)).tolist()
                each.spent += walked.spent.tolist()
                spent += int(walked.spent.sum())
                if bold_first and not seen and planned is None and each.evaluations > SLACK * nfe:
                    too_careful.add(kind)
        affordable = [each for each in alive if len(each.nats) == last and each.evaluations <= SLACK * nfe]
        if not affordable:  # what looked affordable on fewer sequences is not: the best of those that were dropped
            dropped = [each for each in tried if each.nats and each.evaluations <= SLACK * nfe]
            if not dropped:
                raise Unaffordable(f"No candidate makes do with {nfe} evaluations; allow more, or take bolder ones.")
            return [min(dropped, key=lambda each: each.mean)], spent
        affordable.sort(key=lambda each: each.mean)
        alive = affordable[: max(1, round(share * len(affordable)))] if share else affordable
        seen = last
        if seen == len(data.x):
            break
    return alive, spent


def _certified(model: Model, held_out: _Taught, found: Chosen, seed: int) -> Recommendation:
    """The winner on sequences that did not choose it."""
    winner, second = found.alive[0], None
    way, prompts = winner.candidate, None if held_out.given is None else held_out.x
    forward = held_out.cost(model, way, seed + 1)
    reverse = reverse_kl(
        model, way.sampler, way.planned, given=prompts, fixed=held_out.given, samples=len(held_out.x), seed=seed + 1
    )
    if len(found.alive) > 1:
        second = PerSequence(np.array(found.alive[1].nats) - np.array(winner.nats))
    ranked = sorted((each for each in found.tried if each.nats), key=lambda each: (-len(each.nats), each.mean))
    return Recommendation(winner.candidate, forward, reverse, ranked, second, found.spent)


def usual_candidates(clock: Clock, nfe: int) -> list[Candidate]:
    """Schedules, plans and samplers that look, with this many steps, and adaptive rules from careful to bold."""
    grids = [api.schedule(clock, name, steps=nfe) for name in ("uniform", "cosine", "ods")]
    counted = api.schedule(clock, "ods", steps=nfe, sampler="counted")
    found = [Candidate("ancestral", grid) for grid in grids]
    found += [Candidate("counted", grid) for grid in (*grids, counted)]
    found += [Candidate(name, grid) for name in LOOKING for grid in (grids[0], grids[-1])]
    if clock.orders and nfe <= clock.ordered.free:
        found += [Candidate("ancestral", plan(clock, nfe, order=name)) for name in clock.orders]
    return found + [Candidate(make(share)) for make in ADAPTIVE for share in SHARES]
