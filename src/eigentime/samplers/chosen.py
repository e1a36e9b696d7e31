"""Samplers for masked models that look before they reveal: the network's own posteriors say which tokens come next.

The number of tokens at each step is the schedule's, and only *which* is chosen here, as MaskGIT, LLaDA and Dream do.
Rules score the network's posterior as it is; only the values are drawn from a sharpened one. A rule that looks at what
is known, and not at values just drawn, leaves the sampler a law that teacher forcing evaluates exactly.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.arguments import flag, number, one_of, settle
from eigentime.orders.spread import van_der_corput
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import GridSampler, Likelihood, Step, needs_masks
from eigentime.samplers.run import Answer, Run
from eigentime.samplers.state import Draws, Mask, State

Scores = Float[Tensor, "n length"]
Rule = Callable[[Rows, Int[Tensor, " n"]], Float[Tensor, " n"]]
"""How sure posteriors are, the larger the surer: of the posteriors and of the values drawn."""
Ties = Literal["spread", "first"]
"""Which of equal scores come first: places spread evenly (van der Corput's sequence), or the first ones."""
ROUNDING = 1e-6
"""Scores are rounded to this and ties have a rule, so that devices and batch sizes choose the same, but where a score
lies at the edge between two rounded values. Where all is masked networks find all places alike, so that the rule for
ties decides the first step."""


@dataclass
class Look:
    """What one evaluation says of every masked token, where the network is; nothing (-inf) of the others."""

    values: Int[Tensor, "n length"]
    """A value drawn from each posterior."""
    scores: Scores
    """How sure the network is, by a rule; the larger the surer."""


def largest(rows: Rows, values: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The likeliest value's probability."""
    return rows.amax(-1)


def drawn(rows: Rows, values: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The drawn value's probability (MaskGIT, LLaDA)."""
    return rows.gather(1, values[:, None]).squeeze(1)


def lead(rows: Rows, values: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The likeliest value's lead over the second (Dream's topk_margin)."""
    two = rows.topk(2, -1).values
    return two[:, 0] - two[:, 1]


def certainty(rows: Rows, values: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Minus the posterior's entropy, in nats (Dream's entropy)."""
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
        rows = run.normalised(run.guided(answer.laws))
        shaped = run.shaping(rows)
        value = run.settled(state, answer, shaped, draw(shaped, u[answer.sequence, answer.position]))
        sure = torch.round(rule(rows, value) / ROUNDING) * ROUNDING
        if scores is None:
            scores = torch.full(state.tokens.shape, -torch.inf, dtype=rows.dtype, device=state.device)
        places = state.places(answer.sequence, answer.position)
        values.view(-1)[places] = value.to(state.device)
        scores.view(-1)[places] = sure.to(state.device)
        observe(answer, rows)
    return Look(values, torch.full_like(values, -torch.inf, dtype=torch.float32) if scores is None else scores)


def ranked(scores: Scores, ties: Ties = "spread") -> tuple[Scores, Int[Tensor, "n length"]]:
    """Scores from the highest to the lowest, and their places; the rule for ties decides between equal ones."""
    length = scores.shape[1]
    order = torch.from_numpy(van_der_corput(length)) if ties == "spread" else torch.arange(length)
    order = order.to(scores.device)
    ordered, places = scores[:, order].sort(dim=1, descending=True, stable=True)
    return ordered, order[places]


def best(scores: Scores, count: Int[Tensor, " n"], ties: Ties = "spread") -> Mask:
    """The `count` places of each sequence with the highest scores."""
    ordered, places = ranked(scores, ties)
    wanted = torch.arange(scores.shape[1], device=scores.device) < count[:, None].to(scores.device)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, places, wanted & torch.isfinite(ordered))


def revealed(state: State, chosen: Mask, values: Int[Tensor, "n length"]) -> State:
    """The state with the chosen values put in; the CPU is told the places."""
    draws = Draws(state)
    draws.tokens = torch.where(chosen, values, state.tokens)
    places = chosen.flatten().nonzero().squeeze(1).int().cpu().long()
    draws.active.view(-1)[places] = False
    return draws.done()


@dataclass(frozen=True)
class ByPosterior(GridSampler):
    """As many tokens as the schedule says, those that a rule is surest of; one token at a time that is exact.

    Of equal scores places far from each other come first, or with `ties="first"` the first ones, which clump.
    `noise` adds Gumbel noise of that size to the logarithm of the score, growing less towards the data (MaskGIT).
    """

    noise: float = 0.0
    ties: Ties = field(default="spread", kw_only=True)
    logarithmic: ClassVar[bool] = False
    """Whether scores are logarithms already."""

    def __post_init__(self) -> None:
        settle(self, noise=number(0), ties=one_of("spread", "first"))

    @property
    def likelihood(self) -> Likelihood | None:  # type: ignore[override]
        """Chance plays a part only through the noise."""
        return "bound" if self.noise else "exact"

    @abstractmethod
    def rule(self) -> Rule:
        """What tokens are scored by."""

    def step(self, run: Run, state: State, step: Step) -> State:
        needs_masks(state)
        total, left = state.free.sum(1), state.active.sum(1)
        known = torch.round(step.alpha_s * total).long() if not step.last else total
        count = (left - (total - known)).clamp(min=0)
        found = look(run, state, step.t, state.active & (count > 0)[:, None], step.index, self.rule())
        scores = found.scores
        if self.noise:
            u = run.uniforms(Purpose.CHOOSE, state, step.index).clamp(min=1e-12)
            logs = scores if self.logarithmic else scores.clamp(min=1e-12).log()
            gumbel = (self.noise * step.t * (-u.log()).log()).to(scores)
            scores = torch.where(torch.isfinite(scores), logs - gumbel, scores)
        return revealed(state, best(scores, count, self.ties), found.values)


@dataclass(frozen=True)
class Confidence(ByPosterior):
    """The tokens whose likeliest values are likeliest.

    With `drawn` it is the drawn value itself whose probability counts: likely values then come first, so that samples
    are sharper than the model's law and less varied, and no certificate covers them.
    """

    drawn: bool = False
    name = "confidence"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, drawn=flag)

    @property
    def likelihood(self) -> Likelihood | None:  # type: ignore[override]
        return None if self.drawn else super().likelihood

    def rule(self) -> Rule:
        return drawn if self.drawn else largest


@dataclass(frozen=True)
class Margin(ByPosterior):
    """The tokens whose likeliest value leads the second by most."""

    name = "margin"

    def rule(self) -> Rule:
        return lead


@dataclass(frozen=True)
class LowestEntropy(ByPosterior):
    """The tokens whose posteriors have the lowest entropy."""

    name = "entropy"
    logarithmic = True

    def rule(self) -> Rule:
        return certainty
