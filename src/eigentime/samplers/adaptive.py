"""Samplers for masked models that need no schedule: posteriors say which tokens come next and how many.

They spend what they need and report it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eigentime.arguments import flag, number, settle, whole
from eigentime.errors import EigentimeError
from eigentime.process.kernel import Rows
from eigentime.samplers.base import Likelihood, Moment, Sampler, needs_masks
from eigentime.samplers.chosen import Look, Rule, best, certainty, drawn, largest, look, ranked, revealed
from eigentime.samplers.run import Answer, HiddenRows, Run
from eigentime.samplers.state import Mask, State
from eigentime.schedules import Plan, Schedule


class Adaptive(Sampler, ABC):
    """Reveals as many tokens at each evaluation as a rule allows, at least one: if it allows none, the surest."""

    scheduled = False
    likelihood: Likelihood | None = "exact"

    def rule(self) -> Rule:
        """What tokens are scored by."""
        return largest

    def walk(self, run: Run, state: State, schedule: Schedule | Plan | None) -> Iterator[Moment]:
        """Steps until nothing is masked; the NFE is what a sequence took on average."""
        needs_masks(state)
        if schedule is not None:
            raise EigentimeError(f"The {self.name} sampler chooses its own steps; pass None as schedule.")
        most, spent = int(state.free.sum(1).max()), 0
        for index in range(most):
            if not state.active.any():
                return
            time, spent = (state.active.sum() / state.free.sum()).item(), spent + int(state.active.any(1).sum())
            state = self.step(run, state, index)
            yield Moment(index + 1, most, time, state, spent / len(state.tokens))

    def step(self, run: Run, state: State, index: int) -> State:
        """One evaluation of every sequence that still has masks."""
        share = 1 - state.active.sum(1) / state.free.sum(1).clamp(min=1)
        found = self.looked(run, state, run.model.process.noise.time_of_alpha(share), index)
        hidden = torch.isfinite(found.scores)
        chosen = self.choose(run, found, hidden) & hidden
        chosen = chosen | best(found.scores, (~chosen.any(1)).long())
        return revealed(state, chosen & hidden, found.values)

    def looked(self, run: Run, state: State, times: Float[Tensor, " n"], index: int) -> Look:
        """The evaluation that the rule sees."""
        return look(run, state, times, state.active, index, self.rule())

    @abstractmethod
    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        """The tokens that the rule allows."""


@dataclass(frozen=True)
class EntropyBounded(Adaptive):
    """EB-sampler: in order of entropy, the most tokens with Σ H - max H ≤ `bound` nats, a bound on the dependence that
    drawing them at once ignores. A bound of 0 is one token at a time, but for those that are certain."""

    bound: float = 0.1
    name = "entropy-bounded"

    def __post_init__(self) -> None:
        settle(self, bound=number(0))

    def rule(self) -> Rule:
        return certainty

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        scores, places = ranked(torch.where(masked, found.scores, -torch.inf))
        entropies = torch.where(torch.isfinite(scores), -scores, 0.0).clamp(min=0.0)
        allowed = (entropies.cumsum(1) - entropies <= self.bound) & torch.isfinite(scores)  # the last is the largest
        return torch.zeros_like(masked).scatter(1, places, allowed.cumprod(1).bool())


@dataclass(frozen=True)
class Sure(Adaptive):
    """Scored by probability: the likeliest value's, or with `drawn` that of the value drawn, which no certificate
    covers."""

    confidence: float = 0.9
    drawn: bool = field(default=False, kw_only=True)

    @property
    def likelihood(self) -> Likelihood | None:  # type: ignore[override]
        return None if self.drawn else "exact"

    def rule(self) -> Rule:
        return drawn if self.drawn else largest


@dataclass(frozen=True)
class Threshold(Sure):
    """Fast-dLLM: every token whose likeliest value has at least this probability."""

    name = "threshold"

    def __post_init__(self) -> None:
        settle(self, confidence=number(above=0), drawn=flag)

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        return found.scores >= self.confidence


@dataclass(frozen=True)
class Prefix(Adaptive):
    """Fast-dLLM's factor: in order of the largest probability p_1 ≥ p_2 ≥ …, the longest prefix with
    (n + 1)·(1 - p_n) < `factor`: the more tokens at once, the surer each must be."""

    factor: float = 1.0
    name = "prefix"

    def __post_init__(self) -> None:
        settle(self, factor=number(above=0))

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        ordered, places = ranked(found.scores)
        number = torch.arange(2, ordered.shape[1] + 2, device=ordered.device)
        allowed = (number * (1 - ordered) < self.factor) & torch.isfinite(ordered)
        return torch.zeros_like(masked).scatter(1, places, allowed.cumprod(1).bool())


@dataclass(frozen=True)
class Klass(Sure):
    """KLASS: every token whose likeliest value has at least this probability, and whose posterior p has stopped moving:
    KL(p ‖ p before) below `divergence` nats at each of the last `history` evaluations.

    Of the evaluation before it keeps the network's hidden rows, and runs the head on them again.
    """

    divergence: float = 0.01
    history: int = 2
    name = "klass"

    def __post_init__(self) -> None:
        settle(self, confidence=number(above=0), divergence=number(above=0), history=whole(1), drawn=flag)

    def looked(self, run: Run, state: State, times: Float[Tensor, " n"], index: int) -> Look:
        """Also counts at how many evaluations in a row each token was calm."""
        before, kept = run.memory.get("kept"), HiddenRows(run, state, times)
        calm = run.memory.setdefault("calm", torch.zeros_like(state.tokens))

        def observe(answer: Answer, rows: Rows) -> None:
            kept.add(answer)
            if before is None:
                return
            earlier = run.normalised(before.law(answer, answer.tokens))
            moved = (torch.xlogy(rows, rows) - torch.xlogy(rows, earlier)).sum(-1).to(state.device)
            places = state.places(answer.sequence, answer.position)
            calm.view(-1)[places] = torch.where(moved < self.divergence, calm.view(-1)[places] + 1, 0)

        found = look(run, state, times, state.active, index, self.rule(), observe)
        run.memory["kept"] = kept
        return found

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        ready: Tensor = (found.scores >= self.confidence) & (run.memory["calm"] >= self.history)
        return ready
