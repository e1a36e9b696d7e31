"""The report: schedules, certificates, plans and samples of one clock, gathered and put on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eigentime import api
from eigentime.arguments import SEED, checked, flag, function, listed, optional, place, whole, words
from eigentime.certificates import path_error
from eigentime.errors import EigentimeError
from eigentime.files import check_writable, write_atomically
from eigentime.measure import Clock
from eigentime.models import Model
from eigentime.models.base import MODEL
from eigentime.report.page import Material, Scene, render, view_of
from eigentime.report.page.views import Spell
from eigentime.report.progress import progress_bar
from eigentime.report.rows import Row, checked_rows
from eigentime.samplers import Snapshot
from eigentime.schedules import Certificate, Plan, Schedule, check_steps, check_strategy, plan

STRATEGIES = ("uniform", "cosine", "eds", "wds", "wds-data", "ods")
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""Numbers of evaluations that schedules, plans and certificates are made for."""
SHOWN = (4, 8, 16)
"""Numbers of evaluations that samples are drawn with."""
SAMPLES = 3
ROWS = listed(lambda row, name: row)


@checked(
    out=optional(place),
    model=optional(MODEL),
    strategies=listed(words),
    counts=listed(whole(1)),
    shown=listed(whole(1)),
    samples=whole(1),
    spell=optional(function),
    shape=optional(listed(whole(1), 3)),
    title=optional(words),
    seed=SEED,
    progress=flag,
)
def report(
    clock: Clock | str | Path,
    rows: Sequence[Row] | Mapping[str, Sequence[Row]] = (),
    *,
    out: str | Path | None = None,
    model: Model | None = None,
    strategies: Sequence[str] = STRATEGIES,
    counts: Sequence[int] = COUNTS,
    shown: Sequence[int] = SHOWN,
    samples: int = SAMPLES,
    spell: Spell | None = None,
    shape: Sequence[int] | None = None,
    title: str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> str:
    """One HTML page that explains a clock: it opens offline, and every number on it comes from what is given here.

    clock       a clock, or its file
    rows        of `compare`, or several comparisons by name: quality against evaluations
    out         where the page goes; the HTML comes back in any case
    model       the measured model: then samples and a film are drawn for the page, with few evaluations
    strategies  schedules to show, and those of `rows` that a clock cannot make, such as jys, come along
    counts      numbers of evaluations to make schedules, plans and certificates for
    shown       numbers of evaluations to draw samples with
    samples     sequences to draw of each
    spell       the text of a token, for a model of your own: tokenizer.decode, chr, …
    shape       or, where its tokens are pixels: (channels, height, width)
    title       of the page
    """
    clock = clock if isinstance(clock, Clock) else Clock.load(clock)
    if out is not None:
        check_writable(out)
    for strategy in strategies:
        check_strategy(strategy)
    counts, shown = sorted({check_steps(each) for each in counts}), sorted({check_steps(each) for each in shown})
    if not counts or not (made := [each for each in strategies if each != "jys"]):
        raise EigentimeError("A page needs at least one number of evaluations, and a strategy that a clock makes.")
    if model is not None and (clock.process != model.process.spec() or clock.length != model.length):
        raise EigentimeError(f"The clock was measured on another process than {model.name} has; measure this model.")
    view = None if model is None else view_of(model, spell, shape)
    compared = _named(rows)
    grids = {name: {k: api.schedule(clock, name, steps=k) for k in counts} for name in made}
    grids |= _searched(clock, compared)
    plans = _plans(clock, counts)
    certificates = _certificates(clock, grids, plans, progress)
    material = Material(clock, grids, certificates, plans, compared, seed=seed)
    if model is not None:
        ways: dict[int, dict[str, Schedule | Plan]] = {}
        for count in shown:
            ways[count] = {name: api.schedule(clock, name, steps=count) for name in made}
            ways[count] |= {name: found[count] for name, found in grids.items() if name not in made and count in found}
            if best := _plans(clock, [count]):
                ways[count]["plan"] = best[count]
        drawn = _scenes(model, ways, samples, seed, progress)
        material = replace(material, scenes=drawn, view=view)
    page = render(material, title)
    if out is not None:
        write_atomically(out, page)
    return page


def scene(model: Model, strategy: str, way: Schedule | Plan, samples: int, seed: int) -> Scene:
    """Draw some sequences, and keep the first after every step."""
    frames: list[np.ndarray] = []
    times: list[float] = []

    def watch(state: Snapshot) -> None:
        frames.append(state.tokens[0].numpy().copy())
        times.append(state.time)

    given, fixed = api.own_prompts(model, samples, seed)
    drawn = api.sample(model, way, samples, seed=seed, given=given, fixed=fixed, callback=watch)
    places = np.flatnonzero(fixed.numpy()) if isinstance(fixed, torch.Tensor) else np.zeros(0, dtype=int)
    return Scene(strategy, drawn.nfe, np.stack(frames), times, drawn.numpy()[1:], places)


def _named(rows: Any) -> dict[str, list[Row]]:
    """Comparisons by name, checked."""
    if isinstance(rows, Mapping):
        return {
            str(name): checked_rows(listed(lambda row, name: row)(each, str(name)), str(name))
            for name, each in rows.items()
        }
    found = listed(lambda row, name: row)(rows, "rows")
    return {"comparison": checked_rows(found, "The comparison")} if found else {}


def _searched(clock: Clock, compared: Mapping[str, Sequence[Row]]) -> dict[str, dict[int, Schedule]]:
    """Schedules of rows that no clock makes, JYS's, where they are for this process."""
    found: dict[int, Schedule] = {}
    for row in (row for rows in compared.values() for row in rows if row["strategy"] == "jys"):
        kept = row["schedule"]
        if kept.get("noise") == clock.noise.spec() and isinstance(kept.get("times"), list):
            grid = Schedule.from_times(kept["times"], clock.grid_process, "jys")
            found[grid.evaluations] = grid
    return {"jys": dict(sorted(found.items()))} if found else {}


def _plans(clock: Clock, counts: Sequence[int]) -> dict[int, Plan]:
    """The best plan of every number of steps that one can have; none for a clock without orders."""
    if not clock.orders:
        return {}
    return {count: plan(clock, count) for count in counts if count <= clock.ordered.free}


def _certificates(
    clock: Clock, grids: Mapping[str, Mapping[int, Schedule]], plans: Mapping[int, Plan], progress: bool
) -> dict[str, dict[int, Certificate]]:
    """What every schedule and plan costs."""
    certificates: dict[str, dict[int, Certificate]] = {name: {} for name in grids}
    wanted = [(name, count, grid) for name, found in grids.items() for count, grid in found.items()]
    with progress_bar("Certifying", progress) as advance:
        for done, (name, count, grid) in enumerate(wanted):
            advance(done, len(wanted), f"{name}, {count} steps")
            certificates[name][count] = path_error(clock, grid)
    planned = {count: each.predicted_error for count, each in plans.items() if each.predicted_error is not None}
    return {**certificates, "plan": planned} if planned else certificates


def _scenes(
    model: Model, ways: Mapping[int, Mapping[str, Schedule | Plan]], samples: int, seed: int, progress: bool
) -> dict[int, list[Scene]]:
    """What each way of sampling draws, by number of evaluations."""
    scenes: dict[int, list[Scene]] = {count: [] for count in ways}
    wanted = [(count, name, way) for count, found in ways.items() for name, way in found.items()]
    with progress_bar("Drawing", progress) as advance:
        for done, (count, name, way) in enumerate(wanted):
            advance(done, len(wanted), f"{name}, {count} steps")
            scenes[count].append(scene(model, name, way, samples, seed))
    return scenes
