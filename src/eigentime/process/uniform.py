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

    def prior(self, u: Float[Tensor, "..."]) -> Tokens:
        return (u * self.size).long()

    def likelihood(self, x: Tokens, alpha: Alphas) -> Rows:
        return self.forward_law(x, alpha)

    def forward_law(self, x: Tokens, alpha: Alphas) -> Rows:
        alpha = alpha[..., None]
        return alpha * one_hot(x, self.size) + (1 - alpha) / self.size

    def channel(self, x: Tokens, alpha: Alphas) -> Rows:
        return self.forward_law(x, alpha)

    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        kept, lost = alpha[..., None].to(quotient), ((1 - alpha) / self.size)[..., None].to(quotient)
        return kept * quotient + lost * quotient.sum(-1, keepdim=True)

    def score_entropy(self, log_score: Rows, x0: Tokens, x: Tokens, alpha: Alphas) -> Float[Tensor, "..."]:
        """With a = α + (1-α)/N and b = (1-α)/N, r is b/a everywhere if x = x0; else it is a/b at x0 and 1 elsewhere."""
        unlikely = (1 - alpha) / self.size
        odds, same = (unlikely / (alpha + unlikely)).to(log_score), (x == x0).to(log_score.device)
        elsewhere = torch.where(same, odds, 1.0)

        def terms(logs: Tensor, ratio: Tensor) -> Tensor:
            apart = logs - ratio.log()
            return ratio * (apart.expm1() - apart)

        at_x0 = log_score.gather(-1, x0.to(log_score.device)[..., None]).squeeze(-1)
        total = terms(log_score, elsewhere[..., None]).scatter(-1, x.to(log_score.device)[..., None], 0.0).sum(-1)
        moved = terms(at_x0, 1 / odds) - terms(at_x0, elsewhere)
        return (total + torch.where(same, 0.0, moved)) / self.size

    def posterior(self, score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        score = score.to("cpu", torch.float64)
        spread = (1 - alpha[..., None]) / self.size * score.sum(-1, keepdim=True)
        return (score - spread) / alpha[..., None] * self.likelihood(x, alpha)

    def rates_into(self, x: Tokens) -> Rows:
        return (1 - one_hot(x, self.size)) / self.size

    def rates_out(self, x: Tokens) -> Rows:
        return self.rates_into(x)

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "gap": self.gap}
