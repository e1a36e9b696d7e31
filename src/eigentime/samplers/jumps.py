"""Numbers of jumps: tauLDR's way to leap, every value with a Poisson number of jumps to it."""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.stats import poisson
from torch import Tensor

from eigentime.process.kernel import Rows, Tokens, column
from eigentime.process.process import Process
from eigentime.process.randomness import Purpose, uniforms

LEAST_CHANCE = 2.0**-54
"""Of a uniform that is not zero: numbers of jumps that are rarer are never drawn."""


def jump_rates(process: Process, posterior: Rows, x: Tokens, t: float, forward: bool = False) -> Rows:
    """R̄(x → y), with `forward` plus R(x → y); zero at y = x."""
    at = torch.tensor(t, dtype=torch.float64)
    rates = process.reverse_rates(posterior, x, at)
    if forward:
        rates = rates + column(process.noise.beta(at), rates) * process.kernel.rates_out(x, rates)
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
    return poisson_counts(mean, u.reshape(count, length, size)[sequence - first, position])


def poisson_counts(mean: Rows, u: Rows) -> Rows:
    """The smallest k with P(N ≤ k) ≥ u, by inverse CDF: as many as there are k ≥ 1 with P(N ≥ k) > 1 - u.

    In single precision the tails are summed where the means are, smallest terms first, after one look at the largest
    mean.
    """
    if mean.dtype == torch.float64:
        return torch.from_numpy(np.asarray(poisson.ppf(u.numpy(), mean.numpy())))
    above, counts, tail = (1 - u).to(mean), torch.zeros_like(mean), torch.zeros_like(mean)
    log_mean = mean.log()
    for k in range(_most_jumps(mean.max().item() if mean.numel() else 0.0), 0, -1):
        tail += torch.exp(k * log_mean - mean - math.lgamma(k + 1))
        counts += tail > above
    return counts


def _most_jumps(mean: float) -> int:
    """A number of jumps that is never exceeded: P(N > k) lies below the least chance."""
    k = math.ceil(mean)
    while poisson.sf(k, mean) > LEAST_CHANCE:
        k += 1
    return k


def after_jumps(x: Tokens, jumps: Float[Tensor, "... size"], ordinal: bool) -> Tokens:
    """Where the jumps lead: for ordered values by their sum, clamped to the range; else there where the only one goes,
    and a token that would jump more than once does not."""
    size, x = jumps.shape[-1], x.to(jumps.device)
    leaps = torch.arange(size, device=jumps.device) - x[..., None]
    moved = (x + (jumps * leaps).sum(-1).round().long()).clamp(0, size - 1)
    return moved if ordinal else torch.where(jumps.sum(-1) > 1, x, moved)
