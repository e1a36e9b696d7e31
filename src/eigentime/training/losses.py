"""The losses: upper bounds on -ln p(x0), one number per sequence, for one time each, drawn uniformly from (0, 1].

All three are one formula. With r_y = P_t(y|x0_i)/P_t(x_i|x0_i), the score that the clean token alone would give, and ŝ
the network's,

    β(t) Σ_i Σ_{y ≠ x_i} Q(y → x_i)·[ŝ_y - r_y ln ŝ_y + r_y ln r_y - r_y],

whose mean over t is the negative evidence lower bound (up to KL(p_1 ‖ prior)). Its minimum over functions of x_t is at
the conditional mean of r, the true score, where the gradient vanishes.

- `score_entropy`: ŝ straight from a score network (SEDD's diffusion-weighted denoising score entropy, DWDSE).
- `posterior_nelbo`: ŝ_y = Σ q(x0)·P_t(y|x0)/P_t(x_i|x0) from a network for the posterior q. On the absorbing kernel
  ŝ = α/(1-α)·q sums to what r does, and only β·α/(1-α)·(-ln q(x0_i)) is left on masked tokens: MDLM's loss.
- `cavity_nelbo`: ŝ_y = Σ c(x0)·P_t(y|x0) / Σ c(x0)·P_t(x_i|x0) from a network for the clean token that the others
  imply. On the uniform kernel this is UDLM's loss.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models.base import log_posterior
from eigentime.models.denoiser import Head
from eigentime.process import Process
from eigentime.process.noise import Times

Predict = Callable[[Int[Tensor, "b length"], Float[Tensor, " b"], Bool[Tensor, "b length"]], Float[Tensor, "n size"]]
"""A network: tokens, total noise σ and which rows are wanted in; those rows of its raw output out."""
Loss = Callable[[Predict, Process, Int[Tensor, "b length"], Int[Tensor, "b length"], Times, int], Float[Tensor, " b"]]


def score_entropy(
    predict: Predict,
    process: Process,
    x0: Int[Tensor, "b length"],
    x: Int[Tensor, "b length"],
    t: Times,
    given: int = 0,
) -> Float[Tensor, " b"]:
    """DWDSE of a network that predicts ln ŝ."""
    where, log_score, beta, alpha = _asked(predict, process, x, t, given)
    return _per_sequence(_weighted(beta, process.kernel.score_entropy(log_score, x0[where], x[where], alpha)), where)


def posterior_nelbo(
    predict: Predict,
    process: Process,
    x0: Int[Tensor, "b length"],
    x: Int[Tensor, "b length"],
    t: Times,
    given: int = 0,
) -> Float[Tensor, " b"]:
    """Negative ELBO of a network that predicts logits over x0."""
    where, logits, beta, alpha = _asked(predict, process, x, t, given)
    log_q = log_posterior(logits, process.kernel)
    if process.absorbing:
        surprise = -log_q.gather(-1, x0[where].to(log_q.device)[:, None]).squeeze(-1)
        return _per_sequence((beta * alpha / (1 - alpha)).to(log_q) * surprise, where)
    score = process.kernel.score(log_q.exp(), x[where], alpha)
    return _per_sequence(_weighted(beta, process.kernel.score_entropy(score.log(), x0[where], x[where], alpha)), where)


def cavity_nelbo(
    predict: Predict,
    process: Process,
    x0: Int[Tensor, "b length"],
    x: Int[Tensor, "b length"],
    t: Times,
    given: int = 0,
) -> Float[Tensor, " b"]:
    """Negative ELBO of a network that predicts logits over x0 from the other tokens, on a kernel without a mask."""
    kernel = process.dense
    where, logits, beta, alpha = _asked(predict, process, x, t, given)
    cavity = kernel.forbid_(logits).softmax(-1)
    log_law = kernel.spread(cavity, alpha).log()
    log_score = log_law - log_law.gather(-1, x[where].to(log_law.device)[:, None])
    return _per_sequence(_weighted(beta, kernel.score_entropy(log_score, x0[where], x[where], alpha)), where)


LOSSES: dict[Head, Loss] = {"score": score_entropy, "posterior": posterior_nelbo, "cavity": cavity_nelbo}
"""By what the network predicts."""


def _asked(
    predict: Predict, process: Process, x: Int[Tensor, "b length"], t: Times, given: int
) -> tuple[Bool[Tensor, "b length"], Float[Tensor, "n size"], Times, Times]:
    """Which tokens can still jump in reverse (masked ones, or without a mask all; never the first, given ones), what
    the network says of them, and β and α of each."""
    where = process.kernel.active(x)
    where[:, :given] = False
    rows = predict(x, process.noise.sigma(t).to(torch.float32), where)
    noise = process.noise
    beta, alpha = (values[:, None].expand(where.shape)[where] for values in (noise.beta(t), noise.alpha(t)))
    return where, rows, beta, alpha


def _weighted(beta: Times, rows: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    return beta.to(rows) * rows


def _per_sequence(rows: Float[Tensor, " n"], where: Bool[Tensor, "b length"]) -> Float[Tensor, " b"]:
    """Row values summed over each sequence."""
    index = where.nonzero()[:, 0].to(rows.device)
    return rows.new_zeros(len(where)).index_add(0, index, rows)
