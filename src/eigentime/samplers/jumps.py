"""Numbers of jumps: tauLDR's way to leap, every value with a Poisson number of jumps to it."""

import math

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import poisson
from torch import Tensor

from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows, Tokens, column
from eigentime.process.process import Process
from eigentime.process.randomness import Purpose
from eigentime.samplers.run import Answer, Run
from eigentime.samplers.state import Draws, State

MOST_MEAN = 1000.0
"""Jumps to one value: more of them lead beyond the range of values all the same."""
LEAST_CHANCE = 2.0**-54
"""Of a uniform that is not zero: numbers of jumps that are rarer are never drawn."""


def jump_rates(process: Process, posterior: Rows, x: Tokens, t: float, forward: bool = False) -> Rows:
    """R̄(x → y), with `forward` plus R(x → y); zero at y = x."""
    at = torch.tensor(t, dtype=torch.float64)
    rates = process.reverse_rates(posterior, x, at)
    if forward:
        out = process.kernel.rates_out(x, process.noise.alpha(at), rates)
        rates = rates + column(process.noise.beta(at), rates) * out
    return rates.clamp(min=0.0)


def single_jump(x: Tokens, mean: Rows, u: Float[Tensor, " n"]) -> Tokens:
    """Where tokens are that jump once; one that would jump more often does not jump.

    Of independent Poisson numbers with means μ_y exactly one is 1 and all others 0 with probability M·e^{-M},
    M = Σ_y μ_y, and it is that of y with probability μ_y/M: one uniform decides both.
    """
    total = mean.sum(-1)
    drawn = draw(mean, u, total * torch.exp(-total))
    return torch.where(drawn < 0, x.to(drawn.device), drawn)


class SummedJumps:
    """Values that are ordered: the jumps to all of them add up. Counts need the largest mean, which is looked at once
    for every call of the network; so its blocks wait until all of them are there."""

    def __init__(self, run: Run, state: State, draws: Draws, purpose: Purpose, stream: int) -> None:
        self.draws, self.numbers = draws, (run, state, purpose, stream)
        self.waiting: list[tuple[Answer, Rows]] = []

    def add(self, answer: Answer, mean: Rows) -> None:
        """One block with the mean number of jumps to every value."""
        self.waiting.append((answer, mean))
        if answer.last:
            largest = torch.stack([rows.max() for _, rows in self.waiting]).max().item()
            waiting, self.waiting = self.waiting, []
            if not math.isfinite(largest):
                return  # what is no number is refused where all rows are looked at, in a moment
            most = _most_jumps(min(largest, MOST_MEAN))
            for block, rows in waiting:
                place, numbers = (block.sequence, block.position), self._uniforms(block, rows.shape[-1])
                counts = poisson_counts(rows.clamp(max=MOST_MEAN), numbers, most)
                self.draws.put(*place, after_jumps(block.tokens, counts))

    def _uniforms(self, answer: Answer, size: int) -> Rows:
        """One for every value: a function of sequence, position and value."""
        run, state, purpose, stream = self.numbers
        first = int(answer.sequence.min())
        count, length = int(answer.sequence.max()) - first + 1, state.tokens.shape[1]
        u = run.some_uniforms(purpose, first, count, length * size, stream)
        return u.reshape(count, length, size)[answer.sequence - first, answer.position]


def poisson_counts(mean: Rows, u: Rows, most: int) -> Rows:
    """The smallest k with P(N ≤ k) ≥ u, by inverse CDF: as many as there are k ≥ 1 with P(N ≥ k) > 1 - u.

    In single precision the tails are summed where the means are, smallest terms first.
    """
    if mean.dtype == torch.float64:
        return torch.from_numpy(np.asarray(poisson.ppf(u.numpy(), mean.numpy())))
    above, counts, tail = (1 - u).to(mean), torch.zeros_like(mean), torch.zeros_like(mean)
    log_mean = mean.log()
    for k in range(most, 0, -1):
        tail += torch.exp(k * log_mean - mean - math.lgamma(k + 1))
        counts += tail > above
    return counts


def _most_jumps(mean: float) -> int:
    """A number of jumps that is never exceeded: P(N > k) lies below the least chance."""
    k = math.ceil(mean)
    while poisson.sf(k, mean) > LEAST_CHANCE:
        k += 1
    return k


def after_jumps(x: Tokens, jumps: Float[Tensor, "... size"]) -> Tokens:
    """Where the jumps of ordered values lead: by their sum, clamped to the range."""
    size, x = jumps.shape[-1], x.to(jumps.device)
    leaps = torch.arange(size, device=jumps.device) - x[..., None]
    return (x + (jumps * leaps).sum(-1).round().long()).clamp(0, size - 1)
