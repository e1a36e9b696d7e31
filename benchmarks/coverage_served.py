"""What makes seeds of a clock cheap: sums of all of their sequences at once, and quicker interpolation.

The measuring pass decides, stops, chooses and certifies as it always does. Only where its numbers come from is
patched, and how it interpolates: monotone cubics without scipy's overhead, curves on a grid of 257 angles in place of
1,025, schedules planned on 129 nodes in place of 1,025.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from eigentime.measure import level_curve
from eigentime.measure.chain import chain_sums
from eigentime.measure.levels import CountLevels, Source, make_source
from eigentime.measure.ordered import measure_order
from eigentime.models import Oracle

ANGLES = np.linspace(0, np.pi / 2, 257)


@dataclass
class Served:
    """Sums of many seeds' sequences, computed once: seed s has sequences s·each … (s+1)·each - 1."""

    model: Oracle
    each: int
    seeds: int
    part: int = 0
    """Seeds of another part have other sequences."""
    seed: int = 0
    kept: dict[Any, Any] = field(default_factory=dict)
    source: Source = field(init=False)

    def __post_init__(self) -> None:
        number = 1 + self.part
        self.source = make_source(self.model, self.model.draw(self.each * self.seeds, number), seed=number)
        self.evaluate = CountLevels.evaluate

    def once(self, key: Any, make: Any) -> Any:
        """What was made for this key."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def mine(self, first: int, count: int) -> slice:
        """Where a run of this seed's sequences lies."""
        assert first + count <= self.each, "a seed has no more sequences"
        return slice(self.seed * self.each + first, self.seed * self.each + first + count)

    def level(self, layout: CountLevels, level: float, first: int, count: int) -> tuple[np.ndarray, int]:
        """In place of `CountLevels.evaluate`."""
        whole = CountLevels(self.source)
        sums = self.once(level, lambda: self.evaluate(whole, level, 0, self.each * self.seeds)[0])
        return sums[self.mine(first, count)], 1 if level == 0 else count

    def path(self, source: Source, times: list[float], first: int, count: int) -> dict[str, np.ndarray]:
        """In place of `chain_sums`."""
        sums = self.once(tuple(times), lambda: chain_sums(self.source, times, 0, self.each * self.seeds))
        return {name: values[self.mine(first, count)] for name, values in sums.items()}

    def order(
        self, source: Source, order: Any, levels: np.ndarray, sequences: int, shape: Any = None, first: int = 0
    ) -> tuple[np.ndarray, int, np.ndarray | None]:
        """In place of `measure_order`."""
        number = self.each * self.seeds
        every = np.arange(int(source.free))
        values = self.once(order.name, lambda: measure_order(self.source, order, every, number)[0])
        near = np.zeros((sequences, 4, *shape)) if shape else None
        return values[self.mine(first, sequences)][:, levels], sequences * len(levels), near

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Passes get their sums from here."""
        with (
            patch.object(CountLevels, "evaluate", lambda layout, *asked: self.level(layout, *asked)),
            patch("eigentime.measure.montecarlo.chain_sums", self.path),
            patch("eigentime.measure.order_pass.measure_order", self.order),
            quick(),
        ):
            yield


@contextmanager
def quick() -> Iterator[None]:
    """Interpolation that costs little."""
    with ExitStack() as patches:
        for name, value in (
            ("eigentime.schedules.optimal.NODES_PER_STEP", 4),
            ("eigentime.measure.level_curve.ANGLES", ANGLES),
            ("eigentime.measure.level_curve._binomial_tables", _coarse_tables),
            ("eigentime.measure.level_curve.PchipInterpolator", Pchip),
            ("eigentime.measure.pair_costs.PchipInterpolator", Pchip),
        ):
            patches.enter_context(patch(name, value))
        yield


_tables: dict[int, Any] = {}
_fine_tables = level_curve._binomial_tables.__wrapped__


def _coarse_tables(free: int) -> Any:
    """The tables of `level_curve` at fewer angles, kept apart from its own."""
    if free not in _tables:
        _tables[free] = _fine_tables(free)
    return _tables[free]


class Pchip:
    """scipy's PchipInterpolator for one line of numbers, to rounding, at a tenth of the time."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = x, y
        widths, slopes = np.diff(x), np.diff(y) / np.diff(x)
        if len(x) == 2:
            self.first = np.array([slopes[0], slopes[0]])
        else:
            one, other = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = (one + other) / (one / slopes[:-1] + other / slopes[1:])
            turning = slopes[:-1] * slopes[1:] <= 0
            ends = _end(widths[:2], slopes[:2]), _end(widths[:-3:-1], slopes[:-3:-1])
            self.first = np.concatenate([[ends[0]], np.where(turning, 0.0, mean), [ends[1]]])
        self.second = (3 * slopes - 2 * self.first[:-1] - self.first[1:]) / widths
        self.third = (self.first[:-1] + self.first[1:] - 2 * slopes) / widths**2

    def __call__(self, at: np.ndarray) -> np.ndarray:
        piece = np.clip(np.searchsorted(self.x, at, side="right") - 1, 0, len(self.x) - 2)
        step = at - self.x[piece]
        return self.y[piece] + step * (self.first[piece] + step * (self.second[piece] + step * self.third[piece]))


def _end(widths: np.ndarray, slopes: np.ndarray) -> float:
    """The slope at an end, from the two pieces next to it."""
    found = ((2 * widths[0] + widths[1]) * slopes[0] - widths[0] * slopes[1]) / widths.sum()
    if np.sign(found) != np.sign(slopes[0]):
        return 0.0
    if np.sign(slopes[0]) != np.sign(slopes[1]) and abs(found) > 3 * abs(slopes[0]):
        return float(3 * slopes[0])
    return float(found)
