"""Schedules that need no measurement."""

import numpy as np
from jaxtyping import Float

from eigentime.process import Noise

Array = Float[np.ndarray, " k"]


def uniform_times(steps: int, noise: Noise) -> Array:
    """Equal steps in t, whatever the noise."""
    return np.linspace(1.0, 0.0, steps + 1)


def cosine_times(steps: int, noise: Noise) -> Array:
    """MaskGIT's and MD4's cosine: mask fraction 1 - α_k = cos(πk/2K)."""
    return times_of_alphas(1 - np.cos(np.pi / 2 * np.linspace(0, 1, steps + 1)), noise)


def fisher_rao_times(steps: int, noise: Noise) -> Array:
    """Equal steps in the angle θ = arccos √α: α_k = sin²(πk/2K)."""
    return times_of_alphas(np.sin(np.pi / 2 * np.linspace(0, 1, steps + 1)) ** 2, noise)


def times_of_alphas(alphas: Array, noise: Noise) -> Array:
    """Times with these α, the ends put to 1 and 0.

    Where the noise curve does not reach some of them (α(1) > 0, or α(0) < 1), all are squeezed into what it reaches.
    """
    lowest, highest = noise.alpha(1.0).item(), noise.alpha(0.0).item()
    inner = alphas[1:-1]
    if len(inner) and (inner[0] <= lowest or inner[-1] >= highest):
        inner = lowest + (highest - lowest) * inner
    return np.concatenate([[1.0], noise.time_of_alpha(inner).numpy(), [0.0]])
