"""Exact models: data laws whose posteriors can be computed, so that no training error blurs a measurement."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.arguments import kind, words
from eigentime.errors import EigentimeError
from eigentime.models.base import Model
from eigentime.process import Process


class Oracle(Model):
    """A model with the exact posterior of a known data law, for any kernel.

    The noisy tokens enter only through the emissions e_i(x0) = P(x_t,i | x0_i = x0) over the N data values.
    """

    exact = True
    predicts = "posterior"

    def __init__(self, name: str, process: Process, length: int, values: int) -> None:
        kind(Process, "a Process(kernel, noise)")(process, "process")
        words(name, "name")
        if values != len(process.kernel.values):
            raise EigentimeError(
                f"{name}: the data law has {values} values but the {process.kernel.name} kernel carries "
                f"{len(process.kernel.values)}."
            )
        self.name, self.process, self.length = name, process, length
        self.time_dependent = not process.absorbing

    @property
    @abstractmethod
    def entropy(self) -> float:
        """H(p_0), the entropy of a data sequence in nats."""

    @abstractmethod
    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p_0(x) of clean sequences."""

    @abstractmethod
    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        """Data sequences; the same seed gives the same ones."""

    @abstractmethod
    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        """P(x0_i | all emissions), normalised."""

    def __call__(
        self,
        x: Int[Tensor, "b length"],
        t: Float[Tensor, " b"],
        where: Bool[Tensor, "b length"] | None = None,
        cond: Tensor | None = None,
    ) -> Float[Tensor, "... size"]:
        kernel = self.process.kernel
        alpha = self.process.noise.alpha(t)[:, None].expand(x.shape)
        marginals = self.marginals(kernel.likelihood(x, alpha)[..., kernel.values])
        rows = marginals if where is None else marginals[where]
        logs = torch.full((*rows.shape[:-1], kernel.size), -torch.inf, dtype=torch.float64)
        logs[..., kernel.values] = rows.log()
        return logs


def as_numbers(values: Any, what: str) -> Float[Tensor, "..."]:
    """An array of numbers in float64."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        found = np.array("")
    if found.dtype.kind not in "iuf":
        raise EigentimeError(f"{what} must be an array of numbers.")
    return torch.as_tensor(found, dtype=torch.float64)


def checked_law(law: np.ndarray | Tensor, what: str) -> Float[Tensor, "..."]:
    """Probabilities in float64 that are finite, non-negative and sum to one along the last axis."""
    law = as_numbers(law, what)
    if (
        not law.ndim
        or not law.shape[-1]
        or not torch.isfinite(law).all()
        or (law < 0).any()
        or (law.sum(-1) - 1).abs().max() > 1e-6
    ):
        raise EigentimeError(f"{what} must be non-negative, finite probabilities that sum to one.")
    return law / law.sum(-1, keepdim=True)
