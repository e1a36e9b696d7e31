"""The path error of any step: the costs that schedules minimise and certificates add up."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from eigentime.arguments import one_of
from eigentime.process import Noise

Alphas = Float[np.ndarray, "..."]
Times = Float[np.ndarray, " g"]
Estimator = Literal["entropy", "cross-entropy"]
ESTIMATORS = ("entropy", "cross-entropy")
RATES = ("total", "adiabatic", "nonadiabatic", "nonadiabatic_data", "activity", "mobility")


@dataclass(frozen=True)
class Setting:
    """What sums over sequences do not hold themselves."""

    noise: Noise
    free: float
    """How many tokens of a sequence are not given."""
    gap: float
    """The slowest rate at which the kernel forgets."""


class StepCosts(ABC):
    """Nats that a step α_t → α_s adds to KL(true path ‖ sampled path); α_t = 0 is the start and α_s = 1 the end."""

    at_start: float = 0.0
    """KL(p_1 ‖ prior)."""

    @abstractmethod
    def steps(self, alphas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k-1"]:
        """The cost of each step of a schedule."""

    @abstractmethod
    def matrix(self, alphas: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        """The costs of all steps i → j > i of a grid; only the upper triangle means anything."""

    @abstractmethod
    def curvature(self, alpha: Alphas) -> Alphas:
        """κ(α) ≥ 0 with cost ≈ ½κ·(α_s - α_t)² for short steps."""

    def path(self, alphas: Float[np.ndarray, " k"]) -> float:
        """The path error of a whole schedule."""
        return float(self.steps(alphas).sum() + self.at_start)


def check_estimator(estimator: str) -> None:
    """Refuse a name that is no estimator."""
    one_of(*ESTIMATORS)(estimator, "estimator")


def angle_of(alpha: Alphas) -> Alphas:
    """θ = arccos √α: 0 at the data, π/2 at pure noise."""
    return np.asarray(np.arccos(np.sqrt(np.clip(alpha, 0.0, 1.0))))
