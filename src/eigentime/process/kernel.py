"""What a kernel is: the single-token Markov chain, seen through a few row-wise functions.

Shapes: `x` holds tokens of shape (...), α is broadcastable to it, and every result has one more axis of length `size`
over token values. A *posterior* is q(x0) = P(x0_i | x_t), a *score* is s_y = p_t(x with x_i := y) / p_t(x). Neither
has to be normalised: published score networks are not, and their own token laws use them as they are.

Rows live where the network is and are as precise as it made them. α stays on the CPU in double precision, one number or
one for each token: what a kernel needs of it, 1-α above all, is worked out there and only then brought to the rows.
Functions that take no rows are told by `like` where theirs shall be and how precise: on the CPU, double, unless said.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.pictured import settings
from eigentime.process.drawing import draw

Tokens = Int[Tensor, "..."]
Alphas = Float[Tensor, "..."]
Rows = Float[Tensor, "... size"]
Arrays = dict[str, Float[np.ndarray, "..."]]
DOUBLE = torch.empty(0, dtype=torch.float64)
"""Rows like those of exact models."""
DATA = torch.ones((), dtype=torch.float64)
"""α of the data: what a transition begins at unless said."""


class Kernel(ABC):
    """One token's forward chain with generator β(t)·Q, in terms of α = e^{-σ}."""

    name: ClassVar[str]
    size: int
    """How many symbols a token can take, a mask included."""
    mask: int | None = None
    """The mask, on kernels that have one: only masks change in reverse, and what is revealed stays."""

    @property
    def values(self) -> Int[Tensor, " n"]:
        """The ids that clean data can hold."""
        return torch.arange(self.size)

    @property
    @abstractmethod
    def reversible(self) -> bool:
        """Whether Q is in detailed balance with its stationary law."""

    @property
    @abstractmethod
    def stationary(self) -> Float[Tensor, " size"]:
        """π, the law a token forgets itself into in the end."""

    def stationary_at(self, alpha: Alphas) -> Float[Tensor, "... size"]:
        """What the rates at α alone would lead to, on kernels whose rates move with time: π on all others."""
        return self.stationary

    def prior_law(self, alpha: float) -> Float[Tensor, " size"]:
        """The law of a token that generation starts from, where the noise ends at α."""
        return self.stationary

    def prior(self, u: Float[Tensor, "..."], alpha: float) -> Tokens:
        """Tokens of that law, one uniform each."""
        return torch.searchsorted(self.prior_law(alpha).cumsum(0), u, right=True).clamp(max=self.size - 1)

    def first_alpha(self, alpha: float) -> float:
        """α where generation starts, if the noise curve ends at this one."""
        return alpha

    def active(self, x: Tokens) -> Bool[Tensor, "..."]:
        """Which tokens can still jump in reverse."""
        return torch.ones_like(x, dtype=torch.bool)

    def corrupt(self, x0: Tokens, alpha: Alphas, jump: Float[Tensor, "..."], replace: Float[Tensor, "..."]) -> Tokens:
        """x_t given x_0 and uniforms: `jump` decides whether a token has jumped, `replace` where to."""
        return self.carry(x0, alpha, jump)

    def carry(self, x: Tokens, alpha: Alphas, u: Float[Tensor, "..."], since: Alphas = DATA) -> Tokens:
        """x_t given x_s, where α = α_t and since = α_s, with one uniform per token."""
        return draw(self.forward_law(x, alpha, since=since), u)

    def channel_entropy(
        self, alpha_s: Alphas, alpha_t: Alphas, marginal: Float[Tensor, " size"] | None = None
    ) -> float:
        """H(x_t,i | x_s,i) of one token in nats, where x_0,i has the law `marginal` over all ids."""
        if marginal is None:
            raise EigentimeError(f"The channel entropy of a {self.name} kernel needs the tokens' `marginal` law.")
        return (marginal.double() @ self.transition(alpha_s) @ self._entropies(alpha_s, alpha_t)).item()

    def transition(self, alpha: Alphas, since: Alphas = DATA) -> Float[Tensor, "size size"]:
        """P(x_t = y | x_s = x) as a matrix with rows x, where α = α_t and since = α_s."""
        every = torch.arange(self.size)
        return self.forward_law(every, alpha.expand(every.shape), since=since.expand(every.shape))

    def _entropies(self, alpha_s: Alphas, alpha_t: Alphas) -> Float[Tensor, " size"]:
        """H(x_t,i | x_s,i = x) for every x."""
        laws = self.transition(alpha_t, alpha_s)
        return -torch.xlogy(laws, laws).sum(1)

    @abstractmethod
    def likelihood(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        """P(x_t,i = x | x0) for every x0, up to a factor that does not depend on x0."""

    @abstractmethod
    def forward_law(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        """P(x_t,i = y | x_s,i = x) for every y, where α = α_t and since = α_s."""

    @abstractmethod
    def channel(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        """T(y → x) = P(x_t,i = x | x_s,i = y) for every y, likewise: a column, it does not sum to one."""

    @abstractmethod
    def ratio(self, posterior: Rows, x: Tokens, alpha_t: Alphas, alpha_s: Alphas) -> Rows:
        """w_y = Σ_{x0} q(x0)·P_s(y|x0)/P_t(x|x0), so that P(x_s,i = y | x_t) = T(y → x)·w_y; the score at α_s = α_t."""

    @abstractmethod
    def posterior_of_scores(self, log_score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """The q(x0) that `ratio` at α_s = α_t turns into this score, from its logarithm."""

    def posterior(self, score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """The same from the score itself."""
        return self.posterior_of_scores(score.log(), x, alpha)

    @abstractmethod
    def rates_into(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        """Q(y → x) for every y at the time of α, zero at y = x."""

    @abstractmethod
    def rates_out(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        """Q(x → y) for every y, likewise."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """A JSON description, from which and from the `arrays` `from_spec` makes the same kernel again."""

    @classmethod
    @abstractmethod
    def from_spec(cls, spec: dict[str, Any], arrays: Arrays) -> "Kernel":
        """The kernel that was described."""

    @classmethod
    def for_grids(cls, spec: dict[str, Any], arrays: Arrays) -> "Kernel":
        """One that lays out the same grids, where an old file holds less than `from_spec` needs."""
        return cls.from_spec(spec, arrays)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({settings(self.spec(), 'name', 'gap', 'sha256')})"

    def arrays(self) -> Arrays:
        """What a description is too short for."""
        return {}

    def forbid_(self, logs: Rows) -> Rows:
        """-∞ in place at ids that data never holds."""
        return logs

    def score(self, posterior: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """s_y = Σ_{x0} q(x0)·P_t(y|x0)/P_t(x|x0)."""
        return self.ratio(posterior, x, alpha, alpha)

    def score_entropy(self, log_score: Rows, x0: Tokens, x: Tokens, alpha: Alphas) -> Float[Tensor, "..."]:
        """Σ_y Q(y → x)·[ŝ_y - r_y ln ŝ_y + r_y ln r_y - r_y] of every row, r the score that the clean token alone would
        give: zero only at ŝ = r. What score entropy losses are made of."""
        ratio = self.score(one_hot(x0, self.size, log_score), x, alpha)
        rates = self.rates_into(x, alpha, log_score)
        terms = log_score.exp() - ratio * log_score + torch.xlogy(ratio, ratio) - ratio
        return torch.where(rates > 0, rates * terms, 0.0).sum(-1)

    def exact_law(self, posterior: Rows, x: Tokens, alpha_t: Alphas, alpha_s: Alphas) -> Rows:
        """P(x_s,i = y | x_t) = T(y → x)·w_y: the token law of ancestral (Tweedie, analytic) sampling."""
        ratio = self.ratio(posterior, x, alpha_t, alpha_s)
        return self.channel(x, alpha_t, ratio, alpha_s) * ratio

    def flow(self, posterior: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """Q(y → x)·s_y for every y: what β makes reverse rates of, zero at y = x."""
        score = self.score(posterior, x, alpha)
        return self.rates_into(x, alpha, score) * score


class DenseKernel(Kernel):
    """A kernel without a mask: `ratio` splits into a part that only x_t enters and one that only α_s does."""

    def quotient(self, posterior: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """q(x0)/P_t(x|x0), zero where x cannot come from x0."""
        likelihood = self.likelihood(x, alpha, posterior)
        return torch.where(likelihood > 0, posterior / likelihood, 0.0)

    @property
    @abstractmethod
    def gap(self) -> float:
        """The slowest rate at which Q forgets: KL(p ‖ π) falls like e^{-2·gap·σ} in the end."""

    def with_evidence(self, logs: Rows, x: Tokens, sigma: Float[Tensor, "..."]) -> Rows:
        """ln c(x0) + ln P_t(x|x0), up to a constant: what the other tokens imply joined with the token itself."""
        alpha = torch.exp(-sigma.cpu().double())
        return logs + self.likelihood(x.cpu(), alpha).log().to(logs)

    @abstractmethod
    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        """Σ_{x0} quotient(x0)·P_s(y|x0) for every y."""

    def ratio(self, posterior: Rows, x: Tokens, alpha_t: Alphas, alpha_s: Alphas) -> Rows:
        return self.spread(self.quotient(posterior, x, alpha_t), alpha_s)


def one_hot(x: Tokens, size: int, like: Tensor = DOUBLE) -> Rows:
    """Rows with a one at each token."""
    x = x.to(like.device)
    return like.new_zeros(*x.shape, size).scatter_(-1, x.unsqueeze(-1), 1.0)


def column(value: Alphas, like: Tensor) -> Tensor:
    """One number, or one for each token, as a factor of rows: where they are and as precise."""
    return value.to(like.dtype) if value.ndim == 0 else value[..., None].to(like)
