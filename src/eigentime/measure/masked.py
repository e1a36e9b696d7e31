"""One evaluation of a masked model turned into numbers per token: all that measuring asks of the network."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models.base import Model

CACHED_ELEMENTS = 2**19
MASKED_SUMS = ("masked", "entropy", "cross", "mass", "raw")
"""What is added up over masked tokens."""


def masked_sums(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    t: Float[Tensor, " b"],
    cond: Tensor | None = None,
    shared: bool = False,
    chosen: Bool[Tensor, "b length"] | None = None,
) -> Float[np.ndarray, "b 5"]:
    """Σ over each sequence's masked tokens of the `MASKED_SUMS` (see `Profile`). Where only some of them are `chosen`,
    at random, their sum stands for all: an estimate without bias."""
    sums: np.ndarray = masked_values(model, x, x0, t, cond, shared, chosen).sum(1)
    if chosen is None or shared:
        return sums
    masked = model.process.kernel.active(x).sum(1).numpy()
    return np.asarray(sums * (masked / np.maximum(sums[:, 0], 1))[:, None])


def masked_values(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    t: Float[Tensor, " b"],
    cond: Tensor | None = None,
    shared: bool = False,
    chosen: Bool[Tensor, "b length"] | None = None,
) -> Float[np.ndarray, "b length 5"]:
    """The `MASKED_SUMS` of every single token, zero where it is not masked or not `chosen`.

    `shared`: all rows of x are the same (all masks), so the model is evaluated once and only the truths differ.
    """
    if shared:
        return _shared_values(model, x[:1], x0, t[:1])
    where = model.process.kernel.active(x)
    where = where if chosen is None else where & chosen
    sequence, position = where.nonzero(as_tuple=True)
    values = torch.zeros(*x.shape, len(MASKED_SUMS), dtype=torch.float64)
    truth, alpha, found = x0[where], model.process.noise.alpha(t), []
    for piece, logs in model.evaluate(x, t, where, cond).pieces():
        logs = log_posterior_rows(model, logs, alpha[sequence[piece]])
        entropy, log_mass, mass, raw = mass_and_entropy(logs, model)
        cross = log_mass - logs.gather(-1, truth[piece].to(logs.device)[:, None]).squeeze(-1)
        found.append(torch.stack([torch.ones_like(mass), entropy, cross, mass, raw], -1))
    if found:
        values[sequence, position] = torch.cat(found).cpu().double()
    return values.numpy()


def _shared_values(
    model: Model, x: Int[Tensor, "1 length"], x0: Int[Tensor, "b length"], t: Float[Tensor, " 1"]
) -> Float[np.ndarray, "b length 5"]:
    values = torch.zeros(*x0.shape, len(MASKED_SUMS), dtype=torch.float64)
    alpha = model.process.noise.alpha(t)
    for piece, logs in model.evaluate(x, t, torch.ones_like(x, dtype=torch.bool)).pieces():
        logs = log_posterior_rows(model, logs, alpha.expand(len(logs)))
        entropy, log_mass, mass, raw = mass_and_entropy(logs, model)
        position = torch.arange(piece.start, piece.stop) - piece.start
        cross = log_mass - logs[position, x0[:, piece].to(logs.device)]
        same = torch.stack([torch.ones_like(mass), entropy, torch.zeros_like(mass), mass, raw], -1)
        values[:, piece] = same.cpu().double()
        values[:, piece, MASKED_SUMS.index("cross")] = cross.cpu().double()
    return values.numpy()


def log_posterior_rows(
    model: Model, logs: Float[Tensor, "n size"], alpha: Float[Tensor, " n"]
) -> Float[Tensor, "n size"]:
    """A model's rows at masked tokens as ln q, not normalised: for scores ln q = ln s + ln((1-α)/α)."""
    return logs + torch.log((1 - alpha) / alpha)[:, None].to(logs) if model.predicts == "score" else logs


def mass_and_entropy(logs: Float[Tensor, "n size"], model: Model) -> list[Float[Tensor, " n"]]:
    """`_of_rows` for a few rows at a time on a CPU, whose cache they stay in: three times as fast."""
    few = max(1, CACHED_ELEMENTS // logs.shape[-1]) if logs.device.type == "cpu" else len(logs)
    return [torch.cat(parts) for parts in zip(*(_of_rows(rows, model) for rows in logs.split(few)), strict=True)]


def _of_rows(logs: Float[Tensor, "n size"], model: Model) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each row over the values that data can hold: the entropy of q/Σ q, ln Σ q, Σ q and -Σ q ln q.

    `logs` may lack a constant of each row, which the second contains then; a posterior's mass is 1 all the same.
    """
    shifted = model.process.kernel.forbid_(logs.clone())  # the mask's own score may be so large that it hides the rest
    top = shifted.amax(-1)
    shifted -= top[:, None]
    q = shifted.exp()
    mass = q.sum(-1)
    inner = q.mul_(shifted.clamp_(min=-1e30)).sum(-1)
    entropy, log_mass = mass.log() - inner / mass, top + mass.log()
    if model.predicts == "posterior":
        return entropy, log_mass, torch.ones_like(mass), entropy
    return entropy, log_mass, log_mass.exp(), -top.exp() * (inner + top * mass)
