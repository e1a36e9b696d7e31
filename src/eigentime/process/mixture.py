"""GIDD's kernel: noise that is partly uniform and in the end all mask, so that its law moves with time."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.arguments import checked, number, whole
from eigentime.process.kernel import DATA, DOUBLE, Alphas, Arrays, DenseKernel, Rows, Tokens, column, one_hot


class Mixture(DenseKernel):
    """Kept with probability α, replaced by a uniform value with probability b·r·α, else the mask (r²·α).

    r ≥ 0 measures the noise, α·(1 + b·r + r²) = 1, and b says how uniform it gets: at r = 1, where as many tokens are
    kept as are masked, a share b/(2 + b) is uniform. This is GIDD (von Rütte et al. 2025) with γ = 1 in terms of
    α, whatever the noise curve. A token that forgets itself at α turns into a uniform value with probability
    b/(b + 2r), else into the mask.
    """

    name = "mixture"
    reversible = True
    gap = float("inf")
    """The prior is the noise itself, so that nothing is lost at the start but what little is left of the data."""

    @checked(size=whole(3), uniform=number(above=0, below=1))
    def __init__(self, size: int, uniform: float = 0.2) -> None:
        self.size, self.uniform = size, uniform
        self.hidden = self.size - 1
        """The mask: the last id. A token that is masked, or is not, may still turn into anything in reverse."""
        self.weight = 2 * self.uniform / (1 - self.uniform)
        """b."""

    @property
    def values(self) -> Int[Tensor, " n"]:
        return torch.arange(self.hidden)

    @property
    def stationary(self) -> Float[Tensor, " size"]:
        return one_hot(torch.tensor(self.hidden), self.size)

    def _ratio(self, alpha: Alphas) -> Alphas:
        """r·α, which is finite where α is 0."""
        scaled = self.weight * alpha
        return (torch.sqrt(scaled**2 + 4 * alpha * (1 - alpha)) - scaled) / 2

    def _noise(self, uniform: Alphas, masked: Alphas, like: Tensor) -> Rows:
        """Rows with one probability shared by all values and another for the mask."""
        rows = column(uniform / (self.size - 1), like).expand(*uniform.shape, self.size).to(like).clone()
        rows[..., self.hidden] = masked.to(like)
        return rows

    def _shares(self, alpha: Alphas, since: Alphas) -> tuple[Alphas, Alphas]:
        """How much of x_t is uniform and how much masked, of what was still kept at `since`."""
        kept = alpha / since
        uniform = self.weight * (self._ratio(alpha) - kept * self._ratio(since))
        return uniform, (1 - kept) - uniform

    def stationary_at(self, alpha: Alphas) -> Float[Tensor, "... size"]:
        jump = torch.where(alpha > 0, self.weight * alpha, 0.0)
        uniform = torch.where(jump > 0, jump / (jump + 2 * self._ratio(alpha)), 0.0)
        return self._noise(uniform, 1 - uniform, DOUBLE)

    def prior_law(self, alpha: float) -> Float[Tensor, " size"]:
        uniform, masked = self._shares(torch.tensor(alpha, dtype=torch.float64), DATA)
        return self._noise(uniform, masked, DOUBLE) / (1 - alpha)

    def likelihood(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return self.channel(x, alpha, like)

    def forward_law(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        kept = column(alpha / since, like) * one_hot(x, self.size, like)
        return kept + self._noise(*self._shares(alpha, since), like)

    def channel(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        uniform, masked = self._shares(alpha, since)
        arrived = torch.where(x.cpu() == self.hidden, masked, uniform / (self.size - 1))
        return column(alpha / since, like) * one_hot(x, self.size, like) + arrived[..., None].to(like)

    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        noise = self._noise(*self._shares(alpha, DATA), quotient)
        return column(alpha, quotient) * quotient + noise * quotient.sum(-1, keepdim=True)

    def posterior_of_scores(self, log_score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """Scores sum to Σ q/P, so that what noise adds to each is known."""
        score = log_score.exp()
        noise = self._noise(*self._shares(alpha, DATA), score) * score.sum(-1, keepdim=True)
        quotient = (score - noise) / column(alpha, score)
        quotient[..., self.hidden] = 0.0
        return quotient * self.likelihood(x, alpha, score)

    def forbid_(self, logs: Rows) -> Rows:
        logs[..., self.hidden] = -torch.inf
        return logs

    def rates_into(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        target = self.stationary_at(alpha).expand(*x.shape, self.size).gather(-1, x[..., None].cpu())
        return target.to(like) * (1 - one_hot(x, self.size, like))

    def rates_out(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return self.stationary_at(alpha).to(like) * (1 - one_hot(x, self.size, like))

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "uniform": self.uniform, "gap": None}

    @classmethod
    def from_spec(cls, spec: dict[str, Any], arrays: Arrays) -> "Mixture":
        return cls(spec["size"], spec["uniform"])
