"""dllm (ZHZisZZ/dllm): a schedule as its α scheduler.

Its samplers walk through t = 1 - k/K and reveal the share that α gains, so any schedule of K steps is a curve through
its own points at those times, with nothing to patch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from eigentime.engines.reveals import reveals
from eigentime.engines.tested import engine
from eigentime.schedules import Plan, Schedule

TESTED = ("0.1.0",)


def scheduler(followed: Schedule | Plan, block_size: int | None = None) -> Any:
    """A `BaseAlphaScheduler` with α(1 - k/K) = α_k and straight lines in between.

    With `block_size`, α_k is rounded to whole tokens of a block, so that dllm's own rounding finds exactly the counts
    of `followed`; a plan always knows its block's size. Places stay dllm's choice: `remasking="random"` draws them as
    a schedule does, and `temperature=1.0` draws tokens from the posteriors.
    """
    what = reveals(followed)
    size = block_size or what.length
    shares = what.reached / what.reached[-1] if size is None else what.stops(size) / size
    return scheduler_class()(tuple(shares.tolist()))


@cache
def scheduler_class() -> type:
    """The scheduler's class, made when first needed; dllm registers it under its name by itself."""
    base = engine("dllm.core.schedulers", "ZHZisZZ/dllm", TESTED).BaseAlphaScheduler

    @dataclass
    class EigentimeAlphaScheduler(base):  # type: ignore[misc, valid-type]
        """α(t) through the points (1 - k/K, α_k)."""

        shares: Sequence[float]

        def _pieces(self, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """α at both ends of the piece that t lies in, and how far t has gone from noise to data within it."""
            points = torch.as_tensor(self.shares, dtype=torch.float32, device=t.device)
            walked = (1 - t) * (len(points) - 1)
            piece = walked.floor().long().clamp(0, len(points) - 2)
            return points[piece], points[piece + 1], walked - piece

        def _alpha(self, t: Tensor) -> Tensor:
            return torch.lerp(*self._pieces(t))

        def _alpha_derivative(self, t: Tensor) -> Tensor:
            start, end, _ = self._pieces(t)
            return (start - end) * (len(self.shares) - 1)

    return EigentimeAlphaScheduler
