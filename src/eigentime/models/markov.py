"""Markov chains of any order and length, exact by forward–backward: countdown, n-grams of text or music."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.arguments import checked, whole
from eigentime.errors import EigentimeError
from eigentime.models.oracle import Oracle, as_numbers, checked_law
from eigentime.process import Process
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms

OFF_SUPPORT = 1e-9
"""Weight of the uniform law mixed into the chain: a sampled sequence can leave the chain's support, where the strict
posterior is undefined."""
MESSAGE_ELEMENTS = 2**24
RESCALE_EVERY = 8


class MarkovChain(Oracle):
    """The exact model of an order-r chain.

    `initial` has shape (N,)*r, the joint law of the first r tokens; `transition` has shape (N,)*(r+1), the last axis
    being the next token. With e_i the emissions, the messages over the last r tokens are
        F_{i+1}(s, c) = Σ_a F_i(a, s)·T(a, s, c)·e_{i+1}(c),   B_i(a, s) = Σ_c T(a, s, c)·e_{i+1}(c)·B_{i+1}(s, c),
    and P(x0_i | everything) is the marginal of F_i·B_i.
    """

    @checked(length=whole(1))
    def __init__(
        self,
        initial: np.ndarray | Tensor,
        transition: np.ndarray | Tensor,
        length: int,
        process: Process,
        name: str = "markov-chain",
    ) -> None:
        transition = checked_law(transition, "The transition law")
        initial = as_numbers(initial, "The initial law")
        order, n = transition.ndim - 1, transition.shape[-1]
        if order < 1 or tuple(transition.shape) != (n,) * (order + 1) or tuple(initial.shape) != (n,) * order:
            raise EigentimeError(
                f"MarkovChain of order r needs initial (N,)*r and transition (N,)*(r+1), "
                f"not {tuple(initial.shape)} and {tuple(transition.shape)}."
            )
        if length < order:
            raise EigentimeError(f"A chain of order {order} needs a length of at least {order}, not {length}.")
        super().__init__(name, process, length, n)
        self.order, self.n, self.states = order, n, n**order
        self.initial = checked_law(initial.flatten(), "The initial law")
        self.transition = transition.reshape(self.states, n)
        mixed = (1 - OFF_SUPPORT) * transition.reshape(n, -1, n) + OFF_SUPPORT / n
        self._mixed = mixed.transpose(0, 1).contiguous()  # (s, a, c): one matrix for every overlap s

    def _step(self, law: Float[Tensor, "... states"]) -> Float[Tensor, "... states"]:
        """The law of the last r tokens, one token later."""
        joint = (law[..., None] * self.transition).unflatten(-2, (self.n, -1))
        later: Tensor = joint.sum(-3).flatten(-2)
        return later

    @property
    def entropy(self) -> float:
        law = self.initial
        total = -torch.xlogy(law, law).sum()
        per_state = -torch.xlogy(self.transition, self.transition).sum(-1)
        for _ in range(self.length - self.order):
            total += law @ per_state
            law = self._step(law)
        return total.item()

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p_0(x) of clean sequences, with the little mixing that keeps what the chain forbids finite."""
        index = torch.searchsorted(self.process.kernel.values, x)
        places = self.n ** torch.arange(self.order - 1, -1, -1)
        total = torch.log((1 - OFF_SUPPORT) * self.initial + OFF_SUPPORT / self.states)[
            (index[:, : self.order] * places).sum(1)
        ]
        logs = torch.log((1 - OFF_SUPPORT) * self.transition + OFF_SUPPORT / self.n)
        for i in range(self.order, self.length):
            total = total + logs[(index[:, i - self.order : i] * places).sum(1), index[:, i]]
        return total

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        u = uniforms(seed, Purpose.DATA, count, self.length)
        state = draw(self.initial.expand(count, -1), u[:, self.order - 1])
        digits = [state // self.n ** (self.order - 1 - i) % self.n for i in range(self.order)]
        for i in range(self.order, self.length):
            digits.append(draw(self.transition[state], u[:, i]))
            state = (state * self.n + digits[-1]) % self.states
        return self.process.kernel.values[torch.stack(digits, 1)]

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        batch = max(1, MESSAGE_ELEMENTS // (self.length * self.states))
        return torch.cat([self._marginals(part) for part in emissions.split(batch)])

    def _marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        n, order = self.n, self.order
        e = emissions.transpose(0, 1).contiguous()  # (length, b, n)
        b = e.shape[1]

        first = ((1 - OFF_SUPPORT) * self.initial + OFF_SUPPORT / self.states).expand(b, -1).clone()
        for i in range(order):
            first = (first.view(b, n**i, n, -1) * e[i].view(b, 1, n, 1)).view(b, -1)
        forward = torch.empty(self.length - order + 1, b, self.states, dtype=torch.float64)
        forward[0] = first / first.sum(-1, keepdim=True)
        for i in range(order, self.length):
            message = self._next(forward[i - order]).view(b, -1, n) * e[i].view(b, 1, n)
            forward[i - order + 1] = self._rescaled(message.view(b, -1), i)

        result = torch.empty_like(e)
        backward = torch.ones(b, self.states, dtype=torch.float64)
        for i in range(self.length - 1, order - 1, -1):
            torch.sum((forward[i - order + 1] * backward).view(b, -1, n), 1, out=result[i])
            weighted = (backward.view(b, -1, n) * e[i].view(b, 1, n)).view(b, -1)
            backward = self._rescaled(self._previous(weighted), i)
        joint = forward[0] * backward
        for i in range(order):
            result[i] = joint.view(b, n**i, n, -1).sum((1, 3))
        return (result / result.sum(-1, keepdim=True)).transpose(0, 1)

    def _next(self, message: Float[Tensor, "b states"]) -> Float[Tensor, "b states"]:
        """Σ_a M(a, s)·T(a, s, c) over the last r tokens (s, c)."""
        if self.order == 1:
            return message @ self._mixed[0]
        by_tail = message.view(len(message), self.n, -1).permute(2, 0, 1)  # (s, b, a)
        return torch.bmm(by_tail, self._mixed).permute(1, 0, 2).reshape(len(message), -1)

    def _previous(self, message: Float[Tensor, "b states"]) -> Float[Tensor, "b states"]:
        """Σ_c T(a, s, c)·M(s, c) over the last r tokens (a, s)."""
        if self.order == 1:
            return message @ self._mixed[0].T
        by_tail = message.view(len(message), -1, self.n).permute(1, 0, 2)  # (s, b, c)
        return torch.bmm(by_tail, self._mixed.transpose(1, 2)).permute(1, 2, 0).reshape(len(message), -1)

    @staticmethod
    def _rescaled(message: Float[Tensor, "b states"], i: int) -> Float[Tensor, "b states"]:
        """Now and then bring messages back to sum one: within so few steps nothing underflows."""
        return message / message.sum(-1, keepdim=True) if i % RESCALE_EVERY == 0 else message
