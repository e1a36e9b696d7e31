"""The sampler for plans: exactly the planned positions at each step, nothing drawn elsewhere."""

from jaxtyping import Int
from torch import Tensor

from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, State


def planned_step(network: Network, x: State, free: Mask, step_of: Int[Tensor, "n length"], index: int) -> State:
    """Reveal the tokens of step `index`, each drawn from its posterior; the network computes only those rows.

    The network is told the time at which as large a share of the free tokens would be known.
    """
    chosen = step_of == index
    known = ((step_of >= 0) & (step_of < index)).sum(1) / free.sum(1).clamp(min=1)
    times = network.model.process.noise.time_of_alpha(known)
    u = network.uniforms(Purpose.DRAW, x, index)
    result = x.clone()
    for sequence, position, posterior in network.posteriors(x, times, chosen):
        result[sequence, position] = draw(posterior, u[sequence, position]).cpu()
    return result
