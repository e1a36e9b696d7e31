"""Binomial(14, ½): one token of 15 values, the paper's tractable first experiment."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from scipy.stats import binom
from torch import Tensor

from eigentime.models import Independent, Model
from eigentime.models.mlp import MLPConfig
from eigentime.process import Geometric, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole
from eigentime.tasks.task import ExactTask, kernel_over
from eigentime.training import Recipe

TRIALS = 14
VALUES = TRIALS + 1
LAW = torch.from_numpy(binom.pmf(np.arange(VALUES), TRIALS, 0.5))


def process(kernel: str) -> Process:
    """The paper's geometric noise 0.01 → 5."""
    return Process(kernel_over(VALUES, kernel), Geometric(0.01, 5.0))


def exact(kernel: str) -> Model:
    """The exact model."""
    return Independent(LAW, process(kernel), name="binomial-exact")


def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """Distance of the sampled histogram from the truth (both have a floor that shrinks with the number of samples)."""
    return {
        "hellinger": of_the_whole(x, lambda part: hellinger(histogram(part, VALUES), LAW)),
        "total_variation": of_the_whole(x, lambda part: (histogram(part, VALUES) - LAW).abs().sum().item() / 2),
    }


ABSORBING = Recipe(
    "binomial",
    process("absorbing"),
    length=1,
    network=MLPConfig(size=VALUES + 1, length=1, width=128, layers=3),
    steps=6000,
    batch=512,
    learning_rate=2e-3,
    first_time=0.0,
)
UNIFORM = replace(
    ABSORBING,
    name="binomial-uniform",
    process=process("uniform"),
    network=replace(ABSORBING.network, size=VALUES, scale_by_sigma=False),
)
TASK = ExactTask(
    metrics=metrics,
    fidelity="hellinger",
    diversity="total_variation",
    name="binomial",
    about="one token, Binomial(14, ½)",
    exact=exact,
    recipes=(ABSORBING, UNIFORM),
    training_sequences=2**20,
)
