"""The absorbing (masked) kernel: every value turns into the mask at rate 1 and stays there."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import checked, listed, optional, whole
from eigentime.errors import EigentimeError
from eigentime.process.kernel import DATA, DOUBLE, Alphas, Arrays, Kernel, Rows, Tokens, column, one_hot

LEAST_RATIO = 1e-30
"""Of α/(1-α) in losses: noise so high that single precision cannot hold it says nothing about data."""


class Absorbing(Kernel):
    """Kept with probability α, else the mask.

    `mask` need not be the last id (LLaDA: 126336 of 126464), and ids in `never` are symbols data never holds.
    On a masked token s_y = α/(1-α)·q_y, and P(x_s = y | x_t) = (α_s-α_t)/(1-α_t)·q_y.
    """

    name = "absorbing"
    reversible = False
    mask: int

    @checked(size=whole(2), mask=optional(whole()), never=listed(whole()))
    def __init__(self, size: int, mask: int | None = None, never: Sequence[int] = ()) -> None:
        mask = size - 1 if mask is None else mask
        if not 0 <= mask < size or any(not 0 <= token < size for token in never):
            raise EigentimeError(f"mask={mask} and never={tuple(never)} must be ids in 0 … {size - 1}.")
        self.size, self.mask, self.never = size, mask, tuple(never)
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

    def prior(self, u: Float[Tensor, "..."], alpha: float) -> Tokens:
        """Nothing but masks."""
        return torch.full(u.shape, self.mask)

    def first_alpha(self, alpha: float) -> float:
        """Nothing is known at first, wherever the noise curve ends."""
        return 0.0

    def active(self, x: Tokens) -> Bool[Tensor, "..."]:
        return self.masked(x)

    def carry(self, x: Tokens, alpha: Alphas, u: Float[Tensor, "..."], since: Alphas = DATA) -> Tokens:
        return torch.where(u < alpha / since, x, self.mask)

    def channel_entropy(
        self, alpha_s: Alphas, alpha_t: Alphas, marginal: Float[Tensor, " size"] | None = None
    ) -> float:
        """α_s·h2(α_t/α_s): only known tokens can still be masked."""
        kept = alpha_t / alpha_s
        return (-alpha_s * (torch.xlogy(kept, kept) + torch.xlogy(1 - kept, 1 - kept))).item()

    def likelihood(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return torch.where(self.masked(x)[..., None].to(like.device), self._possible(like), one_hot(x, self.size, like))

    def forward_law(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        kept = column(torch.where(self.masked(x).cpu(), 1.0, alpha / since), like)
        return kept * one_hot(x, self.size, like) + (1 - kept) * self.stationary.to(like)

    def channel(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        alpha = alpha / since
        into_mask = torch.where(self._is_mask(like), 1.0, column(1 - alpha, like))
        kept = column(alpha, like) * one_hot(x, self.size, like)
        return torch.where(self.masked(x)[..., None].to(like.device), into_mask, kept)

    def ratio(self, posterior: Rows, x: Tokens, alpha_t: Alphas, alpha_s: Alphas) -> Rows:
        is_mask = self._is_mask(posterior)
        # a posterior that is not normalised keeps the law at sum one through its stay-probability, as SEDD's does
        revealed = column((alpha_s - alpha_t) / (1 - alpha_t), posterior) * posterior.sum(-1, keepdim=True)
        hidden = torch.where(is_mask, 1 - revealed, column(alpha_s / (1 - alpha_t), posterior) * posterior)
        own = column(alpha_s / alpha_t, posterior) * one_hot(x, self.size, posterior)
        seen = torch.where(is_mask, column((1 - alpha_s) / alpha_t, posterior), own)
        return torch.where(self.masked(x)[..., None].to(posterior.device), hidden, seen)

    def flow(self, posterior: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """α/(1-α)·q on masked tokens; known ones stay."""
        masked = self.masked(x)[..., None].to(posterior.device)
        values = posterior.masked_fill(self._is_mask(posterior), 0.0)
        return torch.where(masked, column(alpha / (1 - alpha), posterior) * values, 0.0)

    def posterior_of_scores(self, log_score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """ln q = ln s + ln((1-α)/α), before anything underflows; known tokens are what they are."""
        values = self.forbid_(log_score + column(torch.log((1 - alpha) / alpha), log_score)).exp_()
        masked = self.masked(x)
        if masked.device.type == "cpu" and masked.all():
            return values
        return torch.where(masked[..., None].to(values.device), values, one_hot(x, self.size, values))

    def forbid_(self, logs: Rows) -> Rows:
        return logs.index_fill_(-1, torch.tensor([self.mask, *self.never], device=logs.device), -torch.inf)

    def _is_mask(self, like: Tensor) -> Bool[Tensor, " size"]:
        return torch.arange(self.size, device=like.device) == self.mask

    def _possible(self, like: Tensor) -> Float[Tensor, " size"]:
        return (~self.excluded).to(like)

    def score_entropy(self, log_score: Rows, x0: Tokens, x: Tokens, alpha: Alphas) -> Float[Tensor, "..."]:
        """On a masked token r is α/(1-α) at x0 and nothing elsewhere, so that no other row is needed."""
        x0, masked = x0.to(log_score.device), self.masked(x).to(log_score.device)
        ratio = (alpha / (1 - alpha)).to(log_score).clamp(min=LEAST_RATIO)
        score = log_score.exp()
        # the mask's own is 1 and would hide the others
        total = score[..., : self.mask].sum(-1) + score[..., self.mask + 1 :].sum(-1)
        known = log_score.gather(-1, x0[..., None]).squeeze(-1)
        return torch.where(masked, ratio * (total / ratio - 1 - (known - ratio.log())), 0.0)

    def rates_into(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return torch.where(self.masked(x)[..., None].to(like.device), (~self._is_mask(like)).to(like), 0.0)

    def rates_out(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return torch.where(self.masked(x)[..., None].to(like.device), 0.0, self.stationary.to(like))

    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "mask": self.mask, "never": list(self.never)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any], arrays: Arrays) -> "Absorbing":
        return cls(spec["size"], spec["mask"], tuple(spec["never"]))
