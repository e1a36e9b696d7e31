"""Figures; they draw only what others computed. Needs the `figures` extra (matplotlib)."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eigentime.files import write_atomically
from eigentime.measure import Clock, curve
from eigentime.pictured import check_figures as check_figures
from eigentime.report.rows import Row, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Row]
COLOURS = {
    "uniform": "#8c8c8c",
    "cosine": "#b8860b",
    "fisher-rao": "#c49a6c",
    "jys": "#9467bd",
    "eds": "#d62728",
    "wds": "#ff7f0e",
    "eds-data": "#e377c2",
    "wds-data": "#2ca02c",
    "sqrt-slope": "#17becf",
    "ods": "#1f4fd8",
    "plan": "#0b8f5a",
}


def _new_figure(columns: int, width: float, height: float) -> "tuple[Figure, list[Axes]]":
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes[0])


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a PNG; the file appears whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    write_atomically(path, buffer.getvalue())


def comparison_figure(rows: Rows, clock: Clock, headline: str | None, steps_shown: int) -> "Figure":
    """Metric, where there is one to judge by, and path error against NFE, and where each schedule puts its steps on the
    entropy-rate curve."""
    shown: list[tuple[Callable[[Row], Value], str]] = [(lambda row: row["path_error"], "path error (nats)")]
    if headline is not None:
        shown.insert(0, (lambda row: row["metrics"][headline], headline.replace("_", " ")))
    check_figures()
    from matplotlib.ticker import NullLocator

    figure, (*panels, where) = _new_figure(len(shown) + 1, 5 * (len(shown) + 1), 4.6)
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    for axes, (pick, title) in zip(panels, shown, strict=True):
        for strategy in strategies:
            mine = [row for row in rows if row["strategy"] == strategy]
            points = [(row["nfe"], pick(row)["mean"], pick(row)["stderr"]) for row in mine]
            _line(axes, points, strategy)
        axes.set(xscale="log", yscale="log", xlabel="network evaluations", title=title)
        ticks = sorted({row["nfe"] for row in rows})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())  # the values' axis keeps its own, which within a decade are all
        if title.startswith("violation"):
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.grid(alpha=0.25)
    panels[0].legend(frameon=False, fontsize=9)
    timed = [row for row in rows if row["steps"] == steps_shown and "times" in row["schedule"]]  # a plan has no times
    _steps_on_curve(where, timed, clock)
    return figure


def _line(axes: "Axes", points: list[tuple[float, float, float]], strategy: str) -> None:
    nfe, mean, stderr = zip(*points, strict=True)
    emphasis = 2.6 if strategy in ("ods", "plan") else 1.4
    axes.errorbar(
        nfe, mean, yerr=stderr, label=strategy, color=COLOURS.get(strategy), lw=emphasis, marker="o", ms=3.5, capsize=2
    )


def _steps_on_curve(axes: "Axes", rows: Rows, clock: Clock) -> None:
    rate = curve(clock, "nonadiabatic_data")
    axes.fill_between(rate.times, rate.mean, color="#1f4fd8", alpha=0.12, lw=0)
    axes.plot(rate.times, rate.mean, color="#1f4fd8", lw=1.4)
    top = rate.mean.max()
    for k, row in enumerate(rows):
        height = -top * 0.085 * (k + 1)
        colour = COLOURS.get(row["strategy"])
        axes.axhline(height, color=colour, lw=0.6, alpha=0.5)
        times = row["schedule"]["times"]
        axes.plot(times, [height] * len(times), "|", color=colour, ms=9, mew=1.8)
        axes.annotate(
            row["strategy"], (-0.01, height), ha="right", va="center", fontsize=8, color=colour, annotation_clip=False
        )
    axes.set(xlim=(0, 1), ylim=(-top * 0.085 * (len(rows) + 1), top * 1.05), xlabel="time (0 = data, 1 = noise)")
    axes.set_yticks([0, round(top, 1)])
    axes.yaxis.tick_right()
    steps = rows[0]["steps"] if rows else 0
    axes.set_title(f"information rate (nats per unit time) and {steps} steps")
    for side in ("top", "left"):
        axes.spines[side].set_visible(False)
