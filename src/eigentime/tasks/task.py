"""What a task is: data, a named exact model, recipes for networks, and what samples are judged by."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int, Integer
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models import Model, Oracle
from eigentime.process import Absorbing, Kernel, Uniform
from eigentime.process.randomness import Purpose, uniforms
from eigentime.tasks.law import DataLaw
from eigentime.tasks.metrics import Estimate, distinct, unigram_entropy
from eigentime.training import Recipe

TRAINING_SEED, HELD_OUT_SEED = 2**40, 2**41
PARTS = {"training": TRAINING_SEED, "validation": HELD_OUT_SEED, "test": 0}
"""What is added to a seed, so that the parts of a law's data are drawn apart."""
HELD_OUT = 256
KERNELS = ("absorbing", "uniform")
Advance = Callable[[int, int | None], None]
"""Told how much is done, and of how much."""
Metrics = Callable[[Int[Tensor, "n length"]], dict[str, Estimate]]


@dataclass(frozen=True)
class Judge:
    """What samples are judged by, and which numbers to look at first."""

    metrics: Metrics
    fidelity: str
    """The metric that leads tables and figures; lower is better."""
    diversity: str
    """The metric to look at beside it, for fidelity alone rewards collapse; lower is better."""


@dataclass(frozen=True, kw_only=True)
class Task(Judge, ABC):
    """One experiment: its data, networks and judge."""

    name: str
    about: str
    recipes: tuple[Recipe, ...]
    """The networks that are trained on it."""
    given: int = 0
    """How many tokens at the start are given, not generated."""
    shape: tuple[int, ...] | None = None
    """Of the grid whose cells the tokens are."""

    @abstractmethod
    def draw(self, count: int, seed: int) -> Int[Tensor, "count length"]:
        """Clean data that no network was trained on."""

    @abstractmethod
    def training_data(
        self, seed: int, sequences: int | None = None
    ) -> tuple[Integer[Tensor, "n length"], Integer[Tensor, "m length"]]:
        """Sequences to train on, the first so many if a number is given, and sequences to evaluate on."""


@dataclass(frozen=True, kw_only=True)
class LawTask(Task, ABC):
    """A task whose data law is known, so that data are drawn from it and samples judged by it."""

    training_sequences: int = 2**16

    @property
    @abstractmethod
    def law(self) -> DataLaw:
        """The law."""

    def draw(self, count: int, seed: int) -> Int[Tensor, "count length"]:
        return self.draw_part("test", count, seed)

    def draw_part(
        self, part: str, count: int, seed: int, advance: Advance = lambda done, total: None
    ) -> Int[Tensor, "count length"]:
        """Sequences of the training, validation or test part; no other part holds them."""
        return self.law.draw(count, seed_of(part, seed))

    def training_data(
        self, seed: int, sequences: int | None = None
    ) -> tuple[Integer[Tensor, "n length"], Integer[Tensor, "m length"]]:
        count = self.training_sequences if sequences is None else sequences
        return self.draw_part("training", count, seed), self.draw_part("validation", HELD_OUT, seed)


@dataclass(frozen=True, kw_only=True)
class ExactTask(LawTask):
    """A task whose posteriors are known too."""

    exact: Callable[[str], Model]
    """Builds the exact model for a kernel's name."""
    kernels: tuple[str, ...] = KERNELS
    """The names for which it is known."""

    @property
    def law(self) -> DataLaw:
        model = self.exact("absorbing")
        assert isinstance(model, Oracle)
        return model


@dataclass(frozen=True, kw_only=True)
class DataTask(Task):
    """A task of real data."""

    training: Callable[[], Integer[Tensor, "n length"]]
    test: Callable[[], Integer[Tensor, "m length"]]

    def draw(self, count: int, seed: int) -> Int[Tensor, "count length"]:
        """Held-out sequences in an order that the seed decides, from the beginning again when there are too few."""
        held_out = self.test()
        order = uniforms(seed, Purpose.BATCH, len(held_out), 1).squeeze(1).argsort()
        return held_out[order[torch.arange(count) % len(order)]].long()

    def training_data(
        self, seed: int, sequences: int | None = None
    ) -> tuple[Integer[Tensor, "n length"], Integer[Tensor, "m length"]]:
        return self.training()[:sequences], self.draw(HELD_OUT, HELD_OUT_SEED + seed)


def seed_of(part: str, seed: int) -> int:
    """The seed of a part of a law's data."""
    if part not in PARTS:
        raise EigentimeError(f"Unknown part {part!r}; data have {', '.join(PARTS)}.")
    return PARTS[part] + seed


def kernel_over(values: int, kernel: str) -> Kernel:
    """A kernel that carries this many data values."""
    if kernel not in KERNELS:
        raise EigentimeError(f"Unknown kernel {kernel!r}; known are {', '.join(KERNELS)}.")
    return Absorbing(values + 1) if kernel == "absorbing" else Uniform(values)


def generic_metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """For models without a task of their own: diversity, the same for any tokens."""
    return {"unigram_entropy": unigram_entropy(x), "distinct": distinct(x)}
