"""One evaluation of a masked model turned into numbers per token: all that measuring asks of the network."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.models.base import Model
from eigentime.process.absorbing import Absorbing

MASKED_SUMS = ("masked", "entropy", "cross", "mass", "raw")


def masked_sums(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    t: Float[Tensor, " b"],
    cond: Tensor | None = None,
    shared: bool = False,
) -> Float[np.ndarray, "b 5"]:
    """Σ over each sequence's masked tokens of the `MASKED_SUMS` (see `Profile`)."""
    return masked_values(model, x, x0, t, cond, shared).sum(1)


def masked_values(
    model: Model,
    x: Int[Tensor, "b length"],
    x0: Int[Tensor, "b length"],
    t: Float[Tensor, " b"],
    cond: Tensor | None = None,
    shared: bool = False,
) -> Float[np.ndarray, "b length 5"]:
    """The `MASKED_SUMS` of every single token, zero where it is not masked.

    `shared`: all rows of x are the same (all masks), so the model is evaluated once and only the truths differ.
    """
    if shared:
        return _shared_values(model, x[:1], x0, t[:1])
    kernel = model.process.kernel
    assert isinstance(kernel, Absorbing)
    where = kernel.masked(x)
    sequence, position = where.nonzero(as_tuple=True)
    values = torch.zeros(*x.shape, len(MASKED_SUMS), dtype=torch.float64)
    truth, alpha, found = x0[where], model.process.noise.alpha(t), []
    for block, logs in model.evaluate(x, t, where, cond).blocks():
        logs = _log_posterior(model, logs, alpha[sequence[block]])
        log_mass, mass, raw = _mass_and_entropy(logs, kernel)
        cross = log_mass - logs.gather(-1, truth[block].to(logs.device)[:, None]).squeeze(-1)
        found.append(torch.stack([torch.ones_like(mass), raw / mass + log_mass, cross, mass, raw], -1))
    if found:
        values[sequence, position] = torch.cat(found).cpu().double()
    return values.numpy()


def _shared_values(
    model: Model, x: Int[Tensor, "1 length"], x0: Int[Tensor, "b length"], t: Float[Tensor, " 1"]
) -> Float[np.ndarray, "b length 5"]:
    kernel, values = model.process.kernel, torch.zeros(*x0.shape, len(MASKED_SUMS), dtype=torch.float64)
    assert isinstance(kernel, Absorbing)
    alpha = model.process.noise.alpha(t)
    for block, logs in model.evaluate(x, t, torch.ones_like(x, dtype=torch.bool)).blocks():
        logs = _log_posterior(model, logs, alpha.expand(len(logs)))
        log_mass, mass, raw = _mass_and_entropy(logs, kernel)
        position = torch.arange(block.start, block.stop) - block.start
        cross = log_mass - logs[position, x0[:, block].to(logs.device)]
        same = torch.stack([torch.ones_like(mass), raw / mass + log_mass, torch.zeros_like(mass), mass, raw], -1)
        values[:, block] = same.cpu().double()
        values[:, block, MASKED_SUMS.index("cross")] = cross.cpu().double()
    return values.numpy()


def _log_posterior(model: Model, logs: Float[Tensor, "n size"], alpha: Float[Tensor, " n"]) -> Float[Tensor, "n size"]:
    """A model's rows at masked tokens as ln q, not normalised: for scores ln q = ln s + ln((1-α)/α)."""
    return logs + torch.log((1 - alpha) / alpha)[:, None].to(logs) if model.predicts == "score" else logs


def _mass_and_entropy(logs: Float[Tensor, "n size"], kernel: Absorbing) -> tuple[Tensor, Tensor, Tensor]:
    """ln Σ q, Σ q and -Σ q ln q of each row, over the values that data can hold."""
    q = logs.exp()
    q[:, kernel.excluded.to(q.device)] = 0.0
    mass = q.sum(-1)
    raw = -q.mul_(logs.clamp(min=-1e30)).sum(-1)
    return mass.log(), mass, raw
