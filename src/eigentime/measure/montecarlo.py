"""The measuring pass: draw x0 from data, corrupt it, evaluate the network once, sum over the vocabulary.

The same sequences and the same uniforms serve every noise level, so that differences between levels are sharp.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float

from eigentime.code import package_version
from eigentime.errors import EigentimeError
from eigentime.measure.chain import Sums, chain_sums, collect_pairs
from eigentime.measure.clock import Clock
from eigentime.measure.costs import angle_of
from eigentime.measure.groups import GROUPS, interpolation_gap, jackknife
from eigentime.measure.levels import CountLevels, Layout, Source, TimeLevels
from eigentime.measure.pairs import Pairs
from eigentime.measure.profile import Profile
from eigentime.measure.seen import Seen, part_in_groups
from eigentime.measure.share import Share
from eigentime.models.oracle import Oracle

FIRST_SEQUENCES = 8
FEW_SEQUENCES = 4
"""Fewer different ones say next to nothing of how much sequences differ."""
FIRST_LOOK = GROUPS
"""No pass stops before it has so many sequences. A standard error from a few is often too small by chance, and stopping
the first time it looks small keeps just those passes whose error bars are too short."""
ENOUGH_LEVELS = 24
"""Up to here levels keep pace with sequences; beyond, only where interpolation is the larger error."""

Reference = Callable[[Clock], Float[np.ndarray, " k"]]
"""Makes the schedule (its α) whose predicted error decides when enough has been measured."""
Advance = Callable[[int, int], None]
"""Told the evaluations spent and the most that may be spent."""


@dataclass
class Tally:
    """The table of sums measured so far: sequences × levels."""

    layout: Layout
    levels: list[float]
    sums: dict[float, list[np.ndarray]] = field(default_factory=dict)
    sequences: int = 0
    evaluations: int = 0
    share: Seen | None = None
    """Which sequences, where others are measured elsewhere."""

    @property
    def seen(self) -> Seen:
        """Which sequences so far."""
        return self.share or self.layout.source.seen(0, self.sequences)

    def add_level(self, level: float) -> None:
        """Measure all sequences so far at one more level."""
        self.levels = sorted([*self.levels, level])
        self._evaluate(level, 0, self.sequences)

    def add_sequences(self, count: int, advance: Advance | None = None, limit: int = 0) -> None:
        """Measure more sequences at all levels."""
        for level in self.levels:
            self._evaluate(level, (0 if self.share is None else _first(self.share)) + self.sequences, count)
            if advance:
                advance(self.evaluations, limit)
        self.sequences += count

    def _evaluate(self, level: float, first: int, count: int) -> None:
        sums, spent = self.layout.evaluate(level, first, count)
        self.sums.setdefault(level, []).append(sums)
        self.evaluations += spent

    def measured(self) -> Profile:
        """Block sums over the sequences so far."""
        table = np.stack([np.concatenate(self.sums[level]) for level in self.levels], axis=1)
        return self.layout.collect(self.levels, part_in_groups(table, self.seen))


@dataclass
class Chain:
    """The sums measured so far on a kernel without mask: sequences, each at all levels."""

    source: Source
    times: list[float]
    sums: list[Sums] = field(default_factory=list)
    sequences: int = 0
    share: Seen | None = None
    """Which sequences, where others are measured elsewhere."""

    @property
    def seen(self) -> Seen:
        """Which sequences so far."""
        return self.share or self.source.seen(0, self.sequences)

    @property
    def evaluations(self) -> int:
        """Network evaluations so far, in sequences."""
        return self.sequences * self.cost

    @property
    def cost(self) -> int:
        """What a sequence costs."""
        return len(self.times) * self.source.model.passes

    def add_sequences(self, count: int) -> None:
        """Measure more sequences."""
        first = (0 if self.share is None else _first(self.share)) + self.sequences
        self.sums.append(chain_sums(self.source, self.times, first, count))
        self.sequences += count

    def measured(self) -> Pairs:
        """Block sums over the sequences so far."""
        tables = {name: np.concatenate([part[name] for part in self.sums]) for name in self.sums[0]}
        sums = {name: part_in_groups(table, self.seen) for name, table in tables.items()}
        return collect_pairs(self.source, self.times, sums, part_in_groups(np.ones(self.sequences), self.seen))


def monte_carlo(
    source: Source,
    *,
    times: Sequence[float] | None = None,
    samples: int | None = None,
    budget: int,
    tolerance: float,
    reference: Reference,
    advance: Advance | None = None,
) -> Clock:
    """Measure a model on data; see `eigentime.measure` for the arguments."""
    different = len(torch.unique(source.data, dim=0))
    if different < FEW_SEQUENCES:
        warnings.warn(
            f"The data hold only {different} different sequence{'s' if different > 1 else ''}: error bars "
            "and intervals then hardly know how much sequences differ. Measure on more.",
            stacklevel=3,
        )
    with torch.no_grad():
        if times is not None:
            return _at_times(source, times, samples, advance)
        adaptive = _adaptive_counts if source.model.process.absorbing else _adaptive_chain
        return adaptive(source, budget, tolerance, reference, advance)


def monte_carlo_share(source: Source, share: Share, advance: Advance | None = None) -> Clock:
    """What one of several parts measures: the pilot's levels, and a number of sequences that is known beforehand."""
    share.check(source)
    seen, pilot = share.levels(source), share.pilot
    count = seen.stretches[0].count
    with torch.no_grad():
        if isinstance(pilot.measured, Profile):
            layout = CountLevels(source) if pilot.times is None else TimeLevels(source)
            tally = Tally(layout, list(pilot.times or pilot.measured.levels.tolist()), share=seen)
            tally.add_sequences(count, advance, count * len(tally.levels))
            return _clock(source, tally, pilot.times)
        noise = source.model.process.noise
        times = pilot.times or noise.time_of_alpha(np.cos(pilot.measured.angles) ** 2).tolist()
        chain = Chain(source, [*times[:-1], min(times[-1], 1.0)], share=seen)
        chain.add_sequences(count)
        return _clock(source, chain, pilot.times)


def _first(seen: Seen) -> int:
    """The number of its first sequence."""
    return seen.stretches[0].first


def _at_times(source: Source, times: Sequence[float], samples: int | None, advance: Advance | None) -> Clock:
    grid = np.unique(np.asarray(times, dtype=np.float64))
    if grid.size < 2 or not np.all((grid > 0) & (grid <= 1)):
        raise EigentimeError("`times` needs at least two different times in (0, 1].")
    samples = len(source.data) if samples is None else samples
    if samples < 1:
        raise EigentimeError(f"`samples` must be at least 1, not {samples}.")
    if source.model.process.absorbing:
        tally = Tally(TimeLevels(source), grid.tolist())
        tally.add_sequences(samples, advance, samples * len(grid))
        return _clock(source, tally, tuple(grid.tolist()))
    chain = Chain(source, grid.tolist())
    while chain.sequences < samples:
        chain.add_sequences(min(max(8, samples // 16), samples - chain.sequences))
        if advance:
            advance(chain.evaluations, samples * len(grid))
    return _clock(source, chain, tuple(grid.tolist()))


def _adaptive_counts(
    source: Source, budget: int, tolerance: float, reference: Reference, advance: Advance | None
) -> Clock:
    """Absorbing kernel. Spend evaluations where they help most: on a new level where interpolation is the larger
    uncertainty of the reference schedule's path error or levels lag behind sequences, on more sequences where noise is;
    stop when both uncertainties are within the tolerance, judged by at least `FIRST_LOOK` sequences."""
    layout = CountLevels(source)
    tally = Tally(layout, layout.first())
    tally.add_sequences(max(1, min(FIRST_SEQUENCES, budget // len(tally.levels))), advance, budget)
    while True:
        clock = _clock(source, tally, None)
        noise, gap, tolerable = _accuracy(clock, reference, tolerance)
        enough = tolerable and tally.sequences >= FIRST_LOOK
        if advance:
            advance(tally.evaluations, tally.evaluations if enough else budget)
        left = budget - tally.evaluations
        few_levels = len(tally.levels) < min(tally.sequences, ENOUGH_LEVELS)
        level = _best_level(layout, tally) if gap > noise or few_levels else None
        if enough:
            return clock
        if level is not None and left >= tally.sequences:
            tally.add_level(level)
        elif left >= 2 * len(tally.levels):
            tally.add_sequences(min(tally.sequences, left // len(tally.levels)))
        else:
            return clock


def _adaptive_chain(
    source: Source, budget: int, tolerance: float, reference: Reference, advance: Advance | None
) -> Clock:
    """Kernels without a mask: levels even in angle, as many as sequences; then more sequences until both noise and
    interpolation are within the tolerance, judged by at least `FIRST_LOOK` of them, or the budget is spent."""
    noise = source.model.process.noise
    levels = int(np.clip(np.sqrt(budget // source.model.passes), 4, ENOUGH_LEVELS))
    highest = angle_of(noise.alpha(1.0).numpy())
    lowest = max(angle_of(noise.alpha(0.0).numpy()), highest / (2 * levels))
    times = noise.time_of_alpha(np.cos(np.linspace(lowest, highest, levels)) ** 2).clamp(min=1e-4)
    chain = Chain(source, [*times[:-1].tolist(), 1.0])
    chain.add_sequences(min(FIRST_SEQUENCES, budget // chain.cost))
    while True:
        clock = _clock(source, chain, None)
        enough = chain.sequences >= FIRST_LOOK and _accuracy(clock, reference, tolerance)[2]
        left = (budget - chain.evaluations) // chain.cost
        if advance:
            advance(chain.evaluations, chain.evaluations if enough else budget)
        if enough or left < 1:
            return clock
        chain.add_sequences(min(chain.sequences, left))


def _best_level(layout: CountLevels, tally: Tally) -> float | None:
    """A new level in the widest gap, where there is room for one."""
    roughness = layout.roughness(tally.measured())
    if not len(roughness) or roughness.max() <= 0:
        return None
    widest = int(roughness.argmax())
    return layout.between(tally.levels[widest], tally.levels[widest + 1])


def _accuracy(clock: Clock, reference: Reference, tolerance: float) -> tuple[float, float, bool]:
    """Standard error and interpolation error of the reference schedule's path error, and whether they are tolerable."""
    alphas = reference(clock)

    def error(part: Clock) -> float:
        return part.costs(smooth=False).path(alphas)

    noise, gap = jackknife(error, clock), interpolation_gap(error, clock)
    settled = np.hypot(noise, gap) <= max(tolerance * error(clock), 1e-4 * clock.free)
    return noise, gap, bool(tolerance > 0 and settled and clock.measured.settled(tolerance))


def _clock(source: Source, tally: Tally | Chain, times: tuple[float, ...] | None) -> Clock:
    model = source.model
    return Clock(
        model=model.name,
        exact=model.exact,
        length=model.length,
        free=source.free,
        process=model.process.spec(),
        evaluations=tally.evaluations,
        seed=source.seed,
        data_fingerprint=source.fingerprint,
        package=package_version(),
        times=times,
        measured=tally.measured(),
        entropy=model.entropy if isinstance(model, Oracle) and not source.fixed.any() else None,
        kernel_arrays=model.process.kernel.arrays(),
        batch_size=source.batch.value,
        seen={"levels": tally.seen},
        rows=source.row_hashes(tally.seen),
        network=source.network,
    )
