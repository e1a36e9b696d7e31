"""Numbers per sequence, gathered batch by batch until enough is known. With a file, a call that was stopped goes on."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from eigentime.alone import alone
from eigentime.errors import EigentimeError
from eigentime.files import check_made_with, check_seal, check_writable, sealed, write_atomically
from eigentime.intervals import PerSequence
from eigentime.ledger import Ledger
from eigentime.ranks import Ranks, here
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


class Store(Protocol):
    """Where batches are written down."""

    def read(self) -> list[Batch]:
        """Those of an earlier call."""

    def add(self, batches: Sequence[Batch]) -> None:
        """All batches so far, the last of them new."""

    def held(self) -> AbstractContextManager[None]:
        """For this run alone, meanwhile."""


@dataclass(frozen=True)
class BatchFile:
    """A file of their own."""

    path: Path
    made_with: dict[str, Any] | None

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> list[Batch]:
        return _read(self.path, self.made_with or {})

    def add(self, batches: Sequence[Batch]) -> None:
        content = {"made_with": self.made_with, "batches": [vars(each) for each in batches]}
        write_atomically(self.path, json.dumps(sealed(jsonable(content))) + "\n")

    def held(self) -> AbstractContextManager[None]:
        return alone(self.path)


@dataclass(frozen=True)
class Page:
    """A page of a ledger, which other work is written in too."""

    ledger: Ledger
    name: str

    def __str__(self) -> str:
        return "the file for finished work"

    def read(self) -> list[Batch]:
        return [Batch(**unjsonable(note)) for note in self.ledger.notes(self.name)]

    def add(self, batches: Sequence[Batch]) -> None:
        self.ledger.note(self.name, jsonable(vars(batches[-1])))

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()  # a ledger's file is held while it is open


class Nowhere:
    """Nothing is written down."""

    def read(self) -> list[Batch]:
        return []

    def add(self, batches: Sequence[Batch]) -> None:
        pass

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()


def store_of(keep: str | Path | Page | None, made_with: Callable[[], dict[str, Any]]) -> Store:
    """Where batches go: a file of their own, a page, or nowhere."""
    if isinstance(keep, Page):
        return keep
    return Nowhere() if keep is None else BatchFile(Path(keep), made_with())


def gather(
    measure: Callable[[int, int], Batch],
    made_of: Callable[[int, int], str],
    limits: Limits,
    decisive: str,
    store: Store | None = None,
    progress: bool = False,
) -> Gathered:
    """Measure sequences first … last-1 again and again, until `limits` of the `decisive` numbers say that it is enough.
    Several processes share every batch.

    made_of    a hash of what sequences first … last-1 are made of
    store      where every batch goes at once: the same call goes on from there, and one with wider limits too
    """
    store = store or Nowhere()
    with store.held():
        return _gathered(measure, made_of, limits, decisive, store, progress)


def _gathered(
    measure: Callable[[int, int], Batch],
    made_of: Callable[[int, int], str],
    limits: Limits,
    decisive: str,
    store: Store,
    progress: bool,
) -> Gathered:
    ranks = here()
    stored = ranks.from_first("batches", store.read)
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
                raise EigentimeError(f"{store} holds batches of other sequences; delete it or choose another file.")
            batch = batch or _shared(ranks, measure, done, size, now)
            found.batches.append(batch)
            done += size
            if len(found.batches) > len(stored):
                ranks.from_first("writing", partial(store.add, found.batches))
    return found


def _shared(ranks: Ranks, measure: Callable[[int, int], Batch], first: int, size: int, made_of: str) -> Batch:
    """One batch, of which every process measures its share."""
    start, stop = ranks.share(size)

    def mine() -> Batch | None:
        return measure(first + start, first + stop) if stop > start else None

    parts = [part for part in ranks.gather(f"sequences {first} of {made_of}", mine) if part is not None]
    return replace(parts[0] if len(parts) == 1 else joined(parts), made_of=made_of)


def joined(parts: list[Batch]) -> Batch:
    """Batches of sequences that follow each other, as one."""
    whole = Gathered(parts)
    values = dict.fromkeys(name for part in parts for name in part.values)
    sums = dict.fromkeys(name for part in parts for name in part.sums)
    return Batch(
        {name: whole.values(name).tolist() for name in values},
        {name: whole.sums(name).tolist() for name in sums},
        whole.spent,
    )


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
