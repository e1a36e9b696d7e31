"""Which sequences a clock has seen: what tells whether clocks can be added up."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from eigentime.measure.groups import GROUPS

MOST = 2**62


@dataclass(frozen=True)
class SeenRun:
    """Sequences first … first+count-1 of a seed on some data; number i is row i mod `rows` of them."""

    data: str
    seed: int
    rows: int
    first: int
    count: int

    @property
    def end(self) -> int:
        """The number after the last."""
        return self.first + self.count

    def overlaps(self, other: "SeenRun") -> bool:
        """Whether both have the random numbers of some sequence in common, or its noise on other data."""
        return self.seed == other.seed and self.first < other.end and other.first < self.end


@dataclass(frozen=True)
class Seen:
    """Stretches, and the groups that their sequences were dealt to: row mod `of`, those of `ids` not being empty."""

    stretches: tuple[SeenRun, ...]
    of: int
    ids: tuple[int, ...]

    @staticmethod
    def one(data: str, seed: int, rows: int, first: int, count: int, of: int | None = None) -> "Seen":
        """One stretch; without `of` the groups of a measurement from the first sequence on."""
        of = min(GROUPS, count, rows if rows > 1 else count) if of is None else of
        return Seen(
            (SeenRun(data, seed, rows, first, count),), of, tuple(np.unique(_ids(first, count, rows, of)).tolist())
        )

    @staticmethod
    def from_plain(content: dict[str, Any]) -> "Seen":
        """What `plain` returned; anything else raises."""
        stretches = tuple(SeenRun(**each) for each in content["stretches"])
        seen = Seen(stretches, content["of"], tuple(content["ids"]))
        numbers = [seen.of, *seen.ids, *(n for each in stretches for n in (each.rows, each.first, each.count))]
        if not all(type(n) is int and 0 <= n < MOST for n in numbers) or seen.of < 1 or not seen.ids:
            raise ValueError("the sequences that were seen are no numbers")
        if not all(type(each.seed) is int and isinstance(each.data, str) for each in stretches):
            raise ValueError("the sequences that were seen have no seed")
        return seen

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"stretches": [asdict(each) for each in self.stretches], "of": self.of, "ids": list(self.ids)}

    def dealt(self, sums: Float[np.ndarray, "b ..."], of: int) -> Float[np.ndarray, "of ..."]:
        """Sums by group, dealt again to `of` groups, as `common` says."""
        found = np.zeros((of, *sums.shape[1:]))
        np.add.at(found, np.array(self.ids) % of, sums)
        return found


def common(parts: list[Seen]) -> int:
    """How many groups all parts can be dealt to, so that a row of the data stays in one."""
    numbers = [part.of for part in parts]
    used_again = any(1 < each.rows < each.end for part in parts for each in part.stretches)
    return math.gcd(*numbers) if used_again else max(numbers)


def added(parts: list[Seen]) -> Seen:
    """All stretches."""
    of = common(parts)
    ids = sorted({group % of for part in parts for group in part.ids})
    return Seen(tuple(each for part in parts for each in part.stretches), of, tuple(ids))


def part_in_groups(table: Float[np.ndarray, "n ..."], seen: Seen) -> Float[np.ndarray, "b ..."]:
    """Sums over the sequences of each group that is not empty, of one stretch."""
    (stretch,) = seen.stretches
    groups = np.zeros((seen.of, *table.shape[1:]))
    np.add.at(groups, _ids(stretch.first, stretch.count, stretch.rows, seen.of), table)
    return groups[list(seen.ids)]


def row_hashes(data: Shaped[np.ndarray, "n length"]) -> Shaped[np.ndarray, " n"]:
    """A 64-bit number for every sequence of tokens."""
    weights = np.random.Generator(np.random.Philox(key=1)).integers(1, 2**63, data.shape[1], dtype=np.uint64)
    mixed = (data.astype(np.uint64) + np.uint64(1)) * (weights | np.uint64(1))
    mixed ^= mixed >> np.uint64(29)
    return np.asarray((mixed * np.uint64(0x9E3779B97F4A7C15)).sum(1, dtype=np.uint64))


def _ids(first: int, count: int, rows: int, of: int) -> Int[np.ndarray, " n"]:
    index = np.arange(first, first + count)
    return (index % rows if rows > 1 else index) % of
