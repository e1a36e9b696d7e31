"""The θ-trapezoidal method: second order, two evaluations a step."""

import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import batch_size_for, on_host
from eigentime.process.absorbing import Absorbing
from eigentime.process.drawing import draw
from eigentime.process.kernel import Rows
from eigentime.process.laws import leap
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, Sampler, State, Step, full
from eigentime.samplers.factorised import Factorised
from eigentime.samplers.jumps import jump_rates

Uniforms = Float[Tensor, "n length"]


class Trapezoidal(Sampler):
    """Leap θΔ with rates μ_0, evaluate μ_θ there, then leap (1-θ)Δ with (a1·μ_θ - a2·μ_0)₊.

    a1 = 1/(2θ(1-θ)), a2 = a1 - 1. A token that jumped in the first leap has no μ_0 of its own any more and takes μ_θ.
    """

    name = "trapezoidal"
    evaluations_per_step = 2

    def __init__(self, theta: float = 0.5) -> None:
        if not 0 < theta < 1:
            raise EigentimeError(f"theta must lie strictly between 0 and 1, not {theta}.")
        self.theta = theta

    def step(self, network: Network, x: State, free: Mask, step: Step) -> State:
        if step.last:
            return Factorised("ancestral", "exact").step(network, x, free, step)
        uniforms = [network.uniforms(purpose, x, step.index) for purpose in (Purpose.DRAW, Purpose.CHOOSE)]
        result = x.clone()
        # rates of both leaps are held for one micro-batch of sequences at a time
        for part in torch.arange(len(x)).split(network.batch_size or batch_size_for(network.model)):
            result[part] = self._both_leaps(network, x[part], free[part], step, *(u[part] for u in uniforms))
        return result

    def _both_leaps(
        self, network: Network, x: State, free: Mask, step: Step, first: Uniforms, second: Uniforms
    ) -> State:
        middle = step.t - self.theta * (step.t - step.s)
        a1 = 1 / (2 * self.theta * (1 - self.theta))
        halfway, row_of = x.clone(), torch.full(x.shape, -1)
        kept: list[Rows] = []
        for sequence, position, posterior in network.posteriors(x, full(x, step.t), self._active(network, x, free)):
            token = x[sequence, position]
            rates = jump_rates(network.model.process, on_host(posterior), token, step.t)
            law = leap((step.t - middle) * rates, token, "poisson")
            halfway[sequence, position] = draw(law, first[sequence, position])
            row_of[sequence, position] = torch.arange(len(rates)) + sum(len(rows) for rows in kept)
            kept.append(rates)
        result, before = halfway.clone(), torch.cat(kept) if kept else None
        active = self._active(network, halfway, free)
        for sequence, position, posterior in network.posteriors(halfway, full(x, middle), active):
            assert before is not None
            token = halfway[sequence, position]
            rates = jump_rates(network.model.process, on_host(posterior), token, middle)
            moved = (token != x[sequence, position])[:, None]
            extrapolated = a1 * rates - (a1 - 1) * before[row_of[sequence, position]]
            law = leap((middle - step.s) * torch.where(moved, rates, extrapolated.clamp(min=0.0)), token, "poisson")
            result[sequence, position] = draw(law, second[sequence, position])
        return result

    @staticmethod
    def _active(network: Network, x: State, free: Mask) -> Mask:
        kernel = network.model.process.kernel
        return free & kernel.masked(x) if isinstance(kernel, Absorbing) else free
