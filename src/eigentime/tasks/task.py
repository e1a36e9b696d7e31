"""What a task is: data, a named exact model, recipes for networks, and what samples are judged by."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models import Model, Oracle
from eigentime.process import Absorbing, Kernel, Uniform
from eigentime.tasks.metrics import Estimate, distinct, unigram_entropy
from eigentime.training import Recipe

TRAINING_SEED, HELD_OUT_SEED = 2**40, 2**41
HELD_OUT = 256
KERNELS = ("absorbing", "uniform")
Metrics = Callable[[Int[Tensor, "n length"]], dict[str, Estimate]]


@dataclass(frozen=True)
class Judge:
    """What samples are judged by, and which numbers to look at first."""

    metrics: Metrics
    fidelity: str
    """The metric that leads tables and figures; lower is better."""
    diversity: str
    """The metric to look at beside it, for fidelity alone rewards collapse; lower is better."""


@dataclass(frozen=True)
class Task(Judge):
    """One experiment: its data, exact model, networks and judge."""

    name: str
    about: str
    exact: Callable[[str], Model]
    """Builds the exact model for a kernel's name."""
    recipes: tuple[Recipe, ...]
    """The networks that are trained on it."""
    training_sequences: int

    def draw(self, count: int, seed: int) -> Int[Tensor, "count length"]:
        """Clean data."""
        model = self.exact("absorbing")
        assert isinstance(model, Oracle)
        return model.draw(count, seed)

    def training_data(self, seed: int) -> tuple[Int[Tensor, "n length"], Int[Tensor, "m length"]]:
        """Sequences to train on and sequences to evaluate on, apart from those that other seeds draw."""
        return self.draw(self.training_sequences, TRAINING_SEED + seed), self.draw(HELD_OUT, HELD_OUT_SEED + seed)


def kernel_over(values: int, kernel: str) -> Kernel:
    """A kernel that carries this many data values."""
    if kernel not in KERNELS:
        raise EigentimeError(f"Unknown kernel {kernel!r}; known are {', '.join(KERNELS)}.")
    return Absorbing(values + 1) if kernel == "absorbing" else Uniform(values)


def generic_metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """For models without a task of their own: diversity, the same for any tokens."""
    return {"unigram_entropy": unigram_entropy(x), "distinct": distinct(x)}


GENERIC = Judge(generic_metrics, "distinct", "unigram_entropy")
