"""A table over all sequences: the smallest worlds, where everything can be enumerated."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.oracle import Oracle, as_numbers, checked_law
from eigentime.process import Process
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms


class Table(Oracle):
    """The exact model of p0, an array of shape (N,)*L that holds the probability of every sequence."""

    def __init__(self, p0: np.ndarray | Tensor, process: Process, name: str = "table") -> None:
        p0 = as_numbers(p0, "The table p0")
        if p0.ndim == 0 or len(set(p0.shape)) != 1:
            raise EigentimeError(f"Table needs an array of shape (N,)*L, not {tuple(p0.shape)}.")
        super().__init__(name, process, p0.ndim, p0.shape[0])
        self.law = checked_law(p0.flatten(), "The table p0")
        self.sequences = torch.cartesian_prod(*[torch.arange(p0.shape[0])] * p0.ndim).reshape(-1, p0.ndim)
        """Every sequence as indices of data values, in the order of `law`."""

    @property
    def entropy(self) -> float:
        return -torch.xlogy(self.law, self.law).sum().item()

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        index, base = torch.searchsorted(self.process.kernel.values, x), round(len(self.law) ** (1 / self.length))
        return self.law[(index * base ** torch.arange(self.length - 1, -1, -1)).sum(1)].log()

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        u = uniforms(seed, Purpose.DATA, count, 1).squeeze(1)
        return self.process.kernel.values[self.sequences[draw(self.law.expand(count, -1), u)]]

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        weights = self.law.expand(len(emissions), -1).clone()
        for i in range(self.length):
            weights *= emissions[:, i, self.sequences[:, i]]
        result = torch.zeros_like(emissions)
        for i in range(self.length):
            result[:, i].index_add_(1, self.sequences[:, i], weights)
        return result / result.sum(-1, keepdim=True)
