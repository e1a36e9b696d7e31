"""One evaluation of a model turned into sums per sequence: all that measuring ever asks of a network."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.measure.pairs import RATES, STEP_SHARES
from eigentime.measure.pointwise import entropy_slope, pointwise_rates
from eigentime.models.base import Model, posterior_rows, row_blocks
from eigentime.process.absorbing import Absorbing
from eigentime.process.kernel import one_hot
from eigentime.process.laws import Law, clip_law, token_law

MASKED_SUMS = ("masked", "entropy", "cross", "mass", "raw")
PAIR_SUMS = ("cost", "cross", "euler", "poisson")
PAIR_ELEMENTS = 2**24
"""Numbers (positions × vocabulary × step shares) that one evaluation on a kernel without mask may cost."""


def masked_sums(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    t: Float[Tensor, " b"],
    cond: Tensor | None = None,
    shared: bool = False,
) -> Float[np.ndarray, "b 5"]:
    """Σ over each sequence's masked tokens of the `MASKED_SUMS` (see `Profile`).

    `shared`: all rows of x are the same (all masks), so the model is evaluated once and only the truths differ.
    """
    if shared:
        return _shared_sums(model, x[:1], x0, t[:1])
    kernel = model.process.kernel
    assert isinstance(kernel, Absorbing)
    where = kernel.masked(x)
    rows_of, sums = where.nonzero()[:, 0], torch.zeros(len(x), len(MASKED_SUMS), dtype=torch.float64)
    truth, alpha = x0[where], model.process.noise.alpha(t)
    for block, logs in row_blocks(model, x, t, where, cond):
        owner = rows_of[block]
        logs = _log_posterior(model, logs, alpha[owner])
        log_mass, mass, raw = _mass_and_entropy(logs)
        cross = log_mass - logs.gather(-1, truth[block].to(logs.device)[:, None]).squeeze(-1)
        columns = torch.stack([torch.ones_like(mass), raw / mass + log_mass, cross, mass, raw], -1)
        sums.index_add_(0, owner, columns.to("cpu", torch.float64))
    return sums.numpy()


def _shared_sums(
    model: Model, x: Int[Tensor, "1 length"], x0: Int[Tensor, "b length"], t: Float[Tensor, " 1"]
) -> Float[np.ndarray, "b 5"]:
    sums = torch.zeros(len(x0), len(MASKED_SUMS), dtype=torch.float64)
    alpha = model.process.noise.alpha(t)
    for block, logs in row_blocks(model, x, t, torch.ones_like(x, dtype=torch.bool)):
        logs = _log_posterior(model, logs, alpha.expand(len(logs)))
        log_mass, mass, raw = _mass_and_entropy(logs)
        position = torch.arange(block.start, block.stop) - block.start
        cross = log_mass - logs[position, x0[:, block].to(logs.device)]
        same = torch.stack([torch.ones_like(mass), raw / mass + log_mass, torch.zeros_like(mass), mass, raw], -1)
        sums += same.sum(0).to("cpu", torch.float64)
        sums[:, MASKED_SUMS.index("cross")] += cross.sum(1).to("cpu", torch.float64)
    return sums.numpy()


def _log_posterior(model: Model, logs: Float[Tensor, "n size"], alpha: Float[Tensor, " n"]) -> Float[Tensor, "n size"]:
    """A model's rows at masked tokens as ln q, not normalised: for scores ln q = ln s + ln((1-α)/α)."""
    assert isinstance(model.process.kernel, Absorbing)
    logs = logs.masked_fill(model.process.kernel.excluded.to(logs.device), -torch.inf)
    return logs + torch.log((1 - alpha) / alpha)[:, None].to(logs) if model.predicts == "score" else logs


def _mass_and_entropy(logs: Float[Tensor, "n size"]) -> tuple[Tensor, Tensor, Tensor]:
    """ln Σ q, Σ q and -Σ q ln q of each row."""
    log_mass = logs.logsumexp(-1)
    raw = torch.special.entr(logs.exp()).sum(-1)
    return log_mass, log_mass.exp(), raw


def positions_measured(model: Model, free: int) -> int:
    """How many positions of a sequence a kernel without mask can afford to look at in one evaluation."""
    affordable = PAIR_ELEMENTS // (model.process.kernel.size * len(STEP_SHARES))
    return min(free, max(16, affordable))


def pair_sums(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    where: Bool[Tensor, "b length"],
    t: float,
    cond: Tensor | None = None,
) -> Float[np.ndarray, "b n"]:
    """Σ over each sequence's positions `where` of the slope, the `RATES` (both per unit σ) and the `PAIR_SUMS`.

    The columns are slope, rates, then each pair sum at every step share; `unpack_pair_sums` names them.
    """
    process, kernel = model.process, model.process.kernel
    rows_of, tokens, truth = where.nonzero()[:, 0], x[where], x0[where]
    sums = torch.zeros(len(x), 1 + len(RATES) + len(PAIR_SUMS) * len(STEP_SHARES), dtype=torch.float64)
    beta, alpha_t = process.noise.beta(t), process.noise.alpha(t)
    angle = torch.arccos(alpha_t.sqrt())
    for block, logs in row_blocks(model, x, torch.full((len(x),), t, dtype=torch.float64), where, cond):
        token = tokens[block]
        at_t = torch.full(token.shape, t, dtype=torch.float64)
        posterior = posterior_rows(model, logs, token, at_t, normalise=True)
        given_truth = one_hot(truth[block], kernel.size)
        score = kernel.score(posterior, token, alpha_t.expand(token.shape))
        columns = [entropy_slope(process, score, token, at_t) / beta]
        columns += [rate / beta for rate in pointwise_rates(process, posterior, token, at_t)]
        pair_columns: list[list[Tensor]] = [[] for _ in PAIR_SUMS]
        for share in STEP_SHARES:
            alpha_s = torch.cos(angle * (1 - share)) ** 2 if share < 1 else torch.tensor(1.0, dtype=torch.float64)
            a_t, a_s = alpha_t.expand(token.shape), alpha_s.expand(token.shape)
            channel = kernel.channel(token, a_t / a_s)
            ratio = kernel.ratio(posterior, token, a_t, a_s)
            log_ratio = torch.where(ratio > 0, ratio, 1.0).log()
            exact = channel * ratio
            true_law = channel * kernel.ratio(given_truth, token, a_t, a_s)
            pair_columns[0].append(-(exact * log_ratio).sum(-1))
            # where the truth has weight but the model has none the cross-entropy is infinite
            pair_columns[1].append(-torch.where(true_law > 0, true_law * ratio.log(), 0.0).sum(-1))
            at_s = process.noise.time_of_alpha(a_s)
            for column, law in ((2, "euler"), (3, "poisson")):
                drawn = _drawn(model, law, posterior, token, at_t, at_s)  # type: ignore[arg-type]
                divergence = torch.where(exact > 1e-300, exact * (exact / drawn).log(), 0.0).sum(-1)
                pair_columns[column].append(divergence.clamp(min=0.0))
        stacked = torch.stack([*columns, *(column for group in pair_columns for column in group)], -1)
        sums.index_add_(0, rows_of[block], stacked)
    return sums.numpy()


def _drawn(model: Model, law: Law, posterior: Tensor, x: Tensor, t: Tensor, s: Tensor) -> Tensor:
    return clip_law(token_law(model.process, law, posterior, x, t, s, t, s))[0]


def unpack_pair_sums(sums: Float[np.ndarray, "... n"]) -> dict[str, Float[np.ndarray, "..."]]:
    """The columns of `pair_sums` by name."""
    rates_end = 1 + len(RATES)
    pairs = sums[..., rates_end:].reshape(*sums.shape[:-1], len(PAIR_SUMS), len(STEP_SHARES))
    named = {name: pairs[..., k, :] for k, name in enumerate(PAIR_SUMS)}
    return {"slope": sums[..., 0], "rates": sums[..., 1:rates_end], **named}
