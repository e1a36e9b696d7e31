"""Binomial(14, ½): one token of 15 values, the paper's tractable first experiment."""

import numpy as np
import torch
from jaxtyping import Int
from scipy.stats import binom
from torch import Tensor

from eigentime.models import Independent, Model
from eigentime.process import Geometric, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole
from eigentime.tasks.task import Task, kernel_over

TRIALS = 14
VALUES = TRIALS + 1
LAW = torch.from_numpy(binom.pmf(np.arange(VALUES), TRIALS, 0.5))


def exact(kernel: str) -> Model:
    """The exact model, with the paper's geometric noise 0.01 → 5."""
    return Independent(LAW, Process(kernel_over(VALUES, kernel), Geometric(0.01, 5.0)), name="binomial-exact")


def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """Distance of the sampled histogram from the truth (both have a floor that shrinks with the number of samples)."""
    return {
        "hellinger": of_the_whole(x, lambda part: hellinger(histogram(part, VALUES), LAW)),
        "total_variation": of_the_whole(x, lambda part: (histogram(part, VALUES) - LAW).abs().sum().item() / 2),
    }


TASK = Task("binomial", "one token, Binomial(14, ½)", exact, metrics, "hellinger", "total_variation")
