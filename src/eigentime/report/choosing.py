"""Samplers that choose their tokens against those that do not: quality and variety by network evaluations."""

from typing import TYPE_CHECKING, Any

from eigentime.report.figures import check_figures
from eigentime.report.quality import INTERVAL
from eigentime.report.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "ancestral": "#8c8c8c",
    "plan": "#0b8f5a",
    "confidence": "#d62728",
    "margin": "#ff7f0e",
    "entropy": "#9467bd",
    "remasking": "#17becf",
    "entropy-bounded": "#e377c2",
    "threshold": "#8c564b",
    "klass": "#bcbd22",
    "prefix": "#2f6f4f",
    "order-bounded": "#66c2a5",
    "counted": "#1f4fd8",
    "first-hitting": "#222222",
}
SCHEDULES = {"uniform": "--", "ods": "-"}


TITLES = {
    "forward": "data cost, nats per token",
    "reverse": "own samples above one at a time",
}


def choosing_figure(content: dict[str, Any]) -> "Figure":
    """One row of panels a model: what is certified in nats, forward and reverse, and how samples are judged by fidelity
    and diversity; lower is better in all."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(19, 4.6 * len(content)), layout="constrained")
    grid = figure.subplots(len(content), 4, squeeze=False)
    for (model, found), panels in zip(content.items(), grid, strict=True):
        for metric, axes in zip(("forward", "reverse", found["fidelity"], found["diversity"]), panels, strict=True):
            for line in dict.fromkeys(map(_line, found["rows"])):
                _draw(axes, [row for row in found["rows"] if _line(row) == line], metric, *line)
            if metric in found["real"]:
                axes.axhline(found["real"][metric]["mean"], color="#222222", lw=0.8, ls=(0, (6, 3)))
            title = TITLES.get(metric, metric.replace("_", " "))
            axes.set(xscale="log", xlabel="network evaluations", title=f"{model}: {title}")
            axes.grid(alpha=0.25)
        panels[-1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _draw(axes: "Axes", rows: list[Row], metric: str, kind: str, schedule: str | None) -> None:
    """One sampler along one schedule."""
    rows = sorted(rows, key=lambda row: row["nfe"])
    base, _, setting = kind.partition(" (")
    axes.errorbar(
        [row["nfe"] for row in rows],
        [row["metrics"][metric]["mean"] for row in rows],
        yerr=[INTERVAL * row["metrics"][metric]["stderr"] for row in rows],
        color=COLOURS[base],
        ls=SCHEDULES.get(schedule or "", "-" if kind == "plan" else ":"),
        lw=2.4 if kind == "plan" else 1.3,
        alpha=0.55 if setting else 1.0,
        marker="x" if setting else "o",
        ms=4 if setting else 3,
        capsize=2,
        label=kind if schedule is None else f"{kind}, {schedule}",
    )


def _line(row: Row) -> tuple[str, str | None]:
    """Which line a row belongs to: its sampler, or the plan, and the schedule where there is one."""
    if row["strategy"] == "adaptive":
        return row["sampler"].split(" (")[0], None
    return ("plan", None) if row["strategy"] == "plan" else (row["sampler"], row["strategy"])
