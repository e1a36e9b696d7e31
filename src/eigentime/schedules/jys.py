"""Jump Your Steps (Park et al. 2024): between neighbours t1 > t3 put t2 where the KL upper bound gains most.

KLUB(t1, t2, t3) = (t2-t3)·E Σ_y R_{t2}(x_{t2})_y [ln R_{t2}(x_{t2})_y - ln R_{t1}(x_{t1})_y], with x_{t1} and x_{t2}
noised from the same data with the same random numbers. Every level doubles the number of steps.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Evaluation, Model, posterior_rows
from eigentime.models.batching import OUT_OF_MEMORY, BatchSize
from eigentime.models.clean import clean_data
from eigentime.models.placement import widest
from eigentime.process.kernel import Rows
from eigentime.process.process import expand_mask
from eigentime.process.randomness import Purpose, uniforms

GRID = 1024
"""Points are snapped to 1/1024, as in the paper."""
MOST_STEPS = GRID // 4
MARGIN = 1e-3
LOG_FLOOR = 1e-8
KEPT_ELEMENTS = 2**28
"""Numbers of an evaluation that are kept."""
GOLDEN = 1.618
"""The reference's rounding of the golden ratio."""


def jys_levels(
    model: Model,
    data: Any,
    steps: int,
    seed: int = 42,
    fixed: Any = None,
    advance: Callable[[int], None] | None = None,
) -> dict[int, tuple[Float[np.ndarray, " k"], int]]:
    """Times for 1, 2, 4, … `steps` steps, each with the network evaluations (in sequences) spent up to it."""
    if steps < 1 or steps & (steps - 1) or steps > MOST_STEPS:
        raise EigentimeError(
            f"JYS doubles its steps at every level: ask for 1, 2, 4, … {MOST_STEPS} steps, not {steps}."
        )
    bound = Klub(model, data, seed, fixed)
    nodes = [0, GRID]  # indices of t = 1 - index/GRID
    levels = {1: (np.array([1.0, 0.0]), 0)}
    while len(nodes) - 1 < steps:
        doubled = []
        for noisy, clean in pairwise(nodes):
            doubled += [noisy, _best_between(bound, noisy, clean, steps // (len(nodes) - 1))]
            if advance:
                advance(bound.evaluations)
        nodes = [*doubled, nodes[-1]]
        levels[len(nodes) - 1] = (1.0 - np.array(nodes) / GRID, bound.evaluations)
    return levels


def _best_between(bound: "Klub", noisy: int, clean: int, splits: int) -> int:
    """The grid index between two that maximises KLUB, with room for the `splits` steps this interval will become."""
    t1, t3 = 1 - noisy / GRID, 1 - clean / GRID
    margin = min(MARGIN, (t1 - t3) / 4)
    best, _ = golden_section(lambda t2: -bound(t1, t2, t3), t3 + margin, t1 - margin, 0.25 / GRID)
    room = max(1, splits // 2)
    return int(np.clip(round((1 - best) * GRID), noisy + room, clean - room))


def golden_section(
    function: Callable[[float], float], low: float, high: float, tolerance: float, most: int = 32
) -> tuple[float, list[float]]:
    """The best of all points that a golden-section search for the minimum looks at, and those points in order.

    As the reference does it: a better point only becomes the centre, a worse one becomes the border.
    """
    seen: dict[float, float] = {}

    def value(point: float) -> float:
        key = round(point, 12)  # a point met again by another route is not evaluated again
        if key not in seen:
            seen[key] = function(point)
        return seen[key]

    a, b, c = low, low + (high - low) / (1 + GOLDEN), high
    for point in (a, b, c):
        value(point)
    for _ in range(most):
        if abs(c - a) < tolerance:
            break
        right = c - b > b - a
        d = b + (c - b) / (1 + GOLDEN) if right else b - (b - a) / (1 + GOLDEN)
        if value(d) < value(b):
            b = d
        elif right:
            c = d
        else:
            a = d
    return min(seen, key=lambda point: seen[point]), list(seen)


class Klub:
    """KLUB estimated on fixed data and random numbers, summed up piece by piece.

    The evaluation at t1 is kept while t2 moves: hidden rows, or outputs where a network has no separate head, unless
    they are too many; then it is made again.
    """

    def __init__(
        self, model: Model, data: Any, seed: int, fixed: Any = None, batch_size: int | Literal["auto"] = "auto"
    ) -> None:
        self.model, self.batch = model, BatchSize(model, batch_size)
        self.data = clean_data(data, model)
        self.fixed = expand_mask(fixed, self.data.shape)
        self.jump = uniforms(seed, Purpose.CORRUPT, *self.data.shape)
        self.replace = uniforms(seed, Purpose.REPLACE, *self.data.shape)
        self.evaluations = 0
        self._kept: tuple[float, list[Evaluation]] = (-1.0, [])

    def __call__(self, t1: float, t2: float, t3: float) -> float:
        """Mean over batch and all positions, given ones included, as the reference takes it."""
        while True:
            try:
                sums = self._sums(t1, t2)
                break
            except OUT_OF_MEMORY as error:
                self.batch.shrink(error, min(self.batch.value, len(self.data)))
                self._kept = (-1.0, [])
        total = torch.stack(sums).cpu().double().sum().item() if sums else 0.0
        return (t2 - t3) * total / self.data.numel()

    def _sums(self, t1: float, t2: float) -> list[Tensor]:
        """One number for every piece of the rows, where the rows are."""
        sums, parts = [], torch.arange(len(self.data)).split(self.batch.value)
        noisy, less_noisy = self._noised(t1), self._noised(t2)
        for k, part in enumerate(parts):
            before, after = noisy[part], less_noisy[part]
            # where the rows of t2 are among those of t1
            rows = self._active(after)[self._active(before)].nonzero().squeeze(1)
            kept = self._evaluation_at_t1(t1, before, k)
            tokens = before[self._active(before)][rows], after[self._active(after)]
            for piece, logs in self._evaluate(after, t2).pieces():
                old = self.model.head(kept.rows[rows[piece].to(kept.rows.device)])
                rates = [self._rates(one, x[piece], t) for one, x, t in zip((old, logs), tokens, (t1, t2), strict=True)]
                sums.append(klub_sum(rates[1], rates[0]))
        return sums

    def _evaluation_at_t1(self, t1: float, x: Int[Tensor, "b length"], part: int) -> Evaluation:
        """Kept from the last call, or made, and kept if that is not too much."""
        if self._kept[0] != t1:
            self._kept = (t1, [])
        kept = self._kept[1]
        if part < len(kept):
            return kept[part]
        evaluation = self._evaluate(x, t1)
        if part == len(kept) and sum(one.rows.numel() for one in kept) + evaluation.rows.numel() <= KEPT_ELEMENTS:
            kept.append(evaluation)
        return evaluation

    def _evaluate(self, x: Int[Tensor, "b length"], t: float) -> Evaluation:
        self.evaluations += len(x)
        times = torch.full((len(x),), t, dtype=torch.float64)
        return self.model.evaluate(x, times, self._active(x))

    def _noised(self, t: float) -> Int[Tensor, "n length"]:
        at = torch.full((len(self.data),), t, dtype=torch.float64)
        return torch.where(self.fixed, self.data, self.model.process.corrupt(self.data, at, self.jump, self.replace))

    def _active(self, x: Int[Tensor, "b length"]) -> Bool[Tensor, "b length"]:
        """Positions with reverse rates: masks (nested in t, so those at t2 are among those at t1), or all, given ones
        too, as in the reference."""
        return self.model.process.kernel.active(x)

    def _rates(self, logs: Rows, x: Int[Tensor, " n"], t: float) -> Rows:
        """Reverse rates, zero at the present token; the mask column stays empty. As precise as the device can be."""
        at = torch.tensor(t, dtype=torch.float64)
        posterior = posterior_rows(self.model, logs.to(widest(logs.device)), x, at)
        return self.model.process.reverse_rates(posterior, x, at)


def klub_sum(after: Rows, before: Rows) -> Float[Tensor, ""]:
    """Σ R2·[ln(R2 + 1e-8) - ln(R1 + 1e-8)] over rows and values."""
    return (after * ((after + LOG_FLOOR).log() - (before + LOG_FLOOR).log())).sum()
