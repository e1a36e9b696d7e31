"""Samplers for masked models that look before they reveal: the network's own posteriors say which tokens come next.

With a schedule (`ByPosterior`) the number of tokens at each step is the schedule's, and only *which* is chosen here, as
MaskGIT, LLaDA and Dream do. Without one (`EntropyBounded`, `Threshold`, `Klass`) the number is chosen as well: such
samplers spend what they need and report it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.absorbing import Absorbing
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, Sampler, State, Step, full

Rule = Literal["confidence", "margin", "entropy"]
RULES: tuple[Rule, ...] = ("confidence", "margin", "entropy")
Scores = Float[Tensor, "n length"]


@dataclass
class Look:
    """What one evaluation says of every masked token, where the network is; nothing (-inf) of the others."""

    values: Int[Tensor, "n length"]
    """A value drawn from each posterior."""
    scores: Scores
    """How sure the network is of it, by a rule; the larger the surer."""
    laws: Float[Tensor, "n length size"] | None = None
    """The posteriors themselves, where they are asked for."""
    calm: Int[Tensor, "n length"] | None = None
    """At how many evaluations in a row the posterior has hardly moved (KLASS)."""


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
    network: Network,
    x: State,
    times: Float[Tensor, " n"],
    where: Mask,
    index: int,
    rule: Rule,
    keep_laws: bool = False,
) -> Look:
    """Evaluate the sequences that have a token in `where`, and score those tokens."""
    u = network.uniforms(Purpose.DRAW, x, index)
    found = None
    for sequence, position, posterior in network.posteriors(x, times, where):
        rows = posterior / posterior.sum(-1, keepdim=True)
        if found is None:
            found = _nothing_known(x, rows, keep_laws)
        value = draw(rows, u[sequence, position])
        places = (sequence * x.shape[1] + position).to(rows.device)
        found.values.view(-1)[places] = value
        found.scores.view(-1)[places] = score(rule, rows, value)
        if found.laws is not None:
            found.laws.flatten(0, 1)[places] = rows
    return _nothing_known(x, torch.zeros(0, network.model.process.kernel.size), keep_laws) if found is None else found


def _nothing_known(x: State, like: Rows, keep_laws: bool) -> Look:
    """Room for what is found, where the rows are and as precise."""
    values = torch.zeros(x.shape, dtype=torch.long, device=like.device)
    laws = like.new_zeros(*x.shape, like.shape[-1]) if keep_laws else None
    return Look(values, like.new_full(x.shape, -torch.inf), laws)


def best(scores: Scores, count: Int[Tensor, " n"]) -> Mask:
    """The `count` places of each sequence with the highest scores."""
    rank = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return (rank < count[:, None].to(scores.device)) & torch.isfinite(scores)


def revealed(x: State, chosen: Mask, values: Int[Tensor, "n length"]) -> State:
    """The state with the chosen values put in: of all that the device knows, only they come to the host."""
    places = chosen.flatten().nonzero().squeeze(1)
    result = x.clone()
    result.view(-1)[places.cpu()] = values.flatten()[places].cpu()
    return result


@dataclass(frozen=True)
class ByPosterior(Sampler):
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

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        masked = free & masks_of(network, x)
        total, left = free.sum(1), masked.sum(1)
        known = torch.round(step.alpha_s * total).long() if not step.last else total
        count = (left - (total - known)).clamp(min=0)
        found = look(network, x, full(x, step.t), masked & (count > 0)[:, None], step.index, self.rule)
        scores = found.scores
        if self.noise:
            u = network.uniforms(Purpose.CHOOSE, x, step.index).clamp(min=1e-12)
            logs = scores if self.rule == "entropy" else scores.clamp(min=1e-12).log()
            gumbel = (self.noise * step.t * (-u.log()).log()).to(scores)
            scores = torch.where(torch.isfinite(scores), logs - gumbel, scores)
        return revealed(x, best(scores, count), found.values)


class Adaptive(Sampler, ABC):
    """Reveals as many tokens at each evaluation as a rule allows, at least one: if it allows none, the surest."""

    rule: ClassVar[Rule] = "confidence"
    """What tokens are scored by."""

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        """One evaluation of every sequence that still has masks; `step` only counts them."""
        masked = free & masks_of(network, x)
        share = 1 - masked.sum(1) / free.sum(1).clamp(min=1)
        found = self.looked(network, x, network.model.process.noise.time_of_alpha(share), masked, step.index)
        hidden = masked.to(found.scores.device)
        chosen = self.choose(found, hidden) & hidden
        chosen = chosen | best(found.scores, (~chosen.any(1)).long())
        return revealed(x, chosen & hidden, found.values)

    def looked(self, network: Network, x: State, times: Float[Tensor, " n"], masked: Mask, index: int) -> Look:
        """The evaluation that the rule sees."""
        return look(network, x, times, masked, index, self.rule)

    @abstractmethod
    def choose(self, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
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

    def choose(self, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
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

    def choose(self, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        return found.scores >= self.confidence


@dataclass(frozen=True)
class Klass(Adaptive):
    """KLASS: every token whose drawn value has at least this probability, and whose posterior p has stopped moving:
    KL(p ‖ p before) below `divergence` nats at each of the last `history` evaluations.

    It remembers the posteriors of one evaluation, sequences × length × vocabulary numbers.
    """

    confidence: float = 0.9
    divergence: float = 0.01
    history: int = 2
    name = "klass"

    def __post_init__(self) -> None:
        if not self.confidence > 0 or not self.divergence > 0 or self.history < 1:
            raise EigentimeError("KLASS needs a positive confidence and divergence, and a history of at least 1.")

    def looked(self, network: Network, x: State, times: Float[Tensor, " n"], masked: Mask, index: int) -> Look:
        """Also counts at how many evaluations in a row each token was calm."""
        found = look(network, x, times, masked, index, self.rule, keep_laws=True)
        laws = found.laws
        assert laws is not None
        calm, masked = torch.zeros_like(found.values), masked.to(laws.device)
        if "laws" in network.memory:
            now, before = laws[masked], network.memory["laws"][masked]
            moved = (torch.xlogy(now, now) - torch.xlogy(now, before)).sum(-1)
            calm[masked] = torch.where(moved < self.divergence, network.memory["calm"][masked] + 1, 0)
        network.memory |= {"laws": laws, "calm": calm}
        found.calm = calm
        return found

    def choose(self, found: Look, masked: Mask) -> Bool[Tensor, "n length"]:
        assert found.calm is not None
        return (found.scores >= self.confidence) & (found.calm >= self.history)


@dataclass(frozen=True)
class Remasking(Sampler):
    """ReMDM: known tokens are masked again with probability σ = min(eta, (1 - α_s)/α_t) in every step, so that mistakes
    can be mended; masked ones are revealed with probability (α_s - (1 - σ)·α_t)/(1 - α_t), which keeps marginals."""

    eta: float = 0.05
    name = "remasking"

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1:
            raise EigentimeError(f"eta must lie in [0, 1], not {self.eta}.")

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        kernel = network.model.process.kernel
        masked = free & masks_of(network, x)
        again = min(self.eta, (1 - step.alpha_s) / step.alpha_t) if step.alpha_t > 0 else 0.0
        reveal = min(1.0, (step.alpha_s - (1 - again) * step.alpha_t) / (1 - step.alpha_t))
        u = network.uniforms(Purpose.DRAW, x, step.index)
        result = x.clone()
        for sequence, position, posterior in network.posteriors(x, full(x, step.t), masked & (u < reveal)):
            result[sequence, position] = draw(posterior, u[sequence, position] / reveal).cpu()
        assert isinstance(kernel, Absorbing)
        result[free & ~masked & (u < again)] = kernel.mask
        return result


def masks_of(network: Network, x: State) -> Mask:
    """Where the masks are; refused on other kernels."""
    kernel = network.model.process.kernel
    if not isinstance(kernel, Absorbing):
        raise EigentimeError("This sampler reveals masked tokens: it needs an absorbing kernel.")
    return kernel.masked(x)
