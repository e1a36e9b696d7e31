"""Thermodynamics at a point: the rates of the reverse process seen from one noisy state x.

With f = p(x)·R̄(x→z) the flux of a reverse jump and b = p(z)·R̄(z→x) = p(x)·R(x→z) the flux of the opposite one (time
reversal), everything is a sum over single-token jumps of functions of the pointwise fluxes f/p(x) = R̄ and b/p(x) = R.
Averaged over x ~ p_t these are the rates of the paper's section 3.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.process import Process
from eigentime.process.kernel import Rows, Tokens, column
from eigentime.process.noise import Times


class Fluxes(NamedTuple):
    """f/p(x) and b/p(x) for every target value of every token."""

    reverse: Rows
    forward: Rows


class Rates(NamedTuple):
    """Rates per unit time, in nats (entropies) or jumps (activity, mobility); one entry a row."""

    total: Float[Tensor, "..."]
    adiabatic: Float[Tensor, "..."]
    nonadiabatic: Float[Tensor, "..."]
    nonadiabatic_data: Float[Tensor, "..."]
    activity: Float[Tensor, "..."]
    mobility: Float[Tensor, "..."]


def pointwise_fluxes(process: Process, score: Rows, x: Tokens, t: Times) -> Fluxes:
    """R̄(x→y) = β·Q(y→x)·s_y and R(x→y) = β·Q(x→y)."""
    kernel, alpha, beta = process.kernel, process.noise.alpha(t), column(process.noise.beta(t), score)
    return Fluxes(beta * kernel.rates_into(x, alpha, score) * score, beta * kernel.rates_out(x, alpha, score))


def pointwise_rates(process: Process, posterior: Rows, x: Tokens, t: Times) -> Rates:
    """The contribution of each token (row) to the rates at time t.

    total         Σ R̄ ln(R̄/R), infinite where a jump cannot be undone (absorbing)
    adiabatic     Σ R̄ ln( Q(y→x)π(y) / (Q(x→y)π(x)) )
    nonadiabatic  Σ R̄ ln( s·π(x)/π(y) ); absorbing: -Σ R̄ ln s, the paper's "bare" gauge without the divergent ln π
    …_data        absorbing: -Σ R̄ ln q, the entropy of the data revealed; other kernels: the same as nonadiabatic
    activity      Σ R̄
    mobility      ½ Σ (R̄-R)/(ln R̄ - ln R)

    On kernels without a mask Σ R - Σ R̄, which vanishes on average, is added to the entropy rates: for reversible ones
    each state then contributes something non-negative, and estimates are quiet.
    """
    kernel = process.kernel
    alpha = process.noise.alpha(t)
    score = kernel.score(posterior, x, alpha)
    reverse, forward = pointwise_fluxes(process, score, x, t)
    total = _weighted_log(reverse, reverse / forward)
    if kernel.mask is not None:
        adiabatic = total
        bare = -_weighted_log(reverse, score)
        data = -_weighted_log(reverse, posterior)
    else:
        into, out = kernel.rates_into(x, alpha, score), kernel.rates_out(x, alpha, score)
        pi = kernel.stationary_at(alpha).to(score).expand(score.shape)
        here = pi.gather(-1, x[..., None].to(pi.device))
        quiet = forward.sum(-1) - reverse.sum(-1)
        total = total + quiet
        adiabatic = _weighted_log(reverse, into * pi / (out * here))
        bare = data = _weighted_log(reverse, score * here / pi) + quiet
    mobility = 0.5 * _logarithmic_mean(reverse, forward).sum(-1)
    return Rates(total, adiabatic, bare, data, reverse.sum(-1), mobility)


def entropy_slope(process: Process, score: Rows, x: Tokens, t: Times) -> Float[Tensor, "..."]:
    """dH(p_t)/dt seen from x: Σ R̄ ln s - Σ R̄ + Σ R. The last two cancel on average and quieten the estimate."""
    reverse, forward = pointwise_fluxes(process, score, x, t)
    return _weighted_log(reverse, score) - reverse.sum(-1) + forward.sum(-1)


def _weighted_log(weight: Rows, argument: Rows) -> Float[Tensor, "..."]:
    """Σ weight·ln(argument) over the last axis, with 0·ln(anything) = 0."""
    return torch.where(weight > 0, weight * argument.log(), 0.0).sum(-1)


def _logarithmic_mean(a: Rows, b: Rows) -> Rows:
    """(a-b)/(ln a - ln b), which is a where a = b and 0 where either is 0."""
    difference = a - b
    near = difference.abs() < 1e-6 * torch.maximum(a, b)
    mean = torch.where(near, (a + b) / 2, difference / (a.log() - b.log()))
    return torch.where((a > 0) & (b > 0), mean, 0.0)
