"""Noise curves: how fast a token is corrupted, t ↔ σ ↔ α.

σ(t) = ∫₀ᵗ β is the total noise, β = σ' its rate, α = e^{-σ} the probability that a token has not jumped yet.
Time runs from data (t = 0) to noise (t = 1). Every curve inverts in closed form, in float64.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.arguments import number, settle, whole
from eigentime.errors import EigentimeError

Times = Float[Tensor, "..."]
MOST_SIGMA, MOST_POWER = 1e6, 64
"""Noise beyond which nothing is left of the data in double precision, by far."""


def _float64(value: Any) -> Times:
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()  # torch warns about sharing read-only memory
    return torch.as_tensor(value, dtype=torch.float64)


class Noise(ABC):
    """A noise curve. Subclasses give σ(t), β(t) and the inverse of σ."""

    name: ClassVar[str]

    @abstractmethod
    def sigma(self, t: Any) -> Times:
        """Total noise σ(t), increasing in t."""

    @abstractmethod
    def beta(self, t: Any) -> Times:
        """Noise rate β(t) = σ'(t)."""

    @abstractmethod
    def _time_of_sigma(self, sigma: Times) -> Times:
        """The inverse of `sigma`, before clipping to [0, 1]."""

    def alpha(self, t: Any) -> Times:
        """Probability that a token is still uncorrupted, α(t) = e^{-σ(t)}."""
        return torch.exp(-self.sigma(t))

    def time_of_sigma(self, sigma: Any) -> Times:
        """The time at which the total noise is σ, clipped to [0, 1]."""
        return self._time_of_sigma(_float64(sigma)).clamp(0.0, 1.0)

    def time_of_alpha(self, alpha: Any) -> Times:
        """The time at which α of the tokens are uncorrupted, clipped to [0, 1]."""
        return self.time_of_sigma(-torch.log(_float64(alpha)))

    def spec(self) -> dict[str, Any]:
        """A JSON description from which `noise_from_spec` rebuilds this curve."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class LogLinear(Noise):
    """σ = -log(1 - (1-ε)t), so α = 1 - (1-ε)t: SEDD's and MDLM's usual choice."""

    eps: float = 1e-3
    name = "log-linear"

    def __post_init__(self) -> None:
        settle(self, eps=number(above=0, below=1))

    def sigma(self, t: Any) -> Times:
        return -torch.log1p(-(1 - self.eps) * _float64(t))

    def beta(self, t: Any) -> Times:
        return (1 - self.eps) / (1 - (1 - self.eps) * _float64(t))

    def alpha(self, t: Any) -> Times:
        return 1 - (1 - self.eps) * _float64(t)

    def _time_of_sigma(self, sigma: Times) -> Times:
        return -torch.expm1(-sigma) / (1 - self.eps)


@dataclass(frozen=True)
class Geometric(Noise):
    """σ = σ_min^{1-t} σ_max^t: the paper's binomial experiment uses 0.01 → 5."""

    sigma_min: float = 1e-4
    sigma_max: float = 20.0
    name = "geometric"

    def __post_init__(self) -> None:
        settle(self, sigma_min=number(above=0), sigma_max=number(above=0, most=MOST_SIGMA))
        _require(self.sigma_min < self.sigma_max, f"Geometric needs 0 < sigma_min < sigma_max, not {self}")

    def sigma(self, t: Any) -> Times:
        return self.sigma_min * torch.exp(_float64(t) * self._log_ratio)

    def beta(self, t: Any) -> Times:
        return self.sigma(t) * self._log_ratio

    def _time_of_sigma(self, sigma: Times) -> Times:
        return torch.log(sigma / self.sigma_min) / self._log_ratio

    @property
    def _log_ratio(self) -> float:
        return math.log(self.sigma_max / self.sigma_min)


@dataclass(frozen=True)
class Cosine(Noise):
    """α = ε + (1-ε)·cos(πt/2)^power: MDLM's `cosine` (power 1) and `cosinesqr` (power 2)."""

    eps: float = 1e-3
    power: int = 1
    name = "cosine"

    def __post_init__(self) -> None:
        settle(self, eps=number(above=0, below=1), power=whole(1, MOST_POWER))

    def alpha(self, t: Any) -> Times:
        return self.eps + (1 - self.eps) * torch.cos(math.pi / 2 * _float64(t)).clamp(min=0.0) ** self.power

    def sigma(self, t: Any) -> Times:
        return -torch.log(self.alpha(t))

    def beta(self, t: Any) -> Times:
        angle = math.pi / 2 * _float64(t)
        slope = self.power * torch.cos(angle).clamp(min=0.0) ** (self.power - 1) * torch.sin(angle) * math.pi / 2
        return (1 - self.eps) * slope / self.alpha(t)

    def _time_of_sigma(self, sigma: Times) -> Times:
        cosine = ((torch.exp(-sigma) - self.eps) / (1 - self.eps)).clamp(0.0, 1.0) ** (1 / self.power)
        return torch.arccos(cosine) * 2 / math.pi


@dataclass(frozen=True)
class DuoCosine(Noise):
    """α = 1 - cos(π/2·(1 - (1-ε)t)): what Duo's configurations call `cosine`, another curve than MDLM's."""

    eps: float = 1e-3
    name = "duo-cosine"

    def __post_init__(self) -> None:
        settle(self, eps=number(above=0, below=1))

    def _angle(self, t: Any) -> Times:
        return math.pi / 2 * (1 - (1 - self.eps) * _float64(t))

    def alpha(self, t: Any) -> Times:
        return 2 * torch.sin(self._angle(t) / 2) ** 2  # = 1 - cos, without its rounding near noise

    def sigma(self, t: Any) -> Times:
        return -torch.log(self.alpha(t))

    def beta(self, t: Any) -> Times:
        return (1 - self.eps) * math.pi / 2 * torch.sin(self._angle(t)) / self.alpha(t)

    def _time_of_sigma(self, sigma: Times) -> Times:
        angle = 2 * torch.arcsin((torch.exp(-sigma) / 2).sqrt().clamp(max=1.0))
        return (1 - 2 / math.pi * angle) / (1 - self.eps)


@dataclass(frozen=True)
class Linear(Noise):
    """σ = σ_min + t(σ_max - σ_min). `Linear(0, 1)` is a time-homogeneous process (tauLDR's piano)."""

    sigma_min: float = 1e-3
    sigma_max: float = 7.0
    name = "linear"

    def __post_init__(self) -> None:
        settle(self, sigma_min=number(0), sigma_max=number(above=0, most=MOST_SIGMA))
        _require(self.sigma_min < self.sigma_max, f"Linear needs 0 ≤ sigma_min < sigma_max, not {self}")

    def sigma(self, t: Any) -> Times:
        return self.sigma_min + _float64(t) * (self.sigma_max - self.sigma_min)

    def beta(self, t: Any) -> Times:
        return torch.full_like(_float64(t), self.sigma_max - self.sigma_min)

    def _time_of_sigma(self, sigma: Times) -> Times:
        return (sigma - self.sigma_min) / (self.sigma_max - self.sigma_min)


@dataclass(frozen=True)
class Exponential(Noise):
    """σ = base·(growth^t - 1): tauLDR's curve for CIFAR-10 (base 3, growth 100)."""

    base: float = 3.0
    growth: float = 100.0
    name = "exponential"

    def __post_init__(self) -> None:
        settle(self, base=number(above=0), growth=number(above=1))
        _require(
            self.base * self.growth <= MOST_SIGMA,
            f"Exponential needs base·growth of at most {MOST_SIGMA:g}, not {self}",
        )

    def sigma(self, t: Any) -> Times:
        return self.base * torch.expm1(_float64(t) * math.log(self.growth))

    def beta(self, t: Any) -> Times:
        return self.base * math.log(self.growth) * torch.exp(_float64(t) * math.log(self.growth))

    def _time_of_sigma(self, sigma: Times) -> Times:
        return torch.log1p(sigma / self.base) / math.log(self.growth)


NOISES: dict[str, type[Noise]] = {
    cls.name: cls for cls in (LogLinear, Geometric, Cosine, DuoCosine, Linear, Exponential)
}


def noise_from_spec(spec: dict[str, Any]) -> Noise:
    """Rebuild the curve that `Noise.spec` described."""
    if spec.get("name") not in NOISES:
        raise EigentimeError(f"Unknown noise {spec.get('name')!r}; known are {', '.join(NOISES)}.")
    return NOISES[spec["name"]](**{key: value for key, value in spec.items() if key != "name"})


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise EigentimeError(sentence + ".")
