"""The absorbing (masked) kernel: every value turns into the mask at rate 1 and stays there."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.kernel import Alphas, Kernel, Rows, Tokens, one_hot

LEAST_RATIO = 1e-30
"""Of α/(1-α) in losses: noise so high that single precision cannot hold it says nothing about data."""


class Absorbing(Kernel):
    """Kept with probability α, else the mask.

    `mask` need not be the last id (LLaDA: 126336 of 126464), and ids in `never` are symbols data never holds.
    On a masked token s_y = α/(1-α)·q_y, and P(x_s = y | x_t) = (α_s-α_t)/(1-α_t)·q_y.
    """

    name = "absorbing"
    reversible = False

    def __init__(self, size: int, mask: int | None = None, never: tuple[int, ...] = ()) -> None:
        mask = size - 1 if mask is None else mask
        if size < 2:
            raise EigentimeError(f"Absorbing needs at least one value and a mask (size ≥ 2), not size {size}.")
        if not 0 <= mask < size or any(not 0 <= token < size for token in never):
            raise EigentimeError(f"mask={mask} and never={tuple(never)} must be ids in 0 … {size - 1}.")
        self.size, self.mask, self.never = int(size), int(mask), tuple(int(token) for token in never)
        self.excluded = torch.zeros(self.size, dtype=torch.bool)
        self.excluded[[self.mask, *self.never]] = True
        if self.excluded.all():
            raise EigentimeError("Absorbing needs at least one value that is neither the mask nor in `never`.")

    @property
    def values(self) -> Int[Tensor, " n"]:
        return (~self.excluded).nonzero().squeeze(-1)

    @property
    def stationary(self) -> Float[Tensor, " size"]:
        return one_hot(torch.tensor(self.mask), self.size)

    def masked(self, x: Tokens) -> Bool[Tensor, "..."]:
        """Which tokens are masks."""
        return x == self.mask

    def prior(self, u: Float[Tensor, "..."]) -> Tokens:
        """Nothing but masks."""
        return torch.full(u.shape, self.mask)

    def likelihood(self, x: Tokens, alpha: Alphas) -> Rows:
        return torch.where(self.masked(x)[..., None], (~self.excluded).double(), one_hot(x, self.size))

    def forward_law(self, x: Tokens, alpha: Alphas) -> Rows:
        kept = torch.where(self.masked(x), 1.0, alpha)[..., None]
        return kept * one_hot(x, self.size) + (1 - kept) * self.stationary

    def channel(self, x: Tokens, alpha: Alphas) -> Rows:
        into_mask = torch.where(torch.arange(self.size) == self.mask, 1.0, 1 - alpha[..., None])
        return torch.where(self.masked(x)[..., None], into_mask, alpha[..., None] * one_hot(x, self.size))

    def ratio(self, posterior: Rows, x: Tokens, alpha_t: Alphas, alpha_s: Alphas) -> Rows:
        is_mask = torch.arange(self.size) == self.mask
        # a posterior that is not normalised keeps the law at sum one through its stay-probability, as SEDD's does
        stay = (1 - alpha_t)[..., None] - (alpha_s - alpha_t)[..., None] * posterior.sum(-1, keepdim=True)
        hidden = torch.where(is_mask, stay, alpha_s[..., None] * posterior)
        seen = torch.where(is_mask, (1 - alpha_s)[..., None], alpha_s[..., None] * one_hot(x, self.size))
        masked = self.masked(x)[..., None]
        return torch.where(masked, hidden / (1 - alpha_t)[..., None], seen / alpha_t[..., None])

    def posterior(self, score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        return self.posterior_of_logs(score.log(), x, alpha)

    def posterior_of_logs(self, logs: Rows, x: Tokens, alpha: Alphas | None) -> Rows:
        """q(x0) from ln q, or with α from log-scores: ln q = ln s + ln((1-α)/α), before anything underflows."""
        if alpha is not None:
            logs = logs + torch.log((1 - alpha) / alpha)[..., None].to(logs)
        values = logs.exp().masked_fill(self.excluded.to(logs.device), 0.0)
        masked = self.masked(x)
        if alpha is None or masked.all():
            return values
        return torch.where(masked[..., None].to(logs.device), values, one_hot(x, self.size).to(logs))

    def score_entropy(self, log_score: Rows, x0: Tokens, x: Tokens, alpha: Alphas) -> Float[Tensor, "..."]:
        """On a masked token r is α/(1-α) at x0 and nothing elsewhere, so that no other row is needed."""
        x0, masked = x0.to(log_score.device), self.masked(x).to(log_score.device)
        ratio = (alpha / (1 - alpha)).to(log_score).clamp(min=LEAST_RATIO)
        score = log_score.exp()
        total = score[..., : self.mask].sum(-1) + score[..., self.mask + 1 :].sum(
            -1
        )  # the mask's is 1 and would hide it
        known = log_score.gather(-1, x0[..., None]).squeeze(-1)
        return torch.where(masked, ratio * (total / ratio - 1 - (known - ratio.log())), 0.0)

    def rates_into(self, x: Tokens) -> Rows:
        return torch.where(self.masked(x)[..., None], (torch.arange(self.size) != self.mask).double(), 0.0)

    def rates_out(self, x: Tokens) -> Rows:
        return torch.where(self.masked(x)[..., None], 0.0, self.stationary)

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "mask": self.mask, "never": list(self.never)}
