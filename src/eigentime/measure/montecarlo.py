"""The measuring pass: draw x0 from data, corrupt it, evaluate the network once, sum over the vocabulary.

The same sequences and the same uniforms serve every noise level, so that differences between levels are sharp.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.excess import angle_of, excess, interpolation_error
from eigentime.measure.pairs import Pairs
from eigentime.measure.profile import Profile
from eigentime.measure.sums import MASKED_SUMS, masked_sums, pair_sums, positions_measured, unpack_pair_sums
from eigentime.models.base import Model, batch_size_for
from eigentime.process.process import expand_mask
from eigentime.process.randomness import Purpose, uniforms

BLOCKS = 32
"""Sequences are dealt to at most this many jackknife blocks."""
FIRST_LEVELS = 9
FIRST_SEQUENCES = 8

Reference = Callable[[Clock], Float[np.ndarray, " k"]]
"""Makes the schedule (its α) whose predicted error decides when enough has been measured."""
Advance = Callable[[int, int], None]
"""Told the evaluations spent and the most that may be spent."""


class Levels(Protocol):
    """A way to lay out noise levels: by number of revealed tokens (absorbing) or by angle (other kernels)."""

    def first(self) -> list[float]:
        """The levels to begin with."""

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        """Sums for sequences first … first+count-1 at a level, and the evaluations that took."""

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"], counts: Any) -> Profile | Pairs:
        """Block sums at sorted levels as data of the clock."""

    def between(self, low: float, high: float) -> float | None:
        """A new level between two, or None where there is none."""

    def roughness(self, measured: Profile | Pairs) -> Float[np.ndarray, " g-1"]:
        """How uncertain the curve is between neighbouring levels."""


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


@dataclass
class CountLevels:
    """Absorbing kernel: exactly m of the free tokens revealed, the same nested choice at every level."""

    source: Source

    @property
    def free(self) -> int:
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
class TimeLevels:
    """Absorbing kernel at given times: Bernoulli masks, as in the paper's own setting. Levels are times."""

    source: Source

    def first(self) -> list[float]:
        raise AssertionError("times are given")

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

    def between(self, low: float, high: float) -> float | None:
        return None

    def roughness(self, measured: Profile | Pairs) -> Float[np.ndarray, " g-1"]:
        raise AssertionError("times are given")


@dataclass
class AngleLevels:
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
                rank = self.source.uniforms(Purpose.POSITIONS, start, number).masked_fill(fixed, 2.0).argsort(1).argsort(1)
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


@dataclass
class Tally:
    """The table of sums measured so far: sequences × levels."""

    layout: Levels
    levels: list[float]
    sums: dict[float, list[np.ndarray]] = field(default_factory=dict)
    sequences: int = 0
    evaluations: int = 0

    def add_level(self, level: float) -> None:
        self.levels = sorted([*self.levels, level])
        self._evaluate(level, 0, self.sequences)

    def add_sequences(self, count: int, advance: Advance | None = None, limit: int = 0) -> None:
        for level in self.levels:
            self._evaluate(level, self.sequences, count)
            if advance:
                advance(self.evaluations, limit)
        self.sequences += count

    def _evaluate(self, level: float, first: int, count: int) -> None:
        sums, spent = self.layout.evaluate(level, first, count)
        self.sums.setdefault(level, []).append(sums)
        self.evaluations += spent

    def measured(self) -> Profile | Pairs:
        """Block sums over the sequences so far."""
        table = np.stack([np.concatenate(self.sums[level]) for level in self.levels], axis=1)
        block = np.arange(self.sequences) % min(BLOCKS, self.sequences)
        blocks = np.zeros((min(BLOCKS, self.sequences), *table.shape[1:]))
        np.add.at(blocks, block, table)
        return self.layout.collect(self.levels, blocks, np.bincount(block))


def monte_carlo(
    model: Model,
    data: Any,
    *,
    fixed: Any = None,
    cond: Tensor | None = None,
    times: Sequence[float] | None = None,
    samples: int | None = None,
    budget: int,
    tolerance: float,
    seed: int,
    reference: Reference,
    advance: Advance | None = None,
) -> Clock:
    """Measure a model on data; see `eigentime.measure` for the arguments."""
    source = _source(model, data, fixed, cond, seed)
    with torch.no_grad():
        if times is not None:
            return _at_times(source, times, samples, advance)
        return _adaptive(source, budget, tolerance, reference, advance)


def _at_times(source: Source, times: Sequence[float], samples: int | None, advance: Advance | None) -> Clock:
    grid = np.unique(np.asarray(times, dtype=np.float64))
    if grid.size < 2 or not np.all((grid > 0) & (grid <= 1)):
        raise EigentimeError("`times` needs at least two different times in (0, 1].")
    samples = len(source.data) if samples is None else samples
    if samples < 1:
        raise EigentimeError(f"`samples` must be at least 1, not {samples}.")
    layout: Levels = TimeLevels(source) if source.model.process.absorbing else AngleLevels(source)
    tally = Tally(layout, grid.tolist())
    tally.add_sequences(samples, advance, samples * len(grid))
    return _clock(source, tally, tuple(grid.tolist()))


def _adaptive(
    source: Source, budget: int, tolerance: float, reference: Reference, advance: Advance | None
) -> Clock:
    """Spend evaluations where they help most: on a new level where interpolation is the larger uncertainty of the
    reference schedule's path error or levels are fewer than sequences, on more sequences where noise is; stop when both
    uncertainties are within the tolerance."""
    layout: Levels = CountLevels(source) if source.model.process.absorbing else AngleLevels(source)
    tally = Tally(layout, layout.first())
    sequences = max(2, min(FIRST_SEQUENCES, budget // len(tally.levels)))
    tally.add_sequences(sequences, advance, budget)
    while True:
        clock = _clock(source, tally, None)
        value, noise, gap = _accuracy(clock, reference(clock))
        if advance:
            advance(tally.evaluations, budget)
        if np.hypot(noise, gap) <= max(tolerance * value, 1e-4 * source.free):
            break
        left = budget - tally.evaluations
        level = _best_level(tally, clock) if gap > noise or len(tally.levels) < tally.sequences else None
        if level is not None and left >= tally.sequences:
            tally.add_level(level)
        elif left >= 2 * len(tally.levels):
            tally.add_sequences(min(tally.sequences, left // len(tally.levels)))
        else:
            break
    if advance:
        advance(tally.evaluations, tally.evaluations)
    return clock


def _best_level(tally: Tally, clock: Clock) -> float | None:
    roughness = tally.layout.roughness(clock.measured)
    if not len(roughness) or roughness.max() <= 0:
        return None
    widest = int(roughness.argmax())
    return tally.layout.between(tally.levels[widest], tally.levels[widest + 1])


def _accuracy(clock: Clock, alphas: Float[np.ndarray, " k"]) -> tuple[float, float, float]:
    """The reference schedule's path error, its standard error and its interpolation error."""
    everything = np.arange(clock.measured.blocks)
    value = excess(clock, smooth=False).path(alphas)
    gap = interpolation_error(clock, alphas)
    left_out = [excess(clock, smooth=False, blocks=np.delete(everything, b)).path(alphas) for b in everything]
    noise = np.sqrt((len(everything) - 1) * np.var(left_out)) if len(everything) > 1 else np.inf
    return value, float(noise), gap


def _source(model: Model, data: Any, fixed: Any, cond: Tensor | None, seed: int) -> Source:
    data = torch.as_tensor(np.asarray(data) if not isinstance(data, Tensor) else data)
    if data.ndim != 2 or len(data) == 0 or data.shape[1] != model.length:
        raise EigentimeError(
            f"Data must have shape (sequences, {model.length}) for {model.name}, not {tuple(data.shape)}."
        )
    model.process.check_tokens(data, "The data")
    mask = expand_mask(fixed, data.shape)
    if mask.all(1).any():
        raise EigentimeError("`fixed` marks every token of a sequence as given: there is nothing to measure.")
    return Source(model, data.long().cpu(), mask, cond, seed)


def _clock(source: Source, tally: Tally, times: tuple[float, ...] | None) -> Clock:
    model = source.model
    digest = hashlib.sha256(source.data.numpy().tobytes() + source.fixed.numpy().tobytes())
    return Clock(
        model=model.name,
        exact=model.exact,
        length=model.length,
        free=source.free,
        process=model.process.spec(),
        evaluations=tally.evaluations,
        seed=source.seed,
        data_fingerprint=digest.hexdigest()[:16],
        package=package_version(),
        times=times,
        measured=tally.measured(),
    )


def package_version() -> str:
    """The installed version of eigentime."""
    try:
        return version("eigentime")
    except PackageNotFoundError:
        return "unknown"

