"""The one row of every table: a way of sampling, what it cost and how it was judged."""

import re
from pathlib import Path
from typing import Any, TypedDict

from eigentime.errors import EigentimeError
from eigentime.reading import DAMAGED, MOST_ROWS, read_json
from eigentime.report.provenance import unjsonable

LATTICE = re.compile(r"^plan-lattice-\d+$")
"""Every number of steps has a lattice of its own; together they are one line."""


class Value(TypedDict):
    """A number with its standard error."""

    mean: float
    stderr: float


class Row(TypedDict):
    """One way of sampling: what it was, what it cost, how its samples were judged and what was certified before."""

    strategy: str
    """Of the schedule or plan; "adaptive" where the sampler needs neither."""
    steps: int
    """0 where the sampler is adaptive."""
    sampler: str
    samples: int
    nfe: float
    seconds: float
    clipped: float
    metrics: dict[str, Value]
    path_error: Value
    """NaN where no certificate covers the sampler."""
    schedule: dict[str, Any]
    """The schedule or plan as it was used."""


def cell_of(row: Row) -> tuple[str, str, int, int]:
    """What tells rows apart: sampler, strategy, steps and samples."""
    return row["sampler"], row["strategy"], row["steps"], row["samples"]


def line_of(row: Row) -> str:
    """Which line of a table or figure a row belongs to: its strategy, or a sampler that is not the usual one."""
    if row["strategy"] == "adaptive":
        return row["sampler"].split(" (")[0]
    if row["strategy"] == "recommended" or row["sampler"] == "ancestral":
        return LATTICE.sub("plan-lattice", row["strategy"])
    return f"{row['sampler']}, {row['strategy']}"


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a file that `compare` wrote, or of a result that holds some as `rows`."""
    try:
        content = read_json(path, MOST_ROWS)
    except FileNotFoundError:
        raise EigentimeError(f"There is no file of rows {path}; make one with `eigentime compare … --json`.") from None
    except (OSError, ValueError) as error:
        raise EigentimeError(f"{path} is not a whole JSON file ({error}); compare again.") from None
    return checked_rows(content["rows"] if isinstance(content, dict) and "rows" in content else content, str(path))


def checked_rows(rows: Any, what: str) -> list[Row]:
    """Rows as they came from a file or a caller, or a sentence that says what they lack."""
    if not isinstance(rows, list) or not rows:
        raise EigentimeError(f"{what} holds no rows of a comparison; make some with `eigentime compare … --json`.")
    checked: list[Row] = []
    for place, row in enumerate(rows):
        try:
            checked.append(_checked(row))
        except DAMAGED as error:
            raise EigentimeError(
                f"Row {place} of {what} is not one of a comparison ({type(error).__name__}: {error}); compare again."
            ) from None
    return checked


def _checked(row: dict[str, Any]) -> Row:
    """Every entry as what it has to be."""
    return {
        "strategy": str(row["strategy"]),
        "steps": int(row["steps"]),
        "sampler": str(row["sampler"]),
        "samples": int(row["samples"]),
        "nfe": float(row["nfe"]),
        "seconds": float(row["seconds"]),
        "clipped": float(row.get("clipped", 0.0)),
        "metrics": {str(name): _value(value) for name, value in row["metrics"].items()},
        "path_error": _value(row["path_error"]),
        "schedule": dict(row.get("schedule", {})),
    }


def _value(value: dict[str, Any]) -> Value:
    found = unjsonable(value)
    return {"mean": float(found["mean"]), "stderr": float(found["stderr"])}
