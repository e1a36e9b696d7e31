"""Numbers of jumps: tauLDR's way to leap, every value with a Poisson number of jumps to it."""

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.stats import poisson
from torch import Tensor

from eigentime.process.kernel import Rows, Tokens
from eigentime.process.process import Process
from eigentime.process.randomness import Purpose, uniforms


def jump_rates(process: Process, posterior: Rows, x: Tokens, t: float, forward: bool = False) -> Rows:
    """R̄(x → y), with `forward` plus R(x → y); zero at y = x."""
    at = torch.full(x.shape, t, dtype=torch.float64)
    score = process.kernel.score(posterior, x, process.noise.alpha(at))
    rates = process.reverse_rates(score, x, at)
    if forward:
        rates = rates + process.noise.beta(at)[..., None] * process.kernel.rates_out(x)
    return rates.clamp(min=0.0)


def poisson_jumps(
    mean: Rows,
    sequence: Int[Tensor, " rows"],
    position: Int[Tensor, " rows"],
    length: int,
    *,
    seed: int,
    purpose: Purpose,
    stream: int,
) -> Float[Tensor, "rows size"]:
    """How often each token jumps to each value; uniforms are a function of sequence, position and value."""
    size, first = mean.shape[-1], int(sequence.min())
    count = int(sequence.max()) - first + 1
    u = uniforms(seed, purpose, count, length * size, step=stream, first=first)
    u = u.reshape(count, length, size)[sequence - first, position]
    return torch.from_numpy(np.asarray(poisson.ppf(u.numpy(), mean.numpy())))


def after_jumps(x: Tokens, jumps: Float[Tensor, "... size"], ordinal: bool) -> Tokens:
    """Where the jumps lead: for ordered values by their sum, clamped to the range; else there where the only one goes,
    and a token that would jump more than once does not."""
    size = jumps.shape[-1]
    moved = (x + (jumps * (torch.arange(size) - x[..., None])).sum(-1).long()).clamp(0, size - 1)
    return moved if ordinal else torch.where(jumps.sum(-1) > 1, x, moved)
