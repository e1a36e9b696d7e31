"""Samplers that choose their tokens against those that do not: quality and variety by network evaluations."""

from typing import TYPE_CHECKING, Any

from eigentime.report.figures import check_figures
from eigentime.report.quality import INTERVAL
from eigentime.report.rows import Row

if TYPE_CHECKING:
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
    "first-hitting": "#222222",
}
DRAWN_SCHEDULES = {"uniform": "--", "ods": "-"}
"""Of the schedules two are drawn; all are in the table."""


def choosing_figure(content: dict[str, Any]) -> "Figure":
    """One row of panels a model: its fidelity and its diversity, lower is better in both."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 4.4 * len(content)), layout="constrained")
    grid = figure.subplots(len(content), 2, squeeze=False)
    for (model, found), axes_row in zip(content.items(), grid, strict=True):
        for metric, axes in zip((found["fidelity"], found["diversity"]), axes_row, strict=True):
            for kind, schedule in dict.fromkeys(map(_line, found["rows"])):
                if schedule not in (None, *DRAWN_SCHEDULES):
                    continue
                mine = sorted(
                    (row for row in found["rows"] if _line(row) == (kind, schedule)), key=lambda row: row["nfe"]
                )
                axes.errorbar(
                    [row["nfe"] for row in mine],
                    [row["metrics"][metric]["mean"] for row in mine],
                    yerr=[INTERVAL * row["metrics"][metric]["stderr"] for row in mine],
                    color=COLOURS[kind],
                    ls=DRAWN_SCHEDULES.get(schedule or "", "-" if kind == "plan" else ":"),
                    lw=2.4 if kind == "plan" else 1.3,
                    marker="o",
                    ms=3,
                    capsize=2,
                    label=kind if schedule is None else f"{kind}, {schedule}",
                )
            axes.axhline(found["real"][metric]["mean"], color="#222222", lw=0.8, ls=(0, (6, 3)))
            axes.set(xscale="log", xlabel="network evaluations", title=f"{model}: {metric.replace('_', ' ')}")
            axes.grid(alpha=0.25)
        axes_row[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _line(row: Row) -> tuple[str, str | None]:
    """Which line a row belongs to: its sampler, or the plan, and the schedule where there is one."""
    sampler = row["sampler"].split(" (")[0]
    if row["strategy"] == "adaptive":
        return sampler, None
    return ("plan", None) if row["strategy"] == "plan" else (sampler, row["strategy"])
