"""CIFAR-10 as 3 × 32 × 32 masked tokens of 256 values."""

from functools import cache

import torch
from jaxtyping import Integer
from torch import Tensor

from eigentime.data.images import CIFAR_SHAPE, CIFAR_VALUES, Part, cifar10
from eigentime.models.unet import UNetConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.features import Features, compared, small_features
from eigentime.tasks.task import DataTask, kernel_over
from eigentime.training import Recipe

LENGTH = 3072


def process() -> Process:
    """Log-linear masking, as MDLM."""
    return Process(kernel_over(CIFAR_VALUES, "absorbing"), LogLinear())


@cache
def _data() -> tuple[Part, Part]:
    return cifar10()


@cache
def training() -> Integer[Tensor, "n 3072"]:
    """The 50,000 training images."""
    return torch.from_numpy(_data()[0][0])


@cache
def test() -> Integer[Tensor, "m 3072"]:
    """The 10,000 test images."""
    return torch.from_numpy(_data()[1][0])


@cache
def real_features() -> Features:
    """Of as many training images as there are test images."""
    return small_features(training()[: len(test())])


def network(width: int) -> UNetConfig:
    """A UNet of this width that is shown masks as a flag and no time."""
    return UNetConfig(
        size=CIFAR_VALUES + 1,
        shape=CIFAR_SHAPE,
        width=width,
        multipliers=(1, 2, 2),
        attention_scale=2,
        highest=float(CIFAR_VALUES),
        mask_channel=True,
        time_conditioned=False,
    )


MDLM = Recipe("images", process(), LENGTH, network(32), steps=3600, batch=16, learning_rate=1e-3, ema=0.998)
TASK = DataTask(
    metrics=compared(real_features, small_features, "frechet_small"),
    fidelity="frechet_small",
    diversity="variance",
    name="images",
    about="CIFAR-10, 3 × 32 × 32 pixels of 256 values",
    recipes=(MDLM,),
    shape=CIFAR_SHAPE,
    training=training,
    test=test,
)
