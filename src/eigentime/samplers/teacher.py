"""Teacher forcing: the exact likelihood of given sequences under a sampler that reveals planned places.

The plan says which tokens S_k evaluation k reveals, whatever their values, and each is drawn from the network's
posterior given what is known before. Given the order π, the samples' law is therefore

    q(x | π) = Π_k Π_{i ∈ S_k} q(x_i | x_j, j known before step k),

and masking everything, evaluating, adding ln q of the true tokens at S_k, revealing them and going on computes it
exactly. Where the order is drawn for every sequence, averages of ln q(x | π) bound divergences from above.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process.process import as_tokens
from eigentime.samplers.run import Run
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.state import State
from eigentime.schedules import Plan


@torch.no_grad()
def planned_log_likelihood(
    model: Model, plan: Plan, x: Int[Tensor, "n length"], seed: int = 0, batch_size: int | Literal["auto"] = "auto"
) -> Float[Tensor, " n"]:
    """ln q(x | π) in nats of every sequence, π being the order that sampling with this seed would use for it."""
    kernel = model.process.kernel
    if kernel.mask is None:
        raise EigentimeError("A plan reveals masked tokens: it needs an absorbing kernel.")
    x = as_tokens(x, "The sequences")
    if x.ndim != 2 or x.shape[1] != model.length or plan.length != model.length:
        raise EigentimeError(f"Model ({model.length} tokens), plan ({plan.length}) and data {tuple(x.shape)} differ.")
    model.process.check_tokens(x, "The sequences")
    run = Run(model, seed, Shaping(normalise=True), batch_size)
    step_of, everything = plan.step_of(len(x), seed), torch.ones_like(x, dtype=torch.bool)
    truth = x.to(model.device)
    total = torch.zeros(len(x), dtype=torch.float64)
    for step in range(plan.steps):
        seen = torch.where((step_of < step).to(truth.device), truth, kernel.mask)
        state = State(seen, everything, step_of >= step, kernel.mask)
        times = model.process.noise.time_of_alpha((step_of < step).double().mean(1))
        for answer in run.answers(state, times, step_of == step):
            (posterior,) = answer.laws
            known = posterior.gather(1, x[answer.sequence, answer.position].to(posterior.device)[:, None]).squeeze(1)
            total.index_add_(0, answer.sequence, known.cpu().double().log())
    return total
