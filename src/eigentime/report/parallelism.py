"""Accuracy against tokens per forward."""

from typing import TYPE_CHECKING, Any

from eigentime.report.figures import COLOURS, check_figures
from eigentime.report.quality import INTERVAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = "os^Dvp*X"


def parallelism_figure(tasks: dict[str, Any]) -> "Figure":
    """One panel per task: a line per sampler, with 95 % intervals of the accuracy and its AUP in the legend."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(tasks), 4.8), layout="constrained")
    for (task, found), axes in zip(tasks.items(), figure.subplots(1, len(tasks), squeeze=False)[0], strict=True):
        for number, (curve, area) in enumerate(found["aup"].items()):
            mine = [
                row for row in found["rows"] if row["sampler"].partition(":")[0] == curve or row["sampler"] == curve
            ]
            mine.sort(key=lambda row: row["metrics"]["tokens_per_forward"]["mean"])
            axes.errorbar(
                [row["metrics"]["tokens_per_forward"]["mean"] for row in mine],
                [100 * row["metrics"]["accuracy"]["mean"] for row in mine],
                yerr=[100 * INTERVAL * row["metrics"]["accuracy"]["stderr"] for row in mine],
                label=f"{curve}: {area:.0f}",
                color=COLOURS.get(curve),
                marker=MARKERS[number % len(MARKERS)],
                ms=4.5,
                lw=1.5,
                capsize=2,
            )
        axes.set(xscale="log", xlabel="tokens per forward", ylabel="accuracy in %", title=task, ylim=(-3, 103))
        ticks = sorted({round(row["metrics"]["tokens_per_forward"]["mean"], 1) for row in found["rows"]})
        shown = [tick for k, tick in enumerate(ticks) if k == 0 or tick / ticks[k - 1] > 1.15]
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9, title="AUP")
    return figure
