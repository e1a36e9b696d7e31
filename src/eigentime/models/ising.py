"""The Ising model on a small grid, exact by transfer matrix: the two-dimensional companion of the chains."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.arguments import checked, number, whole
from eigentime.models.oracle import Oracle
from eigentime.process import Process
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms

MOST_COLUMNS, MOST_ROWS = 10, 4096
MOST_COUPLING = 30.0
"""Beyond, weights leave double precision."""


class Ising(Oracle):
    """p(x) ∝ exp(J Σ_{neighbours} s_i s_j), s = ±1 for token 1 and 0, open ends, tokens row by row.

    A row is one state of a Markov chain with W(a, b) = exp(J Σ_c a_c b_c) between rows and
    u(a) = exp(J Σ_c a_c a_{c+1}) within, so forward–backward over rows gives every posterior.
    """

    @checked(rows=whole(1, MOST_ROWS), columns=whole(1, MOST_COLUMNS), coupling=number(-MOST_COUPLING, MOST_COUPLING))
    def __init__(self, rows: int, columns: int, coupling: float, process: Process, name: str = "ising") -> None:
        super().__init__(name, process, rows * columns, 2)
        self.rows, self.columns, self.coupling = rows, columns, coupling
        every = torch.arange(2**columns)
        self.bits = torch.stack([(every >> (columns - 1 - c)) & 1 for c in range(columns)], 1)
        spins = 2.0 * self.bits.double() - 1
        self.within = torch.exp(coupling * (spins[:, 1:] * spins[:, :-1]).sum(1))
        self.between = torch.exp(coupling * spins @ spins.T)
        ahead = [torch.ones(2**columns, dtype=torch.float64)]
        self.log_partition = 0.0
        for _ in range(rows - 1):
            message = self.between @ (self.within * ahead[0])
            self.log_partition += message.sum().log().item()
            ahead.insert(0, message / message.sum())
        self.log_partition += (self.within * ahead[0]).sum().log().item()
        start = self.within * ahead[0]
        self.first = start / start.sum()
        joint = [self.between * (self.within * message) for message in ahead[1:]]
        self.steps = [weights / weights.sum(1, keepdim=True) for weights in joint]
        """P(row r+1 | row r) of every pair of neighbouring rows."""

    @property
    def entropy(self) -> float:
        law, total = self.first, -torch.xlogy(self.first, self.first).sum()
        for step in self.steps:
            total -= law @ torch.xlogy(step, step).sum(1)
            law = law @ step
        return total.item()

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        index = torch.searchsorted(self.process.kernel.values, x)
        spins = (2.0 * index.double() - 1).reshape(-1, self.rows, self.columns)
        pairs = (spins[:, 1:] * spins[:, :-1]).sum((1, 2)) + (spins[..., 1:] * spins[..., :-1]).sum((1, 2))
        return self.coupling * pairs - self.log_partition

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        u = uniforms(seed, Purpose.DATA, count, self.rows)
        states = [draw(self.first.expand(count, -1), u[:, 0])]
        for r, step in enumerate(self.steps):
            states.append(draw(step[states[-1]], u[:, r + 1]))
        return self.process.kernel.values[torch.cat([self.bits[state] for state in states], 1)]

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        rows = emissions.reshape(-1, self.rows, self.columns, 2)
        seen = torch.ones(len(rows), self.rows, 2**self.columns, dtype=torch.float64)
        for c in range(self.columns):
            seen *= rows[:, :, c, self.bits[:, c]]
        forward = [seen[:, 0] * self.within]
        for r in range(1, self.rows):
            message = (forward[-1] / forward[-1].sum(-1, keepdim=True)) @ self.between
            forward.append(message * seen[:, r] * self.within)
        backward, result = torch.ones_like(forward[0]), []
        one = self.bits.double()
        for r in range(self.rows - 1, -1, -1):
            state = forward[r] * backward
            up = (state / state.sum(-1, keepdim=True)) @ one
            result.append(torch.stack([1 - up, up], -1))
            message = (backward * seen[:, r] * self.within) @ self.between
            backward = message / message.sum(-1, keepdim=True)
        marginals = torch.cat(result[::-1], 1).clamp(0, 1).masked_fill(emissions == 0, 0.0)  # rounding may leave 1e-17
        return marginals / marginals.sum(-1, keepdim=True)
