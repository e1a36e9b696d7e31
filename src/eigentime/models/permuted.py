"""An exact model whose places are mixed up: the same law, but neighbours are no longer where one looks for them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.models.oracle import Oracle


class Permuted(Oracle):
    """Place j of `original` is place permutation[j] of this model."""

    def __init__(self, original: Oracle, permutation: Sequence[int] | Tensor) -> None:
        values = len(original.process.kernel.values)
        super().__init__(f"{original.name}-permuted", original.process, original.length, values)
        self.original, self.places = original, torch.as_tensor(permutation)
        self._back = self.places.argsort()

    @property
    def entropy(self) -> float:
        return self.original.entropy

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        return self.original.log_likelihood(x[:, self.places])

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        return self.original.draw(count, seed)[:, self._back]

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        return self.original.marginals(emissions[:, self.places])[:, self._back]
