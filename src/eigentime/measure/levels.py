"""Noise levels: how data is corrupted to one, and how levels are laid out for each kind of kernel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.measure.excess import angle_of
from eigentime.measure.pairs import Pairs
from eigentime.measure.profile import Profile
from eigentime.measure.sums import MASKED_SUMS, masked_sums, pair_sums, positions_measured, unpack_pair_sums
from eigentime.models.base import Model, batch_size_for
from eigentime.process.randomness import Purpose, uniforms

FIRST_LEVELS = 9


@dataclass
class Source:
    """Data sequences with their conditioning and their random numbers; sequence i re-uses row i mod N of the data."""

    model: Model
    data: Int[Tensor, "n length"]
    fixed: Bool[Tensor, "n length"]
    cond: Tensor | None
    seed: int

    def rows(self, first: int, count: int) -> tuple[Int[Tensor, "count length"], Bool[Tensor, "count length"], Any]:
        """Clean tokens, which of them are given, and the condition, for a run of sequences."""
        index = torch.arange(first, first + count) % len(self.data)
        return self.data[index], self.fixed[index], None if self.cond is None else self.cond[index]

    def uniforms(self, purpose: Purpose, first: int, count: int) -> Float[Tensor, "count length"]:
        """Uniforms of a run of sequences."""
        return uniforms(self.seed, purpose, count, self.data.shape[1], first=first)

    @property
    def free(self) -> float:
        """Mean number of tokens that are not given."""
        return (~self.fixed).double().sum(1).mean().item()

    def batched(
        self, first: int, count: int, run: Callable[[int, int], Float[np.ndarray, "b n"]]
    ) -> Float[np.ndarray, "count n"]:
        """Run a function of (first, count) over micro-batches and stack what it returns."""
        batch = batch_size_for(self.model)
        return np.concatenate([run(i, min(batch, first + count - i)) for i in range(first, first + count, batch)])


class Layout(ABC):
    """How noise levels are laid out, and how one is evaluated."""

    @abstractmethod
    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        """Sums for sequences first … first+count-1 at a level, and the evaluations that took."""

    @abstractmethod
    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"], counts: Any) -> Profile | Pairs:
        """Block sums at sorted levels as data of the clock."""


class AdaptiveLayout(Layout):
    """A layout that can choose its own levels."""

    @abstractmethod
    def first(self) -> list[float]:
        """The levels to begin with."""

    @abstractmethod
    def between(self, low: float, high: float) -> float | None:
        """A new level between two, or None where there is none."""

    @abstractmethod
    def roughness(self, measured: Profile | Pairs) -> Float[np.ndarray, " g-1"]:
        """How uncertain the curve is between neighbouring levels."""


@dataclass
class CountLevels(AdaptiveLayout):
    """Absorbing kernel: exactly m of the free tokens revealed, the same nested choice at every level."""

    source: Source

    @property
    def free(self) -> int:
        """How many tokens of a sequence are free, as a whole number."""
        return round(self.source.free)

    def first(self) -> list[float]:
        grid = np.sin(np.pi / 2 * np.linspace(0, 1, FIRST_LEVELS)) ** 2 * self.free
        return sorted({float(m) for m in np.clip(np.round(grid), 0, self.free - 1)})

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        model = self.source.model
        nothing_known = level == 0 and self.source.cond is None and not self.source.fixed.any()
        t = model.process.noise.time_of_alpha(level / self.free).item()

        def run(start: int, number: int) -> Float[np.ndarray, "b n"]:
            x0, fixed, cond = self.source.rows(start, number)
            u = self.source.uniforms(Purpose.CORRUPT, start, number).masked_fill(fixed, -1.0)
            # reveal the tokens of lowest u: given ones first, then m of the free (in proportion where rows differ)
            share = (level / self.free * (~fixed).sum(1)).round().long() + fixed.sum(1)
            revealed = u.argsort(1).argsort(1) < share[:, None]
            x = torch.where(revealed, x0, model.process.kernel.mask)  # type: ignore[attr-defined]
            times = torch.full((number,), t, dtype=torch.float64)
            return masked_sums(model, x, x0, times, cond, shared=nothing_known)

        if nothing_known:  # all masks: one evaluation serves every sequence
            return run(first, count), 1
        return self.source.batched(first, count, run), count

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"], counts: Any) -> Profile:
        named = {name: sums[..., k] for k, name in enumerate(MASKED_SUMS)}
        return Profile(levels=np.array(levels), counts=True, free=self.free, **named)

    def between(self, low: float, high: float) -> float | None:
        return float((low + high) // 2) if high - low > 1 else None

    def roughness(self, measured: Profile | Pairs) -> Float[np.ndarray, " g-1"]:
        assert isinstance(measured, Profile)
        # a decreasing curve lies inside the box that two neighbouring levels span
        drop = np.maximum(-np.diff(measured.mean("entropy")), 0.0)
        width = np.diff(measured.levels)
        return np.where(width > 1, drop * width, 0.0)


@dataclass
class TimeLevels(Layout):
    """Absorbing kernel at given times: Bernoulli masks, as in the paper's own setting. Levels are times."""

    source: Source

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        model = self.source.model

        def run(start: int, number: int) -> Float[np.ndarray, "b n"]:
            x0, fixed, cond = self.source.rows(start, number)
            u = self.source.uniforms(Purpose.CORRUPT, start, number)
            t = torch.full((number,), level, dtype=torch.float64)
            x = torch.where(fixed, x0, model.process.corrupt(x0, t, u, u))
            return masked_sums(model, x, x0, t, cond)

        return self.source.batched(first, count, run), count

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"], counts: Any) -> Profile:
        alphas = self.source.model.process.noise.alpha(np.array(levels)).numpy()[::-1]
        named = {name: sums[:, ::-1, k] for k, name in enumerate(MASKED_SUMS)}
        return Profile(levels=alphas, counts=False, free=round(self.source.free), **named)


@dataclass
class AngleLevels(AdaptiveLayout):
    """Kernels without a mask: levels are times, spread evenly in the angle θ = arccos √α."""

    source: Source
    positions: int = field(init=False)

    def __post_init__(self) -> None:
        self.positions = positions_measured(self.source.model, round(self.source.free))

    def first(self) -> list[float]:
        noise = self.source.model.process.noise
        highest = float(angle_of(noise.alpha(1.0).numpy()))
        lowest = max(float(angle_of(noise.alpha(0.0).numpy())), highest / (2 * FIRST_LEVELS))
        inner = noise.time_of_alpha(np.cos(np.linspace(lowest, highest, FIRST_LEVELS)[1:-1]) ** 2)
        edge = noise.time_of_alpha(np.cos(lowest) ** 2).item()
        return sorted({*inner.tolist(), max(edge, 1e-3), 1.0})

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        model = self.source.model

        def run(start: int, number: int) -> Float[np.ndarray, "b n"]:
            x0, fixed, cond = self.source.rows(start, number)
            jump = self.source.uniforms(Purpose.CORRUPT, start, number)
            replace = self.source.uniforms(Purpose.REPLACE, start, number)
            t = torch.full((number,), level, dtype=torch.float64)
            x = torch.where(fixed, x0, model.process.corrupt(x0, t, jump, replace))
            where = ~fixed
            free = where.sum(1, keepdim=True).double()
            if self.positions < free.max():
                rank = (
                    self.source.uniforms(Purpose.POSITIONS, start, number).masked_fill(fixed, 2.0).argsort(1).argsort(1)
                )
                where = where & (rank < self.positions)
            scale = (free / where.sum(1, keepdim=True).clamp(min=1)).numpy()
            return pair_sums(model, x, x0, where, level, cond) * scale

        return self.source.batched(first, count, run), count

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"], counts: Any) -> Pairs:
        angles = angle_of(self.source.model.process.noise.alpha(np.array(levels)).numpy())
        return Pairs(angles=angles, sequences=np.asarray(counts, dtype=float), **unpack_pair_sums(sums))

    def between(self, low: float, high: float) -> float | None:
        noise = self.source.model.process.noise
        middle = angle_of(noise.alpha(np.array([low, high])).numpy()).mean()
        time = noise.time_of_alpha(np.cos(middle) ** 2).item()
        return time if low < time < high else None

    def roughness(self, measured: Profile | Pairs) -> Float[np.ndarray, " g-1"]:
        assert isinstance(measured, Pairs)
        slope = measured.mean("slope") * 2 * np.tan(measured.angles)
        return np.abs(np.diff(slope)) * np.diff(measured.angles)
