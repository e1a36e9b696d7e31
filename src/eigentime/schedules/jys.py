"""Jump Your Steps (Park et al. 2024): between neighbours t1 > t3 put t2 where the KL upper bound gains most.

KLUB(t1, t2, t3) = (t2-t3)·E Σ_y R_{t2}(x_{t2})_y [ln R_{t2}(x_{t2})_y - ln R_{t1}(x_{t1})_y], with x_{t1} and x_{t2}
noised from the same data with the same random numbers. Every level doubles the number of steps.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.base import Model, batch_size_for, on_host, posterior_rows
from eigentime.process.absorbing import Absorbing
from eigentime.process.process import as_tokens, expand_mask
from eigentime.process.randomness import Purpose, uniforms

GRID = 1024
"""Points are snapped to 1/1024, as in the paper."""
MOST_STEPS = GRID // 4
MARGIN = 1e-3
LOG_FLOOR = 1e-8
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
    """KLUB estimated on fixed data and random numbers; what was evaluated at a time is kept while it is needed."""

    def __init__(self, model: Model, data: Any, seed: int, fixed: Any = None) -> None:
        self.model = model
        self.data = as_tokens(data, "The data")
        if self.data.ndim != 2 or self.data.shape[1] != model.length:
            raise EigentimeError(
                f"Data must have shape (sequences, {model.length}) for {model.name}, not {tuple(self.data.shape)}."
            )
        model.process.check_tokens(self.data, "The data")
        self.fixed = expand_mask(fixed, self.data.shape)
        self.jump = uniforms(seed, Purpose.CORRUPT, *self.data.shape)
        self.replace = uniforms(seed, Purpose.REPLACE, *self.data.shape)
        self.evaluations = 0
        self._rates = lru_cache(maxsize=2)(self._evaluate)

    def __call__(self, t1: float, t2: float, t3: float) -> float:
        """Mean over batch and all positions, given ones included, as the reference takes it."""
        before, after = self._rates(t1), self._rates(t2)
        active = self._active(t2)
        pieces = zip(after.split(4096), before[active[self._active(t1)]].split(4096), strict=True)
        return (t2 - t3) * sum(klub_sum(new, old) for new, old in pieces) / self.data.numel()

    def _noised(self, t: float) -> Tensor:
        at = torch.full((len(self.data),), t, dtype=torch.float64)
        return torch.where(self.fixed, self.data, self.model.process.corrupt(self.data, at, self.jump, self.replace))

    def _active(self, t: float) -> Tensor:
        """Positions with reverse rates: masks (nested in t, so those at t2 are among those at t1), or all, given ones
        too, as in the reference."""
        kernel = self.model.process.kernel
        return kernel.masked(self._noised(t)) if isinstance(kernel, Absorbing) else torch.ones_like(self.fixed)

    def _evaluate(self, t: float) -> Float[Tensor, "n size"]:
        """Reverse rates at the active positions, zero at the present token; the mask column stays empty."""
        process, x, where = self.model.process, self._noised(t), self._active(t)
        batch, rates = batch_size_for(self.model), [torch.empty(0, process.kernel.size, dtype=torch.float64)]
        for first in range(0, len(x), batch):
            part, asked = x[first : first + batch], where[first : first + batch]
            tokens, times = part[asked], torch.full((len(part),), t, dtype=torch.float64)
            for block, logs in self.model.row_blocks(part, times, asked):
                at, token = times[0].expand(len(logs)), tokens[block]
                score = process.kernel.score(
                    on_host(posterior_rows(self.model, logs, token, at)), token, process.noise.alpha(at)
                )
                rates.append(process.reverse_rates(score, token, at))
        self.evaluations += len(x)
        return torch.cat(rates)


def klub_sum(after: Float[Tensor, "n size"], before: Float[Tensor, "n size"]) -> float:
    """Σ R2·[ln(R2 + 1e-8) - ln(R1 + 1e-8)] over rows and values."""
    return (after * ((after + LOG_FLOOR).log() - (before + LOG_FLOOR).log())).sum().item()
