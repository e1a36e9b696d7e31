"""A look at a network before anything is spent on it, and at its numbers afterwards.

Two equal sequences of pure noise are asked for in one evaluation. Both answers must be the same, must be laws over the
vocabulary, and must not know what they were not shown.
"""

import math
import warnings

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.groups import jackknife
from eigentime.measure.levels import Source
from eigentime.measure.masked import log_posterior_rows, mass_and_entropy
from eigentime.models.base import Model, posterior_rows
from eigentime.process.randomness import Purpose

LOOKED = 32
"""Places of a sequence that are looked at."""
DIFFERENT = 5e-3
"""Mean total variation between two answers to one question that rounding does not explain."""
MASS = math.log(10)
"""Scores of a masked token add up to α/(1-α); by this factor a trained network does not miss it."""
OWN_SCORE = 1.0
"""Nats by which the score of a token against itself, which is 1, may be missed on average."""
UNNORMALISED = 0.05
CERTAIN = 0.01
"""Share of the data's own entropy below which an answer about nothing knows too much."""
VARIED, ENOUGH = 0.1, 8
"""Nats per token, and different sequences, from which on data say that they vary."""
PURE = 0.01
"""α up to which noise says nothing of the data."""
APART, APART_NATS = 0.25, 0.1
"""Entropy and cross-entropy that differ by this share, and by so many nats per token, are not those of one law."""


def check_network(source: Source) -> None:
    """Refuse a network whose answers no measurement can be made of; exact models are what they say."""
    model = source.model
    if model.exact:
        return
    where, tokens, logs = _asked_twice(source)
    _check_rows(model, logs, int(where.sum()))
    first, second = _laws(model, logs, tokens).double().cpu().tensor_split(2)
    apart = float((first - second).abs().sum(-1).mean()) / 2
    if apart > DIFFERENT:
        raise EigentimeError(
            f"{model.name} answers the same question differently (by {apart:.1%} of the probability, on average): is "
            "dropout left on? Call .eval() on the network that it wraps."
        )
    nothing_known = source.cond is None and not bool(source.fixed.any())
    if nothing_known and model.process.noise.alpha(1.0).item() <= PURE:
        _check_ignorance(source, where[0], float(torch.special.entr(first).sum(-1).mean()))


def _asked_twice(source: Source) -> tuple[Bool[Tensor, "2 length"], Tensor, Tensor]:
    """Two copies of a sequence of noise: where they are looked at, the tokens there, and what the network returns."""
    model = source.model
    x0, fixed, cond = source.rows(0, 1)
    noise = model.process.prior(source.uniforms(Purpose.PRIOR, 0, 1))
    x = torch.where(fixed, x0, noise)
    free = (~fixed[0]).nonzero().squeeze(1)
    where = torch.zeros_like(fixed)
    where[0, free[torch.linspace(0, len(free) - 1, min(LOOKED, len(free))).round().long()]] = True

    def ask(first: int, number: int) -> Tensor:
        at = torch.ones(number, dtype=torch.float64)
        repeated = None if cond is None else cond.repeat_interleave(number, 0)
        answer = model.evaluate(x.expand(number, -1), at, where.expand(number, -1), repeated)
        return torch.cat([logs for _, logs in answer.pieces()])

    with torch.no_grad():
        logs = torch.cat(source.batch.over(2, ask))
    return where.expand(2, -1), x[where].repeat(2), logs


def _check_rows(model: Model, logs: Tensor, count: int) -> None:
    """Refuse what is no law over the vocabulary; infinities and NaN were refused before."""
    size = model.process.kernel.size
    if logs.shape != (count, size) or not logs.is_floating_point():
        raise EigentimeError(
            f"{model.name} returned {logs.dtype} of shape {tuple(logs.shape)} for {count} tokens; expected one row of "
            f"{size} logarithms for each."
        )
    if model.predicts == "posterior" and not model.splits:
        total = logs.logsumexp(-1)
        if not bool((total.abs() <= UNNORMALISED).all()):
            raise EigentimeError(
                f"{model.name} says that it predicts posteriors, but its rows are no log-probabilities (one sums to "
                f"{total[total.abs().argmax()].exp().item():.3g}); apply log_softmax to them."
            )


def _laws(model: Model, logs: Float[Tensor, "n size"], tokens: Tensor) -> Float[Tensor, "n size"]:
    """Posteriors at t = 1, where scores are looked at more closely."""
    t = torch.tensor(1.0, dtype=torch.float64)
    if not model.process.absorbing:
        if model.predicts == "score":
            own = logs.gather(-1, tokens.to(logs.device)[:, None]).abs().mean().item()
            if own > OWN_SCORE:
                raise _no_scores(model, f"the score of a token against itself is 1, and misses that by {own:.3g} nats")
        return posterior_rows(model, logs, tokens.to(logs.device), t, normalise=True)
    rows = log_posterior_rows(model, logs, model.process.noise.alpha(t).expand(len(logs)))
    if model.predicts == "score":
        log_mass = mass_and_entropy(rows, model)[1].mean().item()
        if abs(log_mass) > MASS:
            text = f"{math.exp(log_mass):.2g}" if abs(log_mass) < 300 else f"e^{log_mass:.0f}"
            raise _no_scores(model, f"what they say a masked token holds adds up to {text} in place of 1")
    return model.process.kernel.forbid_(rows.clone()).softmax(-1)


def _no_scores(model: Model, contradiction: str) -> EigentimeError:
    return EigentimeError(
        f"{model.name} predicts scores, it says, but its outputs contradict this process: {contradiction}. Raw outputs "
        "are predicts='logits'; if they are scores, the network was trained with another noise or kernel."
    )


def _check_ignorance(source: Source, where: Bool[Tensor, " length"], entropy: float) -> None:
    """Refuse a network that is certain although it was shown nothing. Whatever it is, on data that vary by
    H = mean_i H(x_i) no answer about nothing is right with less entropy."""
    places = source.data[:, where]
    if len(torch.unique(places, dim=0)) < ENOUGH:
        return
    varied = float(np.mean([_entropy(column) for column in places.T]))
    if varied > VARIED and entropy < CERTAIN * varied:
        raise EigentimeError(
            f"{source.model.name} is certain of tokens that it was shown nothing of ({entropy:.2g} nats per token, "
            f"where the data vary by {varied:.2g}): it sees the answer, or its outputs are sharpened. Give it noisy "
            "tokens only, and take its raw outputs."
        )


def _entropy(values: Tensor) -> float:
    """Of the frequencies of some tokens, in nats."""
    counts = values.unique(return_counts=True)[1].double()
    return float(torch.special.entr(counts / counts.sum()).sum())


def warn_uncalibrated(clock: Clock) -> None:
    """Say where the model's own entropy is not what data cost under it, and by how much."""
    if clock.exact:
        return

    def difference(part: Clock) -> float:
        entropy, cross = part.measured.calibration()
        return cross - entropy

    entropy, cross = clock.measured.calibration()
    apart = cross - entropy
    noise = jackknife(difference, clock) if clock.groups > 1 else math.inf
    if abs(apart) > max(APART * abs(entropy), APART_NATS * clock.measured.unit, 3 * noise):
        warnings.warn(
            f"{clock.model}: its own entropy, {entropy:.3g}, and its cross-entropy on the data, {cross:.3g} nats"
            f"{clock.measured.per}, disagree by {apart:+.2g} ± {noise:.1g}: the network is not calibrated on these "
            "data, or was trained with another noise, kernel or vocabulary. Schedules and certificates with "
            "estimator='cross-entropy' take the data's word.",
            stacklevel=4,
        )
