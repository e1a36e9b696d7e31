"""The uniform kernel: a token is redrawn from all N values at rate 1."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.kernel import Alphas, DenseKernel, Rows, Tokens, one_hot


class Uniform(DenseKernel):
    """Kept with probability α, else uniform over the N values (the old one included).

    Off the diagonal Q = 1/N, as in SEDD; the paper's figure without the 1/N only rescales time.
    """

    name = "uniform"
    reversible = True

    def __init__(self, size: int) -> None:
        if size < 2:
            raise EigentimeError(f"Uniform needs at least two values, not size {size}.")
        self.size = int(size)

    @property
    def stationary(self) -> Float[Tensor, " size"]:
        return torch.full((self.size,), 1 / self.size, dtype=torch.float64)

    @property
    def gap(self) -> float:
        return 1.0

    def likelihood(self, x: Tokens, alpha: Alphas) -> Rows:
        return self.forward_law(x, alpha)

    def forward_law(self, x: Tokens, alpha: Alphas) -> Rows:
        alpha = alpha[..., None]
        return alpha * one_hot(x, self.size) + (1 - alpha) / self.size

    def channel(self, x: Tokens, alpha: Alphas) -> Rows:
        return self.forward_law(x, alpha)

    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        alpha = alpha[..., None]
        return alpha * quotient + (1 - alpha) / self.size * quotient.sum(-1, keepdim=True)

    def posterior(self, score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        spread = (1 - alpha[..., None]) / self.size * score.sum(-1, keepdim=True)
        return (score - spread) / alpha[..., None] * self.likelihood(x, alpha)

    def rates_into(self, x: Tokens) -> Rows:
        return (1 - one_hot(x, self.size)) / self.size

    def rates_out(self, x: Tokens) -> Rows:
        return self.rates_into(x)

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "gap": self.gap}
