"""MNIST as 28 × 28 tokens of eight grey levels, masked or on the uniform kernel: digits that one can read."""

from dataclasses import replace
from functools import cache

import torch
from jaxtyping import Integer
from torch import Tensor

from eigentime.data.images import Part
from eigentime.data.mnist import MNIST_SHAPE, MNIST_VALUES, mnist
from eigentime.models.mosaic import MosaicConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.mnist_judge import judged
from eigentime.tasks.task import DataTask, kernel_over
from eigentime.training import Recipe

LENGTH = 784


@cache
def _data() -> tuple[Part, Part]:
    return mnist()


@cache
def training() -> Integer[Tensor, "n 784"]:
    """The 60,000 training images."""
    return torch.from_numpy(_data()[0][0])


@cache
def test() -> Integer[Tensor, "m 784"]:
    """The 10,000 test images."""
    return torch.from_numpy(_data()[1][0])


def process(kernel: str) -> Process:
    """MDLM's log-linear noise on the grey levels."""
    return Process(kernel_over(MNIST_VALUES, kernel), LogLinear())


MASKED = MosaicConfig(size=MNIST_VALUES + 1, shape=MNIST_SHAPE, width=40, coarse=64)
MDLM = Recipe("mnist", process("absorbing"), LENGTH, MASKED, steps=15_000, batch=32, learning_rate=3e-3)
UDLM = replace(
    MDLM,
    name="mnist-uniform",
    process=process("uniform"),
    network=replace(MASKED, size=MNIST_VALUES, head="cavity", time_conditioned=True),
    start_from="mnist",
    steps=6_500,
    learning_rate=1.5e-3,
)
TASK = DataTask(
    metrics=judged(training),
    fidelity="frechet_small",
    diversity="variance",
    name="mnist",
    about="MNIST, 28 × 28 handwritten digits of 8 grey levels",
    recipes=(MDLM, UDLM),
    shape=MNIST_SHAPE,
    training=training,
    test=test,
)
