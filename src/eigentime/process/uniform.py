"""The uniform kernel: a token is redrawn from all N values at rate 1."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.arguments import checked, whole
from eigentime.process.kernel import DATA, DOUBLE, Alphas, Arrays, DenseKernel, Rows, Tokens, column, one_hot


class Uniform(DenseKernel):
    """Kept with probability α, else uniform over the N values (the old one included).

    Off the diagonal Q = 1/N, as in SEDD; the paper's figure without the 1/N only rescales time.
    """

    name = "uniform"
    reversible = True

    @checked(size=whole(2))
    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def stationary(self) -> Float[Tensor, " size"]:
        return torch.full((self.size,), 1 / self.size, dtype=torch.float64)

    @property
    def gap(self) -> float:
        return 1.0

    def prior(self, u: Float[Tensor, "..."], alpha: float) -> Tokens:
        return (u * self.size).long()

    def corrupt(self, x0: Tokens, alpha: Alphas, jump: Float[Tensor, "..."], replace: Float[Tensor, "..."]) -> Tokens:
        return torch.where(jump < alpha, x0, (replace * self.size).long())

    def carry(self, x: Tokens, alpha: Alphas, u: Float[Tensor, "..."], since: Alphas = DATA) -> Tokens:
        """Given u ≥ α, (u-α)/(1-α) is uniform."""
        alpha = alpha / since
        redrawn = ((u - alpha) / (1 - alpha).clamp(min=1e-300) * self.size).long()
        return torch.where(u < alpha, x, redrawn.clamp(0, self.size - 1))

    def channel_entropy(
        self, alpha_s: Alphas, alpha_t: Alphas, marginal: Float[Tensor, " size"] | None = None
    ) -> float:
        """The same whatever the token was."""
        return self._entropies(alpha_s, alpha_t)[0].item()

    def likelihood(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return self.forward_law(x, alpha, like)

    def forward_law(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        alpha = alpha / since
        return column(alpha, like) * one_hot(x, self.size, like) + column((1 - alpha) / self.size, like)

    def channel(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        return self.forward_law(x, alpha, like, since)

    def with_evidence(self, logs: Rows, x: Tokens, sigma: Float[Tensor, "..."]) -> Rows:
        """The token itself is 1 + N/(e^σ - 1) times as likely as any other."""
        odds = torch.log1p(self.size / torch.expm1(sigma))
        return logs.scatter_add(-1, x[..., None], odds[..., None].to(logs))

    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        lost = column((1 - alpha) / self.size, quotient) * quotient.sum(-1, keepdim=True)
        return column(alpha, quotient) * quotient + lost

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

    def posterior_of_scores(self, log_score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """(s - (1-α)·mean s)/α, times the likelihood; in terms of s - 1, which is small where noise is high."""
        above = torch.expm1(log_score)
        kept = above - column(1 - alpha, above) * above.mean(-1, keepdim=True)
        return (1 + kept / column(alpha, above)) * self.likelihood(x, alpha, above)

    def rates_into(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return (1 - one_hot(x, self.size, like)) / self.size

    def rates_out(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return self.rates_into(x, alpha, like)

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "gap": self.gap}

    @classmethod
    def from_spec(cls, spec: dict[str, Any], arrays: Arrays) -> "Uniform":
        return cls(spec["size"])
