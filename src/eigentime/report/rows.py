"""The one row of every table: a way of sampling, what it cost and how it was judged."""

from typing import Any, TypedDict


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
