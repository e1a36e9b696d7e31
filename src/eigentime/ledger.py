"""Work by sequences, done once: shared out over the processes of a run, and remembered in a file.

Whatever is measured of sequences is a cell of the ledger: a name, a run of sequence numbers, and a row of numbers for
each of them. The numbers do not depend on who computes them or when: random numbers are counted by sequence. So a run
that was interrupted goes on with what its file holds, any number of processes ends with the same table, and all of them
decide the same.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from eigentime.journal import Journal
from eigentime.ranks import ALONE, here

Rows = dict[str, np.ndarray]
"""By name an array with one row per sequence."""
Work = Callable[[int, int], Rows]
"""Computes (first, number): rows of sequences first … first+number-1."""
Result = TypeVar("Result")
ROUND = 8
"""Micro-batches of each process between two gatherings: no more is lost with a process."""


class Batches(Protocol):
    """Work cut to what memory holds."""

    value: int
    automatic: bool

    def over(self, count: int, work: Callable[[int, int], Result], most: int | None = None) -> list[Result]:
        """work(first, number) for runs of the numbers 0 … count-1."""


class Ledger:
    """What is known of sequences so far.

    keep       a file that it is remembered in
    made_with  what all numbers depend on: a file that was made with anything else is refused
    same       a hash of what all processes must have alike, such as the data
    """

    def __init__(
        self,
        keep: str | Path | None = None,
        made_with: dict[str, Any] | None = None,
        same: str = "",
        alone: bool = False,
    ) -> None:
        self.ranks = ALONE if alone else here()
        self.kept = keep is not None
        self._journal = Journal(keep, made_with or {}) if keep is not None and self.ranks.rank == 0 else None
        known = self.ranks.from_first(f"progress of {same}", self._read)
        self._pieces: dict[tuple[str, int], list[Rows]] = {}
        self._notes: dict[str, list[Any]] = {}
        for record in known:
            self._remember(record)

    def _read(self) -> list[dict[str, Any]]:
        return [] if self._journal is None else self._journal.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """The file stays, for others or for the same call with wider limits."""
        if self._journal is not None:
            self._journal.close()

    def remove(self) -> None:
        """All is done and saved elsewhere."""
        if self._journal is not None:
            self._journal.remove()

    def settle(self, batch: Batches) -> None:
        """One size of micro-batches for all processes and for those that went on from here: rounding depends on it."""
        if batch.automatic:
            batch.value = min(self.ranks.gather("size of batches", lambda: batch.value))
            batch.value = self.once("size of batches", lambda: batch.value)

    def rows(self, name: str, first: int, count: int, batch: Batches, work: Work, most: int | None = None) -> Rows:
        """Rows of sequences first … first+count-1."""
        parts, at, end = [], first, first + count
        while at < end:
            found = self._found(name, at, end - at)
            new = [found] if found is not None else self._made(name, at, end - at, batch, work, most)
            parts += new
            at += sum(map(_length, new))
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]} if parts else {}

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """A plain value that is found once, by the first process."""
        notes = self.notes(name)
        if not notes:
            self.note(name, self.ranks.from_first(name, make))
        return self.notes(name)[0]

    def everywhere(self, name: str, make: Callable[[], Any]) -> Any:
        """The same for what all processes have to make, such as an evaluation of a network that spans them."""
        notes = self.notes(name)
        if not notes:
            self.note(name, self.ranks.gather(name, make)[0])
        return self.notes(name)[0]

    def notes(self, name: str) -> list[Any]:
        """Plain values of this name so far."""
        return self._notes.setdefault(name, [])

    def note(self, name: str, content: Any) -> None:
        """Remember one more, which all processes know."""
        self._add({"name": name, "content": content})

    def _found(self, name: str, at: int, most: int) -> Rows | None:
        fitting = [rows for rows in self._pieces.get((name, at), []) if _length(rows) <= most]
        return max(fitting, key=_length, default=None)

    def _made(self, name: str, at: int, count: int, batch: Batches, work: Work, most: int | None) -> list[Rows]:
        """The next rows: all of them by one process, a round of them by several."""
        if self.ranks.count == 1:
            return batch.over(count, lambda done, number: self._written(name, at + done, work(at + done, number)), most)
        size = min(batch.value, most or batch.value)
        count = min(count, size * ROUND * self.ranks.count)
        start, stop = self.ranks.share(count)

        def mine() -> list[Rows]:
            return batch.over(stop - start, lambda done, number: work(at + start + done, number), most)

        gathered = [part for parts in self.ranks.gather(f"{name} {at} {count}", mine) for part in parts]
        rows = {key: np.concatenate([part[key] for part in gathered]) for key in gathered[0]}
        return [self._written(name, at, rows)]

    def _written(self, name: str, first: int, rows: Rows) -> Rows:
        if self.kept:
            self._add({"name": name, "first": first, "rows": rows})
        return rows

    def _add(self, record: dict[str, Any]) -> None:
        if self._journal is not None:
            self._journal.add(record)
        if "rows" not in record:
            self._remember(record)

    def _remember(self, record: dict[str, Any]) -> None:
        if "rows" in record:
            self._pieces.setdefault((record["name"], record["first"]), []).append(record["rows"])
        else:
            self.notes(record["name"]).append(record["content"])


def _length(rows: Rows) -> int:
    return len(next(iter(rows.values())))


def hashed(*parts: Any) -> str:
    """Of arrays and plain values."""
    texts = [
        repr(part) if part is None or isinstance(part, str) else np.ascontiguousarray(part).tobytes().hex()
        for part in parts
    ]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
