"""Teacher forcing: what given sequences cost under a sampler's own steps, and what they would cost one at a time.

Where S_k, the tokens that evaluation k reveals, follows from what is known before, the samples' law is

    q(x) = Π_k Π_{i ∈ S_k(x)} q(x_i | known before step k),

and walking with the true values put in at S_k computes it exactly. Where chance plays a part in S_k, averages of the
logarithm bound it by Jensen's inequality: E[-ln q(x | choices)] ≥ -ln q(x).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.process import as_tokens, expand_mask
from eigentime.process.randomness import Purpose, uniforms
from eigentime.samplers.base import Sampler
from eigentime.samplers.condition import Condition
from eigentime.samplers.loop import run as walk
from eigentime.samplers.run import Run
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.state import State
from eigentime.schedules import Plan, Schedule

BatchSize = int | Literal["auto"]


@dataclass(frozen=True)
class Walked:
    """Sequences with what each of their tokens cost, and when it came."""

    tokens: Int[Tensor, "n length"]
    free: Bool[Tensor, "n length"]
    """Tokens that are not given."""
    logs: Float[Tensor, "n length"]
    """ln q(x_i | known before i's step), 0 where a token is given."""
    step: Int[Tensor, "n length"]
    """The evaluation that revealed it, -1 where a token is given."""
    spent: Int[Tensor, " n"]
    """Evaluations of each sequence."""
    exact: bool
    """Whether Σ logs is ln q(x); else it is ln q(x | which tokens came when)."""


def teach(
    model: Model,
    x: Any,
    planned: Schedule | Plan | None,
    sampler: str | Sampler = "ancestral",
    *,
    condition: Condition | None = None,
    shaping: Shaping | None = None,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    first: int = 0,
) -> Walked:
    """Follow given sequences with a sampler; `condition.fixed` says which of their tokens are given, and `first` which
    of all sequences the first one is: what chance decides of it is the same in whatever company it is followed."""
    condition = condition or Condition()
    x = as_tokens(x, "The sequences")
    if x.ndim != 2 or x.shape[1] != model.length or (isinstance(planned, Plan) and planned.length != model.length):
        raise EigentimeError(f"The sequences {tuple(x.shape)} do not have the {model.length} tokens of {model.name}.")
    model.process.check_tokens(x, "The sequences")
    x = model.cut(x, condition.cond)
    given = x if condition.fixed is not None else None
    if bool(expand_mask(condition.fixed, x.shape).all(1).any()):
        raise EigentimeError("`fixed` marks every token of a sequence as given: there is nothing to measure.")
    followed = Condition(given, condition.fixed, condition.cond, condition.guidance, x, first)
    options: dict[str, Any] = {"sampler": sampler, "seed": seed, "shaping": shaping, "batch_size": batch_size}
    _, info = walk(model, planned, len(x), condition=followed, **options)
    assert info.record is not None
    free = ~expand_mask(condition.fixed, x.shape)
    return Walked(x, free, info.record.logs, info.record.asked.long(), info.spent, info.exact)


def log_likelihood(
    model: Model, x: Any, planned: Schedule | Plan | None, sampler: str | Sampler = "ancestral", **options: Any
) -> Float[Tensor, " n"]:
    """ln q(x) in nats of every sequence, or where chance plays a part ln q(x | choices of this seed)."""
    return teach(model, x, planned, sampler, **options).logs.sum(1)


@torch.no_grad()
def one_at_a_time(
    model: Model,
    walked: Walked,
    tokens: int,
    *,
    cond: Tensor | None = None,
    shaping: Shaping | None = None,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    first: int = 0,
) -> tuple[Float[Tensor, "n m"], Int[Tensor, "n m"], Float[Tensor, "n m"]]:
    """ln p(x_j | all before j), the same steps taken one token at a time (within a step by position), for `tokens` free
    j of every sequence, drawn uniformly: the logarithms, the j, and weights that make their sum one over all tokens.

    A network that is told the time is told the one that its number of known tokens implies.
    """
    n, length = walked.tokens.shape
    u = uniforms(seed, Purpose.POSITIONS, n, length, first=first).masked_fill(~walked.free, 2.0)
    most = min(tokens, int(walked.free.sum(1).min()))
    chosen = u.argsort(1)[:, :most]
    step_of, position = walked.step.gather(1, chosen)[..., None], torch.arange(length)
    earlier = (walked.step[:, None] < step_of) | ((walked.step[:, None] == step_of) & (position < chosen[..., None]))
    known = (earlier | ~walked.free[:, None]).flatten(0, 1)
    where = torch.zeros_like(known).scatter_(1, chosen.reshape(-1, 1), True)
    each = walked.tokens.repeat_interleave(most, 0)
    logs = _asked(model, each, known, where, walked.free.repeat_interleave(most, 0), cond, shaping, batch_size, most)
    weights = (walked.free.sum(1).double() / most)[:, None].expand(n, most)
    return logs.sum(1).view(n, most), chosen, weights


@torch.no_grad()
def nelbo(
    model: Model,
    x: Int[Tensor, "n length"],
    free: Bool[Tensor, "n length"],
    counts: int,
    *,
    cond: Tensor | None = None,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    first: int = 0,
) -> Float[Tensor, " n"]:
    """An unbiased estimate of each sequence's negative ELBO: what its tokens cost one at a time in random order, from
    `counts` numbers of known tokens, spread evenly."""
    n, length = x.shape
    total = free.sum(1)
    shift = uniforms(seed, Purpose.TIME, n, 1, first=first)
    level = ((torch.arange(counts) + shift) / counts * total[:, None]).floor().long()
    level = torch.minimum(level, total[:, None] - 1)
    rank = uniforms(seed, Purpose.ORDER, n * counts, length, first=first * counts)
    each = free.repeat_interleave(counts, 0)
    rank = rank.masked_fill(~each, -1.0).argsort(1).argsort(1)
    known = rank < (level.flatten() + (~each).sum(1))[:, None]
    logs = _asked(model, x.repeat_interleave(counts, 0), known, ~known, each, cond, None, batch_size, counts)
    masked = (~known).sum(1)
    per_sequence = (-logs.sum(1) / masked * each.sum(1)).view(n, counts)
    return per_sequence.mean(1)


def _asked(
    model: Model,
    x: Int[Tensor, "r length"],
    known: Bool[Tensor, "r length"],
    where: Bool[Tensor, "r length"],
    free: Bool[Tensor, "r length"],
    cond: Tensor | None,
    shaping: Shaping | None,
    batch_size: BatchSize,
    repeats: int,
) -> Float[Tensor, "r length"]:
    """ln p of the true tokens of `where` when `known` ones are."""
    process, mask = model.process, model.process.mask
    share = (known & free).sum(1) / free.sum(1).clamp(min=1)
    state = State(torch.where(known, x, mask).to(model.device), free, where, mask)
    cond = None if cond is None else cond.repeat_interleave(repeats, 0)
    run = Run(model, 0, replace(shaping or Shaping(), normalise=True), batch_size, cond)
    logs = torch.zeros(x.shape, dtype=torch.float64)
    for answer in run.answers(state, process.noise.time_of_alpha(share.double()), where):
        rows, place = run.law(answer), (answer.sequence, answer.position)
        chosen = rows.gather(1, x[place].to(rows.device)[:, None]).squeeze(1).clamp(min=run.least)
        logs[place] = chosen.log().cpu().double()
    return logs
