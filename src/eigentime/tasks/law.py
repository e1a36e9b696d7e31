"""What a known data law is."""

from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor


class DataLaw(Protocol):
    """A law of data that is known: any sequence has an exact likelihood."""

    @property
    def entropy(self) -> float:
        """H of a sequence in nats."""

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p(x)."""

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        """Sequences; the same seed gives the same ones, other seeds others."""
