"""Random numbers that do not depend on how the work is split.

Every uniform is a pure function of (seed, purpose, step, sample, position): numpy's counter-based Philox with the
seed and the purpose as key, the step and the flat index sample·length + position as counter. Any batch split, device
or number of processes therefore sees the same numbers.
"""

from enum import IntEnum

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

WORDS_PER_BLOCK = 4  # one Philox counter value yields four 64-bit words


class Purpose(IntEnum):
    """What a stream of random numbers is for; different purposes are independent."""

    CORRUPT = 0
    REPLACE = 1
    PRIOR = 2
    DRAW = 3
    CHOOSE = 4
    DATA = 5
    POSITIONS = 6
    COUNT = 7
    BATCH = 8
    TIME = 9
    ORDER = 10
    CORRECT = 11


def uniforms(
    seed: int, purpose: Purpose, count: int, length: int, *, step: int = 0, first: int = 0
) -> Float[Tensor, "count length"]:
    """Uniforms in [0, 1) for samples first … first+count-1 and all positions, float64 on the CPU."""
    blocks_per_sample = -(-length // WORDS_PER_BLOCK)
    stride = blocks_per_sample * WORDS_PER_BLOCK
    counter = np.array([first * blocks_per_sample, step, 0, 0], dtype=np.uint64)
    key = np.array([int(seed) % 2**64, int(purpose)], dtype=np.uint64)
    numbers = np.random.Generator(np.random.Philox(key=key, counter=counter)).random(count * stride)
    return torch.from_numpy(numbers.reshape(count, stride)[:, :length].copy())
