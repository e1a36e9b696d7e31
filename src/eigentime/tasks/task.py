"""What a task is: a named exact model, and what its samples are judged by."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models import Model
from eigentime.process import Absorbing, Kernel, Uniform
from eigentime.tasks.metrics import Estimate, distinct, unigram_entropy

KERNELS = ("absorbing", "uniform")
Metrics = Callable[[Int[Tensor, "n length"]], dict[str, Estimate]]


@dataclass(frozen=True)
class Task:
    """One experiment: how to build its exact model, its metrics, and which of them to look at first."""

    name: str
    about: str
    exact: Callable[[str], Model]
    """Builds the exact model for a kernel's name."""
    metrics: Metrics
    fidelity: str
    """The metric that leads tables and figures; lower is better."""
    diversity: str
    """The metric to look at beside it, for fidelity alone rewards collapse; lower is better."""


def kernel_over(values: int, kernel: str) -> Kernel:
    """A kernel that carries this many data values."""
    if kernel not in KERNELS:
        raise EigentimeError(f"Unknown kernel {kernel!r}; known are {', '.join(KERNELS)}.")
    return Absorbing(values + 1) if kernel == "absorbing" else Uniform(values)


def generic_metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """For models without a task of their own: diversity, the same for any tokens."""
    return {"unigram_entropy": unigram_entropy(x), "distinct": distinct(x)}
