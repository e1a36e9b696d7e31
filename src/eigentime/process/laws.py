"""Token laws P(x_s,i | x_t) of one step t → s: what a sampler draws from and what a certificate compares.

All take the posterior q(x0) of each token (rows; see `Kernel`). The exact law is `Kernel.exact_law`.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eigentime.process.kernel import Alphas, Rows, Tokens, column
from eigentime.process.noise import Times
from eigentime.process.process import Process

Law = Literal["exact", "euler", "poisson", "counted"]
"""What a sampler draws from; `counted` is the exact law of values with exact numbers of revealed tokens."""
ROUNDING = 1e-6
"""Probabilities of minus so much are zero, in single precision."""


def token_law(
    process: Process, law: Law, posterior: Rows, x: Tokens, t: Times, s: Times, alpha_t: Alphas, alpha_s: Alphas
) -> Rows:
    """The chosen law, unclipped: Euler's stay-probability can be negative when the step is too long.

    exact    P(x_s,i = y | x_t)
    euler    one_hot(x) + (t-s)·R̄
    poisson  jump counts Poisson((t-s)·R̄), the first jump wins: (1-e^{-Λ})·λ_y/Λ, stay e^{-Λ}
    """
    if law == "exact":
        return process.kernel.exact_law(posterior, x, alpha_t, alpha_s)
    return leap(column((t - s), posterior) * process.reverse_rates(posterior, x, t), x, law)


def leap(jumps: Rows, x: Tokens, law: Law) -> Rows:
    """The law after expected `jumps` (zero at the present token): one_hot + jumps (Euler) or first of Poisson jumps."""
    total = jumps.sum(-1, keepdim=True)
    if law == "poisson":
        moved = -torch.expm1(-total)
        jumps = torch.where(total > 0, jumps / total, 0.0) * moved
        total = moved
    return jumps.scatter(-1, x[..., None].to(jumps.device), 1 - total)


def clip_law(law: Rows) -> tuple[Rows, Bool[Tensor, "..."]]:
    """Clip negative entries to zero and renormalise; also say which rows needed it, beyond rounding."""
    clipped = law.amin(-1) < -ROUNDING
    law = law.clamp(min=0.0)
    return law / law.sum(-1, keepdim=True), clipped


def reveal_probability(
    process: Process, law: Law, t: Times, s: Times, alpha_t: Alphas, alpha_s: Alphas
) -> Float[Tensor, "..."]:
    """Absorbing kernel, normalised posterior: the probability that a masked token is revealed in the step.

    exact (α_s-α_t)/(1-α_t), euler min(1, λ), poisson 1-e^{-λ}, with λ = (t-s)·β·α/(1-α). Its value is then drawn from
    q, so which tokens are revealed can be known before the network is asked.
    """
    if law == "exact":
        return (alpha_s - alpha_t) / (1 - alpha_t)
    alpha = process.noise.alpha(t)
    rate = (t - s) * process.noise.beta(t) * alpha / (1 - alpha)
    return rate.clamp(max=1.0) if law == "euler" else -torch.expm1(-rate)
