"""What a page is made of: everything was computed before, sections only choose and arrange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from eigentime.measure import Clock
from eigentime.report.page.html import Markup
from eigentime.report.page.views import View
from eigentime.report.rows import Row
from eigentime.schedules import Certificate, Plan, Schedule


@dataclass(frozen=True)
class Scene:
    """Sequences drawn along one schedule or plan, and the first of them as it was after every step."""

    strategy: str
    nfe: float
    """Network evaluations per sequence."""
    frames: Int[np.ndarray, "steps length"]
    """The first sequence after each step; the last frame is the sample."""
    times: Sequence[float]
    """Where each step arrived, from noise (1) to data (0)."""
    others: Int[np.ndarray, "n length"]
    """Further sequences, finished."""
    given: Int[np.ndarray, " k"]
    """The places that were given and not drawn."""


@dataclass(frozen=True)
class Material:
    """A clock, and what was made of it."""

    clock: Clock
    grids: Mapping[str, Mapping[int, Schedule]]
    """Schedules by strategy and number of evaluations."""
    certificates: Mapping[str, Mapping[int, Certificate]]
    """What they are certified to cost, and what plans are, as the strategy `plan`."""
    plans: Mapping[int, Plan] = field(default_factory=dict)
    """The best plan for each number of evaluations, where orders were measured."""
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Rows of comparisons by their name."""
    scenes: Mapping[int, Sequence[Scene]] = field(default_factory=dict)
    """What was drawn for the page, by number of evaluations."""
    view: View | None = None
    """How tokens look; needed for scenes."""
    seed: int = 0
    """Of what was drawn."""


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    name: str
    """Of its script, and where links lead."""
    title: str
    lead: Markup
    """What there is to see, in a sentence or two."""
    data: Any
    """What its script draws."""
    numbers: Markup
    """The same as a table, for those who read numbers or hear the page."""


@dataclass(frozen=True)
class Missing:
    """A part that this page has nothing for."""

    title: str
    why: str


def rounded(values: Any, digits: int = 6) -> Any:
    """Numbers as short as a drawing needs; None where there is none."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{array:.{digits}g}") if np.isfinite(array) else None
    return [rounded(value, digits) for value in array]
