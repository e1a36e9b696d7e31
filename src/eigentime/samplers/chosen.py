"""Samplers for masked models that look before they reveal: the network's own posteriors say which tokens come next.

With a schedule (`ByPosterior`) the number of tokens at each step is the schedule's, and only *which* is chosen here, as
MaskGIT, LLaDA and Dream do. Without one (`EntropyBounded`, `Threshold`, `Klass`) the number is chosen as well: such
samplers spend what they need and report it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Moment, Sampler, Step, needs_masks
from eigentime.samplers.run import Answer, Kept, Run
from eigentime.samplers.state import Draws, Mask, State
from eigentime.schedules import Plan, Schedule

Rule = Literal["confidence", "margin", "entropy"]
RULES: tuple[Rule, ...] = ("confidence", "margin", "entropy")
Scores = Float[Tensor, "n length"]
ROUNDING = 1e-6
"""Scores are rounded to this, and of equal ones the earlier position comes first, so that devices and batch sizes
choose the same, but where a score lies at the edge between two rounded values."""


@dataclass
class Look:
    """What one evaluation says of every masked token, where the network is; nothing (-inf) of the others."""

    values: Int[Tensor, "n length"]
    """A value drawn from each posterior."""
    scores: Scores
    """How sure the network is of it, by a rule; the larger the surer."""


def score(rule: Rule, rows: Rows, value: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """How sure posteriors are.

    confidence  the drawn value's probability (MaskGIT, LLaDA)
    margin      the likeliest value's lead over the second (Dream's topk_margin)
    entropy     minus the posterior's entropy, in nats (Dream's entropy)
    """
    if rule == "confidence":
        return rows.gather(1, value[:, None]).squeeze(1)
    if rule == "margin":
        two = rows.topk(2, -1).values
        return two[:, 0] - two[:, 1]
    return torch.xlogy(rows, rows).sum(-1)


def look(
    run: Run,
    state: State,
    times: float | Float[Tensor, " n"],
    where: Mask,
    index: int,
    rule: Rule,
    observe: Callable[[Answer, Rows], None] = lambda answer, rows: None,
) -> Look:
    """Evaluate the sequences that have a token in `where`, and score those tokens. `observe` sees their laws."""
    u = run.uniforms(Purpose.DRAW, state, index)
    values, scores = torch.zeros_like(state.tokens), None
    for answer in run.answers(state, times, where):
        rows = run.normalised(run.law(answer))
        value = draw(rows, u[answer.sequence, answer.position])
        sure = torch.round(score(rule, rows, value) / ROUNDING) * ROUNDING
        if scores is None:
            scores = torch.full(state.tokens.shape, -torch.inf, dtype=rows.dtype, device=state.device)
        places = state.places(answer.sequence, answer.position)
        values.view(-1)[places] = value.to(state.device)
        scores.view(-1)[places] = sure.to(state.device)
        observe(answer, rows)
    return Look(values, torch.full_like(values, -torch.inf, dtype=torch.float32) if scores is None else scores)


def best(scores: Scores, count: Int[Tensor, " n"]) -> Mask:
    """The `count` places of each sequence with the highest scores."""
    rank = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return (rank < count[:, None].to(scores.device)) & torch.isfinite(scores)


def revealed(state: State, chosen: Mask, values: Int[Tensor, "n length"]) -> State:
    """The state with the chosen values put in; the CPU is told the places."""
    draws = Draws(state)
    draws.tokens = torch.where(chosen, values, state.tokens)
    places = chosen.flatten().nonzero().squeeze(1).int().cpu().long()
    draws.active.view(-1)[places] = False
    return draws.done()


@dataclass(frozen=True)
class ByPosterior(GridSampler):
    """As many tokens as the schedule says, those that the rule is surest of.

    With `confidence` the drawn value itself decides, so that likely values come first: samples are sharper than the
    model's law, and less varied. `margin` and `entropy` look at the posterior only; one token at a time they are exact.
    `noise` adds Gumbel noise of that size to the logarithm of the score, growing less towards the data (MaskGIT).
    """

    rule: Rule = "entropy"
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise EigentimeError(f"Unknown rule {self.rule!r}; known are {', '.join(RULES)}.")
        if not 0 <= self.noise < float("inf"):
            raise EigentimeError(f"noise must be 0 or more, not {self.noise}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The rule's."""
        return self.rule

    def step(self, run: Run, state: State, step: Step) -> State:
        needs_masks(state)
        total, left = state.free.sum(1), state.active.sum(1)
        known = torch.round(step.alpha_s * total).long() if not step.last else total
        count = (left - (total - known)).clamp(min=0)
        found = look(run, state, step.t, state.active & (count > 0)[:, None], step.index, self.rule)
        scores = found.scores
        if self.noise:
            u = run.uniforms(Purpose.CHOOSE, state, step.index).clamp(min=1e-12)
            logs = scores if self.rule == "entropy" else scores.clamp(min=1e-12).log()
            gumbel = (self.noise * step.t * (-u.log()).log()).to(scores)
            scores = torch.where(torch.isfinite(scores), logs - gumbel, scores)
        return revealed(state, best(scores, count), found.values)


class Adaptive(Sampler, ABC):
    """Reveals as many tokens at each evaluation as a rule allows, at least one: if it allows none, the surest."""

    rule: ClassVar[Rule] = "confidence"
    """What tokens are scored by."""
    scheduled = False

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
        return look(run, state, times, state.active, index, self.rule)

    @abstractmethod
    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        """The tokens that the rule allows."""


@dataclass(frozen=True)
class EntropyBounded(Adaptive):
    """EB-sampler: in order of entropy, the most tokens with Σ H - max H ≤ `bound` nats, a bound on the dependence that
    drawing them at once ignores. A bound of 0 is one token at a time, but for those that are certain."""

    bound: float = 0.1
    name = "entropy-bounded"
    rule = "entropy"

    def __post_init__(self) -> None:
        if not self.bound >= 0:
            raise EigentimeError(f"The bound must be 0 nats or more, not {self.bound}.")

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        entropies = torch.where(masked, -found.scores, torch.inf).clamp(min=0.0)
        ordered, places = entropies.sort(dim=1, stable=True)
        finite = torch.where(torch.isfinite(ordered), ordered, 0.0)
        allowed = (finite.cumsum(1) - finite <= self.bound) & torch.isfinite(ordered)  # the last one is the largest
        return torch.zeros_like(masked).scatter(1, places, allowed.cumprod(1).bool())


@dataclass(frozen=True)
class Threshold(Adaptive):
    """Fast-dLLM: every token whose drawn value has at least this probability."""

    confidence: float = 0.9
    name = "threshold"

    def __post_init__(self) -> None:
        if not self.confidence > 0:
            raise EigentimeError(f"The confidence must be positive, not {self.confidence}.")

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        return found.scores >= self.confidence


@dataclass(frozen=True)
class Klass(Adaptive):
    """KLASS: every token whose drawn value has at least this probability, and whose posterior p has stopped moving:
    KL(p ‖ p before) below `divergence` nats at each of the last `history` evaluations.

    Of the evaluation before it keeps the network's hidden rows, and runs the head on them again.
    """

    confidence: float = 0.9
    divergence: float = 0.01
    history: int = 2
    name = "klass"

    def __post_init__(self) -> None:
        if not self.confidence > 0 or not self.divergence > 0 or self.history < 1:
            raise EigentimeError("KLASS needs a positive confidence and divergence, and a history of at least 1.")

    def looked(self, run: Run, state: State, times: Float[Tensor, " n"], index: int) -> Look:
        """Also counts at how many evaluations in a row each token was calm."""
        before, kept = run.memory.get("kept"), Kept(run, state, times)
        calm = run.memory.setdefault("calm", torch.zeros_like(state.tokens))

        def observe(answer: Answer, rows: Rows) -> None:
            kept.add(answer)
            if before is None:
                return
            earlier = run.normalised(before.law(answer, answer.tokens))
            moved = (torch.xlogy(rows, rows) - torch.xlogy(rows, earlier)).sum(-1).to(state.device)
            places = state.places(answer.sequence, answer.position)
            calm.view(-1)[places] = torch.where(moved < self.divergence, calm.view(-1)[places] + 1, 0)

        found = look(run, state, times, state.active, index, self.rule, observe)
        run.memory["kept"] = kept
        return found

    def choose(self, run: Run, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        return (found.scores >= self.confidence) & (run.memory["calm"] >= self.history)


@dataclass(frozen=True)
class Remasking(GridSampler):
    """ReMDM: known tokens are masked again with probability σ = min(eta, (1 - α_s)/α_t) in every step, so that mistakes
    can be mended; masked ones are revealed with probability (α_s - (1 - σ)·α_t)/(1 - α_t), which keeps marginals."""

    eta: float = 0.05
    name = "remasking"

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1:
            raise EigentimeError(f"eta must lie in [0, 1], not {self.eta}.")

    def step(self, run: Run, state: State, step: Step) -> State:
        needs_masks(state)
        again = min(self.eta, (1 - step.alpha_s) / step.alpha_t) if step.alpha_t > 0 else 0.0
        reveal = min(1.0, (step.alpha_s - (1 - again) * step.alpha_t) / (1 - step.alpha_t))
        u, draws = run.uniforms(Purpose.DRAW, state, step.index), Draws(state)
        for answer in run.answers(state, step.t, state.active & (u < reveal)):
            place = answer.sequence, answer.position
            draws.put(*place, draw(run.law(answer), u[place] / reveal))
        draws.hide(state.free & ~state.active & (u < again))
        return draws.done()
