"""Handwritten digits, 8 × 8 masked tokens of 17 values: images small enough for quick trials."""

from functools import cache

import torch
from jaxtyping import Integer
from torch import Tensor

from eigentime.data.images import DIGITS_SHAPE, DIGITS_VALUES, digits
from eigentime.models.unet import UNetConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.features import Features, compared
from eigentime.tasks.task import DataTask, kernel_over
from eigentime.training import Recipe

LENGTH = 64


@cache
def training() -> Integer[Tensor, "n 64"]:
    """Four fifths of the images."""
    return torch.from_numpy(digits()[0][0])


@cache
def test() -> Integer[Tensor, "m 64"]:
    """Every fifth image."""
    return torch.from_numpy(digits()[1][0])


NETWORK = UNetConfig(
    size=DIGITS_VALUES + 1,
    shape=DIGITS_SHAPE,
    width=32,
    multipliers=(1, 2),
    blocks=1,
    highest=float(DIGITS_VALUES),
    mask_channel=True,
    time_conditioned=False,
)
MDLM = Recipe(
    "digits",
    Process(kernel_over(DIGITS_VALUES, "absorbing"), LogLinear()),
    LENGTH,
    NETWORK,
    steps=1500,
    batch=64,
    learning_rate=2e-3,
)


def pixels(x: Integer[Tensor, "n 64"]) -> Features:
    """Grey levels from 0 to 1."""
    return x.double().numpy() / (DIGITS_VALUES - 1)


TASK = DataTask(
    metrics=compared(lambda: pixels(training()), pixels, "frechet_pixels"),
    fidelity="frechet_pixels",
    diversity="variance",
    name="digits",
    about="8 × 8 handwritten digits of 17 grey levels",
    recipes=(MDLM,),
    shape=DIGITS_SHAPE,
    training=training,
    test=test,
)
