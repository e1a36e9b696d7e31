"""Orders by residue classes: every m-th place at a time, classes far from each other first."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from eigentime.arguments import checked, whole
from eigentime.orders.base import Free, Order, Permutation
from eigentime.orders.spread import van_der_corput


class Lattice(Order):
    """The free tokens ≡ 0 modulo m, then those ≡ m/2, m/4, …: one class after the other, from a random first one.

    With m steps of one class each, tokens of a step are m apart. Within a class they come as van der Corput's sequence
    has them.
    """

    @checked(period=whole(1))
    def __init__(self, period: int) -> None:
        self.period = period

    @property
    def name(self) -> str:  # type: ignore[override]
        """With the period: lattice-8."""
        return f"lattice-{self.period}"

    def arrange(self, free: Free, u: Float[np.ndarray, " length"]) -> Permutation:
        positions = np.flatnonzero(free)
        first = int(u[0] * self.period)
        classes = [positions[(residue + first) % self.period :: self.period] for residue in van_der_corput(self.period)]
        return np.concatenate([each[van_der_corput(len(each))] for each in classes if len(each)] or [positions])

    def stops(self, free: int) -> Int[np.ndarray, " k"] | None:
        """Cumulative counts after each class, where classes are equally large and so the same for every sequence."""
        return None if free % self.period else np.arange(self.period + 1) * (free // self.period)

    def spec(self) -> dict[str, Any]:
        return {"name": "lattice", "period": self.period}
