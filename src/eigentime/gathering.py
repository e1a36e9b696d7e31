"""Numbers per sequence, gathered batch by batch until enough is known. With a file, a call that was stopped goes on."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from eigentime.errors import EigentimeError
from eigentime.files import check_made_with, check_seal, check_writable, sealed, write_atomically
from eigentime.intervals import PerSequence
from eigentime.reading import DAMAGED, MOST_ROWS, read_json
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import jsonable, unjsonable

BATCH = 16
"""Sequences that are measured, and then written down, at a time; later a quarter of those that are known already, so
that an interruption never costs much more than a fifth of the work."""
FIRST_LOOK = 64
"""Whether the mean is known well enough is asked after so many sequences, and then after every doubling. A standard
error that is looked at after every batch is small by chance sooner or later, and small ones come with small means where
costs are skewed: intervals of such runs miss the truth too often. A few looks, far apart, do little harm."""


@dataclass(frozen=True)
class Limits:
    """When to stop: after so many sequences, when the mean is known to a tolerance, or when a budget is spent."""

    sequences: int
    tolerance: float | None = None
    """Standard error of the mean that is small enough."""
    budget: int | None = None
    """Sequence evaluations. What a sequence takes is known only after the first batch, which is always measured."""

    def __post_init__(self) -> None:
        if self.sequences < 1:
            raise EigentimeError(f"At least one sequence is needed, not {self.sequences}.")
        if self.tolerance is not None and not self.tolerance > 0:
            raise EigentimeError(f"tolerance must be a positive number of nats, not {self.tolerance}.")
        if self.budget is not None and self.budget < 1:
            raise EigentimeError(f"budget must be at least 1 evaluation, not {self.budget}.")

    def more(self, values: Float[np.ndarray, " n"], spent: int) -> int:
        """How many sequences to measure next; 0 where what is known is enough."""
        done = len(values)
        look = FIRST_LOOK if done < FIRST_LOOK else FIRST_LOOK * 2 ** (1 + int(math.log2(done / FIRST_LOOK)))
        size = min(max(BATCH, done // 4), look - done, self.sequences - done)
        if self.budget is not None and done:
            size = min(size, math.floor((self.budget - spent) * done / max(spent, 1)))
        return 0 if self._known(values) else max(size, 0)

    def _known(self, values: Float[np.ndarray, " n"]) -> bool:
        """What is infinite stays so."""
        looks = len(values) / FIRST_LOOK
        if self.tolerance is None or looks < 1 or not math.log2(looks).is_integer():
            return False
        return bool(np.isinf(values).any()) or PerSequence(values).stderr <= self.tolerance


@dataclass
class Batch:
    """What was measured of some sequences."""

    values: dict[str, list[float]]
    """By name a number for every sequence, or for some of them."""
    sums: dict[str, list[float]]
    """By name numbers that are added over all sequences; the shorter of two go on with zeros."""
    spent: int
    """Sequence evaluations."""
    made_of: str = ""
    """What the sequences were, as a hash."""


@dataclass
class Gathered:
    """All batches so far."""

    batches: list[Batch] = field(default_factory=list)

    @property
    def spent(self) -> int:
        """Sequence evaluations."""
        return sum(batch.spent for batch in self.batches)

    def values(self, name: str) -> Float[np.ndarray, " n"]:
        """A number for every sequence."""
        return np.array([value for batch in self.batches for value in batch.values.get(name, [])], dtype=float)

    def sums(self, name: str) -> Float[np.ndarray, " k"]:
        """Added over all sequences."""
        parts = [batch.sums[name] for batch in self.batches if name in batch.sums]
        total = np.zeros(max(map(len, parts), default=0))
        for part in parts:
            total[: len(part)] += part
        return total


def gather(
    measure: Callable[[int, int], Batch],
    made_of: Callable[[int, int], str],
    limits: Limits,
    decisive: str,
    keep: str | Path | None = None,
    made_with: dict[str, Any] | None = None,
    progress: bool = False,
) -> Gathered:
    """Measure sequences first … last-1 again and again, until `limits` of the `decisive` numbers say that it is enough.

    keep       a file that every batch goes to at once: the same call goes on from there, and one with wider limits too
    made_of    a hash of what sequences first … last-1 are made of
    made_with  what all batches depend on: a file that was made with anything else is refused
    """
    stored, path = [], None if keep is None else Path(keep)
    if path is not None:
        stored = _read(path, made_with or {})
    found, done = Gathered(), 0
    with progress_bar("Measuring", progress) as advance:
        while size := limits.more(found.values(decisive), found.spent):
            advance(done, limits.sequences)
            batch = stored[len(found.batches)] if len(found.batches) < len(stored) else None
            if batch is not None and len(batch.values[decisive]) > size:
                batch = None  # it was measured with a wider limit
            size = size if batch is None else len(batch.values[decisive])
            now = made_of(done, done + size)
            if batch is not None and batch.made_of != now:
                raise EigentimeError(f"{path} holds batches of other sequences; delete it or choose another file.")
            if batch is None:
                batch = measure(done, done + size)
                batch.made_of = now
            found.batches.append(batch)
            done += size
            if path is not None and len(found.batches) > len(stored):
                content = {"made_with": made_with, "batches": [vars(each) for each in found.batches]}
                write_atomically(path, json.dumps(sealed(jsonable(content))) + "\n")
    return found


def _read(path: Path, made_with: dict[str, Any]) -> list[Batch]:
    """The batches of a file, if it is there."""
    check_writable(path)
    if not path.exists():
        return []
    try:
        content = read_json(path, MOST_ROWS)
        check_seal(content, path, "delete it")
        content = unjsonable(content)
        before, batches = content["made_with"], [Batch(**batch) for batch in content["batches"]]
    except EigentimeError:
        raise
    except DAMAGED:
        raise EigentimeError(f"{path} holds no batches of sequences; choose another file.") from None
    check_made_with(path, before, made_with, "batches")
    return batches


def hashed(*parts: Any) -> str:
    """Of arrays and plain values."""
    texts = [
        repr(part) if part is None or isinstance(part, str) else np.ascontiguousarray(part).tobytes().hex()
        for part in parts
    ]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
