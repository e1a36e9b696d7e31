"""What data cost under the very sampler that people run, and how far its samples are from its own one-token-at-a-time
law: certificates for samplers that look at what they reveal."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.intervals import PerSequence
from eigentime.models import Model, Oracle
from eigentime.models.block import Block
from eigentime.models.ending import Ending
from eigentime.process.process import as_tokens, expand_mask
from eigentime.samplers import Condition, Sampler, Shaping, make_sampler
from eigentime.samplers.loop import NOT_COVERED
from eigentime.samplers.teacher import Walked, nelbo, one_at_a_time, teach
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


@dataclass(frozen=True)
class DataCost:
    """Nats that data cost under a sampler, per sequence, beside two references on the same sequences."""

    nats: PerSequence
    """-ln q(x), or a bound on it. Its mean less the entropy of the data is KL(data ‖ samples)."""
    exact: bool
    """Whether nats are -ln q itself; else chance chooses places, or anything may be drawn after an end, and their mean
    is a bound."""
    one_at_a_time: PerSequence
    """The same order, one token at a time: what this sampler would cost with as many evaluations as tokens."""
    nelbo: PerSequence
    """One token at a time in random order."""
    by_step: Float[np.ndarray, " steps"]
    """Nats of the tokens that each evaluation reveals."""
    evaluations: Evaluations
    """On the sampler's own samples."""
    taught: Evaluations
    """On the data."""
    forbidden: float
    """Share of the tokens of the data that the sampler cannot draw: where there are any, nats are infinite."""

    @property
    def excess(self) -> PerSequence:
        """What drawing several tokens at once costs, paired by sequence; infinite where shaping forbids a sequence."""
        impossible = ~(np.isfinite(self.nats.values) & np.isfinite(self.one_at_a_time.values))
        known = np.where(impossible, 0.0, self.nats.values) - np.where(impossible, 0.0, self.one_at_a_time.values)
        return PerSequence(np.where(impossible, np.inf, known))

    def __str__(self) -> str:
        kind = "" if self.exact else " at most"
        return (
            f"{self.nats} nats{kind}, {self.excess} above one token at a time; NELBO {self.nelbo}; "
            f"{self.evaluations.mean:.4g} evaluations"
        )


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
    references: int = 8,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
) -> DataCost:
    """What data cost, in nats per sequence, under a sampler with its very steps, by teacher forcing (masked models).

    data          clean sequences (N, L); an exact model draws its own, a named one's task knows some
    sampler       any whose choice of places does not look at values just drawn: it says so itself (`likelihood`)
    planned       the schedule or plan that it walks along; None for samplers that need none
    fixed, cond   tokens that are given, and classes, as in `sample`
    shaping       the law that values are drawn from; rules always look at the posteriors as they are
    block_length  generate block by block from left to right, every one along the same schedule; blocks that are given
                  cost nothing, and given tokens may begin with padding, -1
    end           the token that ends a text: what follows it costs nothing (see `Ending`)
    sequences     how many of the data at most
    references    evaluations per sequence for each of the two references
    """
    if data is None and fixed is None:
        fixed = api.own_prompts(model, 1)[1]
    x = as_tokens(api.own_data(model, sequences, seed) if data is None else data, "The data")[:sequences]
    if x.ndim != 2 or x.shape[1] != model.length:
        raise EigentimeError(f"The data {tuple(x.shape)} do not have the {model.length} tokens of {model.name}.")
    fixed = fixed[:sequences] if np.ndim(fixed) == 2 else fixed
    cond = None if cond is None else cond[:sequences]
    if references < 1:
        raise EigentimeError(f"references must be at least 1, not {references}.")
    free = ~expand_mask(fixed, x.shape)
    if not bool(free.any(1).all()):
        raise EigentimeError("`fixed` marks every token of a sequence as given: there is nothing to measure.")
    ended = torch.zeros_like(free)
    if end is not None:
        ended = (x == end) & free
        x = x.masked_fill(free & (ended.long().cumsum(1) - ended.long() > 0), end)
    settings: dict[str, Any] = {"seed": seed, "batch_size": batch_size}
    parts = []
    for part, rows, inside, condition in _parts(model, x, free, ended, cond, end, block_length):
        cost = _cost(part, x[rows, inside], sampler, planned, condition, shaping, references, settings)
        parts.append(_among_all(cost, rows, len(x)))
    return parts[0] if len(parts) == 1 else _added(parts)


def reverse_kl(
    model: Model,
    sampler: str | Sampler = "ancestral",
    planned: Schedule | Plan | None = None,
    *,
    given: Any = None,
    fixed: Any = None,
    cond: Tensor | None = None,
    shaping: Shaping | None = None,
    samples: int = 256,
    references: int = 8,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
) -> PerSequence:
    """KL(samples ‖ the same steps one token at a time) in nats, from a sampler's own samples, without data.

    ln q(x) - ln p(x) = Σ_j [ln q(x_j | before j's step) - ln p(x_j | all before j)], from `references` tokens j of
    every sample drawn uniformly: no bias. It sees contexts that contradict each other, which no data show. Where chance
    chooses places it is an upper bound; it is infinite where the exact law gives a sample no chance at all.
    """
    if given is None and fixed is None:
        given, fixed = api.own_prompts(model, samples, seed)
    condition = Condition(given, fixed, cond)
    drawn = api.sample(
        model,
        planned,
        samples,
        sampler=sampler,
        given=given,
        fixed=fixed,
        cond=cond,
        shaping=shaping,
        seed=seed,
        batch_size=batch_size,
    )
    record = drawn.info.record
    if record is None:
        raise EigentimeError(NOT_COVERED.format(name=make_sampler(sampler).name))
    free = ~expand_mask(condition.fixed, drawn.shape)
    tokens = drawn.as_subclass(Tensor)
    walked = Walked(tokens, free, record.logs, record.asked.long(), drawn.info.spent, drawn.info.exact)
    single, chosen, weights = one_at_a_time(
        model, walked, references, cond=cond, shaping=shaping, seed=seed, batch_size=batch_size
    )
    return PerSequence((weights * (walked.logs.gather(1, chosen) - single)).sum(1).numpy())


def _parts(
    model: Model,
    x: Tensor,
    free: Tensor,
    ended: Tensor,
    cond: Tensor | None,
    end: int | None,
    block_length: int | None,
) -> Iterator[tuple[Model, Tensor, slice, Condition]]:
    """The whole, or one block after the other with all before it as condition: the model, the sequences that still have
    something to draw there, where it is, and what is given."""
    if block_length is not None and cond is not None:
        raise EigentimeError("Blocks are conditioned on what comes before them: leave `cond` out.")
    length = model.length if block_length is None else block_length
    if not 0 < length <= model.length or model.length % length:
        raise EigentimeError(f"{model.length} tokens do not split into blocks of {length}.")
    for start in range(0, model.length, length):
        inside = slice(start, start + length)
        rows = (free[:, inside].any(1) & ~ended[:, :start].any(1)).nonzero().squeeze(1)
        if not len(rows):
            continue
        held = ~free[rows, inside]
        # end tokens of a prompt end nothing
        ending = model if end is None else Ending(model, end, start + int(free[rows, inside].long().argmax(1).max()))
        part = ending if block_length is None else Block(ending, start, start + length)
        before = (None if cond is None else cond[rows]) if block_length is None else x[rows, :start]
        yield part, rows, inside, Condition(None, held if held.any() else None, before)


def _among_all(cost: DataCost, rows: Tensor, count: int) -> DataCost:
    """The same per sequence of all, of which the others cost nothing."""
    if len(rows) == count:
        return cost
    share = len(rows) / count

    def spread(values: PerSequence) -> PerSequence:
        everyone = np.zeros(count)
        everyone[rows.numpy()] = values.values
        return PerSequence(everyone)

    def shared(spent: Evaluations) -> Evaluations:
        return replace(spent, mean=spent.mean * share, seconds=spent.seconds and spent.seconds * share)

    return replace(
        cost,
        nats=spread(cost.nats),
        one_at_a_time=spread(cost.one_at_a_time),
        nelbo=spread(cost.nelbo),
        by_step=cost.by_step * share,
        evaluations=shared(cost.evaluations),
        taught=shared(cost.taught),
    )


def _cost(
    model: Model,
    x: Tensor,
    sampler: str | Sampler,
    planned: Schedule | Plan | None,
    condition: Condition,
    shaping: Shaping | None,
    references: int,
    settings: dict[str, Any],
) -> DataCost:
    walked = teach(model, x, planned, sampler, condition=condition, shaping=shaping, **settings)
    single, chosen, weights = one_at_a_time(model, walked, references, cond=condition.cond, shaping=shaping, **settings)
    every = nelbo(model, x, walked.free, references, cond=condition.cond, **settings)
    steps = int(walked.step.max()) + 1
    by_step = [-walked.logs[walked.step == step].sum().item() / len(x) for step in range(steps)]
    # the reference differs from the cost by an estimate that the same tokens make of both: their noise drops out
    cost, reference = -walked.logs.sum(1), -(weights * single).sum(1)
    difference = (weights * (single - walked.logs.gather(1, chosen))).sum(1)
    if isinstance(model, Oracle) and (shaping or Shaping()).neutral and bool(walked.free.all()):
        reference = -model.log_likelihood(x)  # in any order, so that nothing is estimated
        difference = cost - reference
    return DataCost(
        PerSequence(cost.numpy()),
        walked.exact and model.end is None,
        PerSequence(torch.where(cost.isfinite(), cost - difference, reference).numpy()),
        PerSequence(every.numpy()),
        np.array(by_step),
        _own_evaluations(model, x, sampler, planned, condition, shaping, settings),
        _evaluations(walked.spent),
        torch.isneginf(walked.logs).double().sum().item() / max(1, int(walked.free.sum())),
    )


def _own_evaluations(
    model: Model,
    x: Tensor,
    sampler: str | Sampler,
    planned: Schedule | Plan | None,
    condition: Condition,
    shaping: Shaping | None,
    settings: dict[str, Any],
) -> Evaluations:
    """Known beforehand along a schedule, unless texts end; else counted on samples."""
    if planned is not None and make_sampler(sampler).scheduled and model.end is None:
        return Evaluations(planned.evaluations, planned.evaluations)
    count = min(OWN_SAMPLES, len(x))
    held = None if condition.fixed is None else expand_mask(condition.fixed, x.shape)[:count]
    drawn = api.sample(
        model,
        planned,
        count,
        sampler=sampler,
        given=None if held is None else x[:count],
        fixed=held,
        cond=None if condition.cond is None else condition.cond[:count],
        shaping=shaping,
        **settings,
    )
    return _evaluations(drawn.info.spent, drawn.seconds / count)


def _evaluations(spent: Tensor, seconds: float | None = None) -> Evaluations:
    counted = spent.double()
    return Evaluations(counted.mean().item(), counted.quantile(0.95).item(), seconds)


def _added(parts: list[DataCost]) -> DataCost:
    """Blocks one after the other: costs and evaluations add up."""
    sums = {
        part.name: PerSequence(np.sum([getattr(each, part.name).values for each in parts], 0))
        for part in fields(DataCost)
        if isinstance(getattr(parts[0], part.name), PerSequence)
    }
    return DataCost(
        exact=all(each.exact for each in parts),
        by_step=np.concatenate([each.by_step for each in parts]),
        evaluations=_sum_of([each.evaluations for each in parts]),
        taught=_sum_of([each.taught for each in parts]),
        forbidden=float(np.mean([each.forbidden for each in parts])),
        **sums,
    )


def _sum_of(parts: list[Evaluations]) -> Evaluations:
    seconds = [each.seconds for each in parts if each.seconds is not None]
    return Evaluations(
        sum(each.mean for each in parts), sum(each.most for each in parts), sum(seconds) if seconds else None
    )
