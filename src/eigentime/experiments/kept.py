"""What a long run has found so far, written down at once, so that an interrupted one goes on."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from eigentime.errors import EigentimeError
from eigentime.files import check_made_with, check_seal, check_writable, sealed, write_atomically
from eigentime.ranks import here
from eigentime.reading import DAMAGED, MOST_ROWS, read_json
from eigentime.report.provenance import jsonable, unjsonable
from eigentime.report.rows import Row, cell_of


class KeptRows:
    """Finished rows, in memory and, with a path, in a file of their own."""

    def __init__(self, path: str | Path | None, **settings: Any) -> None:
        self.path, self.settings = None if path is None else Path(path), settings
        self.rows: list[Row] = []
        if self.path is not None:
            self.rows = here().from_first(f"rows of {self.path.name}", partial(_read, self.path, settings))

    def row(self, *cell: Any) -> Row | None:
        """The finished row of a cell, if there is one."""
        return next((row for row in self.rows if cell_of(row) == cell), None)

    def add(self, row: Row) -> None:
        """Keep one more."""
        self.rows.append(row)
        if self.path is not None:
            content = sealed(jsonable({"settings": self.settings, "rows": self.rows}))
            write_atomically(self.path, json.dumps(content, indent=1) + "\n")


def _read(path: Path, settings: dict[str, Any]) -> list[Row]:
    """The rows of a file, if it is there."""
    check_writable(path)
    if not path.exists():
        return []
    try:
        content = read_json(path, MOST_ROWS)
        check_seal(content, path, "delete it")
        content = unjsonable(content)
        before, rows = content["settings"], content["rows"]
    except EigentimeError:
        raise
    except DAMAGED:
        raise EigentimeError(f"{path} holds no kept rows; choose another file.") from None
    check_made_with(path, before, settings, "rows")
    return list(rows)


def remembered(path: Path, made_of: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` returned before, if it was made of the same; else it is made and written down."""

    def known() -> dict[str, Any] | None:
        try:
            content = read_json(path, MOST_ROWS)
            check_seal(content, path, "delete it")
            found: dict[str, Any] = content["content"]
            return found if content["made_of"] == made_of else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or of no use

    before = here().from_first(f"what {path.name} remembers", known)
    if before is not None:
        return before
    made = make()
    write_atomically(path, json.dumps(sealed({"made_of": made_of, "content": made})) + "\n")
    return made


@contextmanager
def timed(path: Path) -> Iterator[Callable[[], dict[str, float]]]:
    """Seconds that a run has taken so far, on the clock and of the processor: with what it took before it was
    interrupted, which is written down even then. A run that is killed outright leaves nothing."""
    try:
        before: dict[str, float] = read_json(path, MOST_ROWS)
    except (OSError, *DAMAGED):
        before = {}
    clocks = {"seconds": time.perf_counter, "processor_seconds": time.process_time}
    began = {name: clock() for name, clock in clocks.items()}

    def took() -> dict[str, float]:
        return {name: round(before.get(name, 0.0) + clock() - began[name], 1) for name, clock in clocks.items()}

    try:
        yield took
    finally:
        write_atomically(path, json.dumps(took()) + "\n")
