"""Independent tokens: the binomial of the paper's first figure, and any product law."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.oracle import Oracle, checked_law
from eigentime.process import Process
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms


class Independent(Oracle):
    """The exact model of tokens drawn independently, p of shape (N,) for one token or (L, N)."""

    def __init__(self, p: np.ndarray | Tensor, process: Process, name: str = "independent") -> None:
        laws = checked_law(p, "The token laws p")
        laws = laws[None] if laws.ndim == 1 else laws
        if laws.ndim != 2 or not len(laws):
            raise EigentimeError(f"The token laws p have the shape (N,) or (L, N), not {tuple(laws.shape)}.")
        super().__init__(name, process, len(laws), laws.shape[1])
        self.laws = laws

    @property
    def entropy(self) -> float:
        return -torch.xlogy(self.laws, self.laws).sum().item()

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        index = torch.searchsorted(self.process.kernel.values, x)
        return self.laws.log().expand(len(x), -1, -1).gather(-1, index[..., None]).sum((1, 2))

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        u = uniforms(seed, Purpose.DATA, count, self.length)
        return self.process.kernel.values[draw(self.laws.expand(count, -1, -1), u)]

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        weights = emissions * self.laws
        return weights / weights.sum(-1, keepdim=True)
