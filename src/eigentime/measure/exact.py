"""Exact expectations by enumeration for small worlds: the ground truth that estimates are checked against."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.arguments import checked, kind, listed, numbers, one_of, whole
from eigentime.errors import EigentimeError
from eigentime.measure.pointwise import Rates, pointwise_rates
from eigentime.models import Independent, Model, Table
from eigentime.models.base import MODEL
from eigentime.process import Process
from eigentime.process.laws import Law, clip_law, token_law

MAX_STATES = 2**16
LAWS = ("exact", "euler", "poisson")


@dataclass(frozen=True)
class ExactRates:
    """Rates of the whole sequence over `times`; see `pointwise_rates` for what they mean."""

    times: Float[np.ndarray, " g"]
    total: Float[np.ndarray, " g"]
    adiabatic: Float[np.ndarray, " g"]
    nonadiabatic: Float[np.ndarray, " g"]
    nonadiabatic_data: Float[np.ndarray, " g"]
    activity: Float[np.ndarray, " g"]
    mobility: Float[np.ndarray, " g"]


@checked(model=MODEL, times=numbers(0, 1))
def exact_rates(model: Model, times: Any) -> ExactRates:
    """Entropy production, activity and mobility of a `Table` or `Independent` model at the given times in [0, 1]."""
    rates = np.zeros((len(Rates._fields), len(times)))
    for world in _worlds(model):
        for k, t in enumerate(times):
            x, weight, posterior = _noisy_states(world, model.process.noise.alpha(t).item())
            values = pointwise_rates(model.process, posterior, x, torch.full(x.shape, t, dtype=torch.float64))
            rates[:, k] += [(weight * value.sum(1)).sum().item() for value in values]
    return ExactRates(times, *rates)


@checked(model=MODEL, times=numbers(0, 1), law=one_of(*LAWS))
def exact_costs(model: Model, times: Any, law: Law = "exact") -> Float[np.ndarray, "g g"]:
    """c(t,s) = E Σ_i H(x_s,i | x_t) - H(x_t | x_s) for every pair of a decreasing grid, by enumeration.

    It is computed as -E_x Σ_i Σ_y P(x_s,i = y | x_t) ln w_y, which is the same number. For another token law r the
    entropy becomes the cross-entropy -Σ P ln r; a step to t = 0 is always the exact denoising draw.
    """
    process, times = model.process, _decreasing(times)
    alphas = process.grid_alphas(times)
    costs = np.full((len(times), len(times)), np.inf)
    np.fill_diagonal(costs, 0.0)
    upper = np.triu_indices(len(times), 1)
    costs[upper] = 0.0
    for world in _worlds(model):
        for i in range(len(times) - 1):
            x, weight, posterior = _noisy_states(world, alphas[i])
            for j in range(i + 1, len(times)):
                step_law = "exact" if times[j] == 0 else law
                cost = _step_cost(process, posterior, x, times[i], times[j], alphas[i], alphas[j], step_law)
                costs[i, j] += (weight * cost.sum(1)).sum().item()
    return costs


@checked(model=MODEL, times=numbers(0, 1), law=one_of(*LAWS))
def exact_path_error(model: Model, times: Any, law: Law = "exact") -> float:
    """KL(true path ‖ sampled path) of a schedule in nats, by enumeration: Σ_steps TC + KL(p_1 ‖ prior).

    Equals Σ c(t,s) - H(p_0) - E ln prior(x_1).
    """
    process, times = model.process, _decreasing(times)
    path = sum(exact_costs(model, pair, law)[0, 1] for pair in pairwise(times))
    prior, prior_law = 0.0, process.kernel.prior_law(process.noise.alpha(1.0).item())
    for world in _worlds(model):
        x, weight, _ = _noisy_states(world, process.grid_alphas(times[:1])[0])
        prior -= (weight * prior_law.log()[x].sum(1)).sum().item()
        path -= world.entropy
    return float(path + prior)


@checked(model=kind(Table, "a Table"), permutation=listed(whole(0)), counts=listed(whole(1), 1))
def exact_plan_error(model: Table, permutation: Any, counts: Any) -> float:
    """KL(data ‖ samples) of a plan with a fixed order in nats, by enumeration.

    Σ_k Σ_{j=n_{k-1}}^{n_k - 1} H(x_π(j) | x_π(0), …, x_π(n_{k-1} - 1)) - H(p_0), each conditional entropy the
    difference of two marginal ones.
    """
    if sorted(permutation) != list(range(model.length)) or sum(counts) != model.length:
        raise EigentimeError(f"A plan for {model.length} tokens names every place once, and its counts add up to them.")
    law = model.law.reshape([len(model.process.kernel.values)] * model.length)

    def entropy(places: Sequence[int]) -> float:
        rest = [axis for axis in range(model.length) if axis not in places]
        marginal = law.sum(rest) if rest else law
        return -torch.xlogy(marginal, marginal).sum().item()

    stops, error = np.concatenate([[0], np.cumsum(counts)]).astype(int), -model.entropy
    for m, n in pairwise(stops.tolist()):
        known = [int(place) for place in permutation[:m]]
        error += sum(entropy([*known, int(permutation[j])]) - entropy(known) for j in range(m, n))
    return error


def _decreasing(times: Any) -> Float[np.ndarray, " g"]:
    """A grid from noise to data."""
    grid = np.asarray(times, dtype=np.float64)
    if len(grid) < 2 or not np.all(np.diff(grid) < 0):
        raise EigentimeError("`times` must be at least two times that decrease from noise (1) to data (0).")
    return grid


def _step_cost(
    process: Process, posterior: Tensor, x: Tensor, t: float, s: float, alpha_t: float, alpha_s: float, law: Law
) -> Float[Tensor, "states length"]:
    def full(value: float) -> Tensor:
        return torch.full(x.shape, value, dtype=torch.float64)

    channel = process.kernel.channel(x, full(alpha_t), since=full(alpha_s))
    ratio = process.kernel.ratio(posterior, x, full(alpha_t), full(alpha_s))
    exact = channel * ratio
    cost = -torch.where(exact > 0, exact * ratio.log(), 0.0).sum(-1)
    if law != "exact":
        drawn, _ = clip_law(token_law(process, law, posterior, x, full(t), full(s), full(alpha_t), full(alpha_s)))
        cost = cost + torch.where(exact > 0, exact * (exact / drawn).log(), 0.0).sum(-1)
    return cost


def _worlds(model: Model) -> list[Table]:
    """Independent enumerable parts of the model: rates and costs add up over them."""
    if isinstance(model, Independent):
        return [Table(law, model.process) for law in model.laws]
    if isinstance(model, Table):
        if model.process.kernel.size**model.length > MAX_STATES:
            raise EigentimeError(f"Enumeration is limited to {MAX_STATES} noisy states; use `measure` instead.")
        return [model]
    raise EigentimeError("Exact rates need a `Table` or `Independent` model; use `measure` for any other.")


def _noisy_states(
    world: Table, alpha: float
) -> tuple[Int[Tensor, "states length"], Float[Tensor, " states"], Float[Tensor, "states length size"]]:
    """All noisy sequences of positive probability p_t, that probability, and their posteriors."""
    kernel, length = world.process.kernel, world.length
    every = torch.arange(kernel.size)
    transition = kernel.forward_law(every, torch.full((kernel.size,), alpha, dtype=torch.float64))[kernel.values]
    law = world.law.reshape([len(kernel.values)] * length)
    for _ in range(length):
        law = torch.tensordot(law, transition, dims=([0], [0]))
    states = torch.cartesian_prod(*[every] * length).reshape(-1, length)
    weight = law.flatten()
    possible = weight > 0
    x, weight = states[possible], weight[possible]
    alphas = torch.full(x.shape, alpha, dtype=torch.float64)
    posterior = torch.zeros(*x.shape, kernel.size, dtype=torch.float64)
    posterior[..., kernel.values] = world.marginals(kernel.likelihood(x, alphas)[..., kernel.values])
    return x, weight, posterior
