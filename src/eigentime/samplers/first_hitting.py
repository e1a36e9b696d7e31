"""First-hitting: one token at a time at its own random time. Exact, no grid, as many evaluations as free tokens."""

import torch

from eigentime.process.absorbing import Absorbing
from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose
from eigentime.samplers.base import Mask, Network, State


def first_hitting_step(
    network: Network, x: State, free: Mask, survival: torch.Tensor, index: int
) -> tuple[State, torch.Tensor]:
    """Reveal one masked token of every sequence that still has some.

    With n masks left the next reveal is at 1-α_s = (1-α_t)·u^{1/n}; which one is uniform. `survival` is 1-α of each
    sequence.
    """
    process = network.model.process
    assert isinstance(process.kernel, Absorbing)
    masked = free & process.kernel.masked(x)
    left = masked.sum(1)
    when = network.uniforms(Purpose.CHOOSE, x, index)[:, 0]
    survival = torch.where(left > 0, survival * when ** (1 / left.clamp(min=1)), survival)
    which = network.uniforms(Purpose.REPLACE, x, index).masked_fill(~masked, 2.0).argmin(1)
    chosen = torch.zeros_like(masked)
    chosen[torch.arange(len(x)), which] = left > 0
    result = x.clone()
    value = network.uniforms(Purpose.DRAW, x, index)
    times = process.noise.time_of_alpha(1 - survival)
    for sequence, position, posterior in network.posteriors(x, times, chosen):
        result[sequence, position] = draw(posterior, value[sequence, position]).cpu()
    return result, survival
