"""Samplers that draw every token of x_s independently given x_t: Euler, Poisson τ-leaping and ancestral.

They differ only in the token law (`process.laws`) they draw from.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.models.base import on_host, some_rows
from eigentime.process.absorbing import Absorbing
from eigentime.process.drawing import draw
from eigentime.process.laws import Law, clip_law, reveal_probability, token_law
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, Sampler, State, Step, full
from eigentime.samplers.jumps import after_jumps, jump_rates, poisson_jumps


class Factorised(Sampler):
    """x_s,i ~ law(· | x_t), independently for every i.

    ancestral    P(x_s,i | x_t) exactly (Tweedie, analytic, ddpm)
    euler        one_hot(x) + (t-s)·R̄, negative stay-probabilities clipped
    tau-leaping  jump counts Poisson((t-s)·R̄); the first jump wins, or ordinal tokens add their jumps and clamp
    """

    def __init__(self, name: str, law: Law, ordinal: bool = False) -> None:
        self.name, self.law, self.ordinal = name, law, ordinal

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        law: Law = "exact" if step.last else self.law
        u = network.uniforms(Purpose.DRAW, x, step.index)
        if isinstance(network.model.process.kernel, Absorbing):
            return _reveal(network, x, free & network.model.process.kernel.masked(x), step, law, u)
        result = x.clone()
        for sequence, position, posteriors in network.with_and_without(x, full(x, step.t), free):
            token = x[sequence, position]
            at = [torch.full(token.shape, v, dtype=torch.float64) for v in (step.t, step.s, step.alpha_t, step.alpha_s)]
            if self.ordinal and not step.last:
                rates = jump_rates(network.model.process, on_host(network.shaping(posteriors[0])), token, step.t)
                mean = (step.t - step.s) * rates
                jumps = poisson_jumps(
                    mean, sequence, position, x.shape[1], seed=network.seed, purpose=Purpose.COUNT, stream=step.index
                )
                result[sequence, position] = after_jumps(token, jumps, ordinal=True)
                continue
            laws = [
                clip_law(token_law(network.model.process, law, on_host(network.shaping(posterior)), token, *at))
                for posterior in posteriors
            ]
            rows, clipped = network.guided([one for one, _ in laws]), laws[0][1]
            network.clipped += int(clipped.sum())
            network.drawn += len(token)
            result[sequence, position] = draw(rows, u[sequence, position])
        return result


def _reveal(network: Network, x: State, masked: Mask, step: Step, law: Law, u: Float[Tensor, "n length"]) -> State:
    """Absorbing kernel: reveal masked tokens with the step's probability, their values drawn from the posterior.

    For a normalised posterior one knows which tokens are revealed before asking the network: it is evaluated only on
    sequences where something happens and only at those rows. One uniform does both draws: given u < r, u/r is uniform.
    """
    process = network.model.process
    at = [torch.tensor(v, dtype=torch.float64) for v in (step.t, step.s, step.alpha_t, step.alpha_s)]
    chance = reveal_probability(process, law, *at)
    chosen = masked if network.keeps_mass else masked & (u < chance)
    network.drawn += int(masked.sum())
    if law == "euler" and not network.keeps_mass:
        alpha = process.noise.alpha(step.t).item()
        rate = (step.t - step.s) * process.noise.beta(step.t).item() * alpha / (1 - alpha)
        network.clipped += int(masked.sum()) if rate > 1 + 1e-9 else 0
    result = x.clone()
    for sequence, position, posterior in network.posteriors(x, full(x, step.t), chosen):
        uniform, reveal = u[sequence, position], chance.expand(len(posterior))
        if network.keeps_mass and not step.last:
            # a score's mass Σ_y q_y is part of its published law
            mass = on_host(posterior.sum(-1))
            if law == "poisson":
                reveal = -torch.expm1(torch.log1p(-chance) * mass)
            else:
                reveal = (chance * mass).clamp(max=1.0)
                network.clipped += int((chance * mass > 1 + 1e-9).sum())
        revealed = uniform < reveal
        value = draw(some_rows(posterior, revealed), uniform[revealed] / reveal[revealed])
        result[sequence[revealed], position[revealed]] = value.cpu()
    return result
