"""Any generator given as a matrix, such as tauLDR's Gaussian birth-death rates."""

import hashlib
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.process.kernel import DATA, DOUBLE, Alphas, Arrays, DenseKernel, Kernel, Rows, Tokens
from eigentime.process.uniform import Uniform

LEAST_LIKELIHOOD = 1e-9
"""As tauLDR adds to the likelihood."""
ROUNDING = 1e-18
"""Relative to the largest quotient: what is below cannot be told from zero, or from less."""


class RateMatrix(DenseKernel):
    """A chain with generator Q (rows = from, rows sum to zero) and stationary law π.

    P = exp(σQ) = V·diag(α^λ)·V⁻¹ with -Q = V·diag(λ)·V⁻¹; for a reversible Q the decomposition is that of a symmetric
    matrix. `pi` is checked, or computed when left out.
    """

    name = "rate-matrix"

    def __init__(self, Q: Any, pi: Any = None) -> None:
        try:
            Q = torch.as_tensor(np.asarray(Q, dtype=np.float64))
        except (TypeError, ValueError):
            raise EigentimeError("RateMatrix needs a square matrix of numbers.") from None
        if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or len(Q) < 2 or not torch.isfinite(Q).all():
            raise EigentimeError(f"RateMatrix needs a finite square matrix, not one of shape {tuple(Q.shape)}.")
        off_diagonal = Q - torch.diag(Q.diagonal())
        scale = off_diagonal.abs().max().item()
        if scale == 0 or off_diagonal.min() < 0 or Q.sum(1).abs().max() > 1e-6 * scale * len(Q):
            raise EigentimeError("RateMatrix needs non-negative rates off the diagonal and rows that sum to zero.")
        self.size = len(Q)
        self.rates = off_diagonal
        generator = off_diagonal - torch.diag(off_diagonal.sum(1))
        self._pi = _stationary(generator) if pi is None else _law(pi)
        if self._pi.shape != (self.size,) or self._pi.min() < 0 or not abs(self._pi.sum().item() - 1) <= 1e-6:
            raise EigentimeError("`pi` must hold one probability for every value, and they must sum to one.")
        if (self._pi @ generator).abs().max() > 1e-6 * scale:
            raise EigentimeError("`pi` is not the stationary law of this rate matrix (pi @ Q must vanish).")
        flux = self._pi[:, None] * off_diagonal
        self._reversible = bool((flux - flux.T).abs().max() <= 1e-9 * flux.max())
        self._decay, self._left, self._right = self._decompose(generator)

    def _decompose(self, generator: Float[Tensor, "n n"]) -> tuple[Tensor, Tensor, Tensor]:
        if self._reversible and self._pi.min() > 0:
            root = self._pi.sqrt()
            symmetric = root[:, None] * generator / root[None, :]
            values, vectors = torch.linalg.eigh((symmetric + symmetric.T) / 2)
            left, right = vectors / root[:, None], vectors.T * root[None, :]
        else:
            values, left = torch.linalg.eig(generator)
            right = torch.linalg.inv(left)
        error = (((left * values) @ right).real - generator).abs().max()
        if not error < 1e-6 * generator.abs().max():
            raise EigentimeError("This rate matrix has no stable eigen-decomposition; perturb it slightly.")
        decay = -values
        decay[decay.abs().argmin()] = 0  # exactly, so that α → 0 leaves π
        return decay, left, right

    @property
    def reversible(self) -> bool:
        return self._reversible

    @property
    def stationary(self) -> Float[Tensor, " size"]:
        return self._pi

    @property
    def gap(self) -> float:
        rates = self._decay.real
        return rates[rates > 1e-12 * rates.max()].min().item()

    def _transitions(self, alpha: Alphas) -> tuple[Float[Tensor, "k size size"], Tensor]:
        """P for each of the k different α in double precision, and which of them each token's is."""
        levels, which = torch.unique(alpha.cpu().double(), return_inverse=True)
        power = levels[:, None].to(self._decay.dtype) ** self._decay
        # rounding of the decomposition may leave -1e-17 where a probability is zero
        return ((self._left * power[:, None]) @ self._right).real.clamp(min=0.0), which

    def likelihood(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        return self.channel(x, alpha, like)

    def forward_law(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        matrices, which = self._transitions(alpha / since)
        return matrices.to(like)[which.to(like.device), x.to(like.device)]

    def channel(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE, since: Alphas = DATA) -> Rows:
        matrices, which = self._transitions(alpha / since)
        return matrices.mT.to(like)[which.to(like.device), x.to(like.device)]

    def quotient(self, posterior: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """q(x0)/P_t(x|x0), where a network's q may lie on values that x can hardly come from: P is kept above 1e-9."""
        return posterior / self.likelihood(x, alpha, posterior).clamp(min=LEAST_LIKELIHOOD)

    def spread(self, quotient: Rows, alpha: Alphas) -> Rows:
        matrices, which = self._transitions(alpha)
        matrices = matrices.to(quotient)
        if len(matrices) == 1:
            spread = quotient @ matrices[0]
        else:
            places = [(which == k).nonzero(as_tuple=True) for k in range(len(matrices))]
            spread = torch.zeros_like(quotient)
            for matrix, place in zip(matrices, places, strict=True):
                place = tuple(one.to(quotient.device) for one in place)
                spread = spread.index_put(place, quotient[place] @ matrix)
        return spread.clamp(min=ROUNDING * quotient.max(-1, keepdim=True).values)

    def posterior_of_scores(self, log_score: Rows, x: Tokens, alpha: Alphas) -> Rows:
        """Undoing the spread is unstable: on the CPU, in double precision, whatever the rows are."""
        score = log_score.exp().cpu().double().to(self._left.dtype)
        power = alpha[..., None].to(self._decay.dtype) ** self._decay
        quotient = (((score @ self._left) / power) @ self._right).real
        return (quotient * self.likelihood(x.cpu(), alpha)).to(log_score)

    def rates_into(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        rows: Tensor = self.rates.T.to(like)[x.to(like.device)]
        return rows

    def rates_out(self, x: Tokens, alpha: Alphas, like: Tensor = DOUBLE) -> Rows:
        rows: Tensor = self.rates.to(like)[x.to(like.device)]
        return rows

    def spec(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.rates.numpy().tobytes()).hexdigest()[:16]
        return {"name": self.name, "size": self.size, "gap": self.gap, "sha256": digest}

    def arrays(self) -> Arrays:
        return {"rates": self.rates.numpy(), "stationary": self._pi.numpy()}

    @classmethod
    def from_spec(cls, spec: dict[str, Any], arrays: Arrays) -> "RateMatrix":
        if "rates" not in arrays or "stationary" not in arrays:
            raise EigentimeError("A rate matrix is too long for a description: its rates are missing.")
        rates = arrays["rates"]
        return cls(rates - np.diag(rates.sum(1)), arrays["stationary"])

    @classmethod
    def for_grids(cls, spec: dict[str, Any], arrays: Arrays) -> Kernel:
        return cls.from_spec(spec, arrays) if arrays else Uniform(spec["size"])  # version 0.1 kept no rates


def _law(pi: Any) -> Float[Tensor, "..."]:
    """A stationary law as it was given."""
    try:
        return torch.as_tensor(np.asarray(pi, dtype=np.float64))
    except (TypeError, ValueError):
        raise EigentimeError("`pi` must hold one probability for every value, and they must sum to one.") from None


def _stationary(generator: Float[Tensor, "n n"]) -> Float[Tensor, " n"]:
    """The law with π Q = 0 and Σ π = 1, by least squares."""
    system = torch.cat([generator.T, torch.ones(1, len(generator), dtype=torch.float64)])
    target = torch.zeros(len(generator) + 1, 1, dtype=torch.float64)
    target[-1] = 1
    solution: Tensor = torch.linalg.lstsq(system, target).solution.squeeze(1).clamp(min=0)
    return solution
