"""One of several parts of a measurement that never meet: levels and orders are a pilot's, no part stops by itself."""

from dataclasses import dataclass

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.groups import GROUPS
from eigentime.measure.levels import Source
from eigentime.measure.seen import Seen


@dataclass(frozen=True)
class Share:
    """Part `number` of `of`. All parts together see `samples` sequences, as many as the pilot if None, and none that
    the pilot has seen of the same data."""

    pilot: Clock
    number: int
    of: int
    samples: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.of:
            raise EigentimeError(
                f"Of {self.of} parts there are numbers 0 to {self.of - 1}, not {self.number}: --shard 0/{self.of}, …"
            )
        if "levels" not in self.pilot.seen:
            raise EigentimeError(
                "This pilot does not say which sequences it has seen (an older version made it): measure it again."
            )

    def check(self, source: Source) -> None:
        """Refuse a pilot of something else."""
        model = source.model
        if (self.pilot.model, self.pilot.process, self.pilot.length) != (
            model.name,
            model.process.spec(),
            model.length,
        ):
            raise EigentimeError(
                f"The pilot was measured on another model or process than {model.name}; measure one on this."
            )

    def levels(self, source: Source) -> Seen:
        """The sequences for levels."""
        return self._seen(source, self._after(source, "levels"), self._total("levels"))

    def orders(self, source: Source) -> Seen:
        """Those for orders."""
        return self._seen(source, self._after(source, "orders", "pairs"), self._total("orders"))

    def pairs(self, source: Source) -> Seen:
        """Those for pairs of places, which no order made of them is certified on."""
        return self._seen(source, self._after(source, "orders", "pairs") + self._total("orders"), self._total("pairs"))

    def _total(self, kind: str) -> int:
        """How many sequences all parts see, in the pilot's proportions."""
        seen = {kind: sum(each.count for each in part.stretches) for kind, part in self.pilot.seen.items()}
        asked = seen["levels"] if self.samples is None else self.samples
        return max(1, round(seen[kind] * asked / seen["levels"]))

    def _after(self, source: Source, *kinds: str) -> int:
        """The first sequence that the pilot has not seen, where it saw the same data."""
        before = [each for kind in kinds if kind in self.pilot.seen for each in self.pilot.seen[kind].stretches]
        same = [each.end for each in before if (each.data, each.seed) == (source.fingerprint, source.seed)]
        return max(same, default=0)

    def _seen(self, source: Source, first: int, total: int) -> Seen:
        start, stop = first + total * self.number // self.of, first + total * (self.number + 1) // self.of
        if stop == start:
            raise EigentimeError(
                f"{total} sequences do not make {self.of} parts; ask for more with --samples, or for fewer parts."
            )
        rows = len(source.data)
        of = min(GROUPS, rows) if rows > 1 else GROUPS
        return Seen.one(source.fingerprint, source.seed, rows, start, stop - start, of)
