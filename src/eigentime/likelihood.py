"""What data cost under the very sampler that people run, and how far its samples are from its own one-token-at-a-time
law: certificates for samplers that look at what they reveal."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
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
    """Whether nats are -ln q itself; else chance chooses places, and their mean is a bound."""
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
    block_length  generate block by block from left to right, every one along the same schedule
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
    settings: dict[str, Any] = {"seed": seed, "batch_size": batch_size}
    parts = [
        _cost(part, x[:, first:last], sampler, planned, Condition(None, held, before), shaping, references, settings)
        for part, first, last, held, before in _parts(model, x, fixed, cond, block_length)
    ]
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
    model: Model, x: Tensor, fixed: Any, cond: Tensor | None, block_length: int | None
) -> Iterator[tuple[Model, int, int, Any, Tensor | None]]:
    """The whole, or one block after the other with all before it as condition."""
    if block_length is None:
        yield model, 0, model.length, fixed, cond
        return
    if fixed is not None or cond is not None:
        raise EigentimeError("Blocks are conditioned on what comes before them: leave `fixed` and `cond` out.")
    if not 0 < block_length <= model.length or model.length % block_length:
        raise EigentimeError(f"{model.length} tokens do not split into blocks of {block_length}.")
    for start in range(0, model.length, block_length):
        stop = start + block_length
        yield Block(model, start, stop), start, stop, None, x[:, :start]


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
        walked.exact,
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
    """Known beforehand along a schedule; else counted on samples."""
    if planned is not None and make_sampler(sampler).scheduled:
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
