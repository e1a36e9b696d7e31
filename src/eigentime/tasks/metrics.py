"""What every task's metrics are made of: a mean with its standard error over sequences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Integer, Shaped
from torch import Tensor

from eigentime.arguments import settle, shown
from eigentime.errors import EigentimeError
from eigentime.tasks.law import DataLaw

BLOCKS = 16


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error."""

    mean: float
    stderr: float

    def __post_init__(self) -> None:
        settle(self, mean=_a_number, stderr=_a_number)


def _a_number(value: Any, name: str) -> float:
    """Of any kind, infinite or undefined ones too: a standard error may be either."""
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise EigentimeError(f"{name} of an Estimate must be a number, not {shown(value)}.")
    return float(plain)


def over_sequences(values: Float[Tensor, " n"]) -> Estimate:
    """The mean of a number per sequence."""
    count = len(values)
    stderr = values.std().item() / count**0.5 if count > 1 else float("inf")
    return Estimate(values.mean().item(), stderr)


def as_estimates(found: Any) -> dict[str, Estimate]:
    """What a metric function of a user's own returned: one entry, called "metric", or a dictionary of entries. Each is
    an `Estimate`, a number, a pair (mean, standard error), or one value for every sequence, whose mean is taken."""
    if not isinstance(found, dict):
        found = {"metric": found}
    return {str(name): _as_estimate(str(name), value) for name, value in found.items()}


def _as_estimate(name: str, value: Any) -> Estimate:
    if isinstance(value, Estimate):
        return value
    try:
        numbers = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise EigentimeError(f"The metric {name!r} is {value!r}, which is not a number.") from None
    if numbers.ndim == 0:
        return Estimate(numbers.item(), float("nan"))
    if isinstance(value, (tuple, list)) and numbers.shape == (2,):
        return Estimate(*numbers.tolist())
    if numbers.ndim != 1 or not len(numbers):
        raise EigentimeError(
            f"The metric {name!r} has shape {tuple(numbers.shape)}; give a number, a pair (mean, standard error) or "
            "one value for every sequence."
        )
    return over_sequences(numbers)


def of_the_whole(x: Shaped[Tensor, "n ..."], statistic: Callable[[Tensor], float], blocks: int = BLOCKS) -> Estimate:
    """A statistic of all sequences together, with a jackknife over blocks of them."""
    parts = [part for part in x.tensor_split(min(blocks, len(x))) if len(part)]
    value = statistic(x)
    if len(parts) < 2:
        return Estimate(value, float("inf"))
    left_out = [statistic(torch.cat(parts[:k] + parts[k + 1 :])) for k in range(len(parts))]
    return Estimate(value, float(np.sqrt((len(parts) - 1) * np.var(left_out))))


def surprise(law: DataLaw, x: Int[Tensor, "n length"], log_p: Float[Tensor, " n"] | None = None) -> Estimate:
    """E_samples[-ln p(x)] - H in nats: how much unlikelier than data samples are under the exact law."""
    value = over_sequences(-(law.log_likelihood(x) if log_p is None else log_p))
    return Estimate(value.mean - law.entropy, value.stderr)


def histogram(tokens: Int[Tensor, "..."], size: int) -> Float[Tensor, " size"]:
    """Relative frequencies of token values."""
    counts = torch.bincount(tokens.flatten(), minlength=size)[:size].double()
    return counts / counts.sum().clamp(min=1)


def hellinger(p: Float[Tensor, " n"], q: Float[Tensor, " n"]) -> float:
    """√(½ Σ (√p - √q)²), between 0 and 1."""
    return (((p.sqrt() - q.sqrt()) ** 2).sum() / 2).sqrt().item()


def unigram_entropy(x: Int[Tensor, "n length"]) -> Estimate:
    """Entropy of the token frequencies in nats: low where samples collapse."""
    size = int(x.max()) + 1

    def entropy(part: Tensor) -> float:
        return float(torch.special.entr(histogram(part, size)).sum().item())

    return of_the_whole(x, entropy)


def sequence_entropy(x: Integer[Tensor, "n length"]) -> Float[Tensor, " n"]:
    """Entropy of each sequence's own token frequencies in nats: low where it repeats itself."""
    counts = [row.unique(return_counts=True)[1].double() for row in x]
    return torch.stack([torch.special.entr(count / count.sum()).sum() for count in counts])


def distinct_grams(x: Int[Tensor, "n length"], k: int) -> Estimate:
    """Distinct-k: different strings of k tokens among all of a sample (of equal size only, for it falls with it)."""
    size, grams = int(x.max()) + 1, x.unfold(1, k, 1)
    codes = (grams.long() * size ** torch.arange(k - 1, -1, -1)).sum(-1)
    return of_the_whole(codes, lambda part: len(part.unique()) / part.numel())


def distinct(x: Int[Tensor, "n length"]) -> Estimate:
    """Share of sequences that occur once in the sample."""
    _, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    return over_sequences((counts[inverse] == 1).double())
