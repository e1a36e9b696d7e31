"""A comparison on a network beside the same one on the exact model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eigentime.report.figures import COLOURS, check_figures
from eigentime.report.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "violation": "violation rate",
    "unigrams": "token frequencies, Hellinger distance from the truth",
    "run_starts": "run starts, Hellinger distance from the truth",
}


def experiment_figure(content: dict[str, Any], metrics: list[str]) -> "Figure":
    """One panel a metric: the network with error bars, the exact model dotted, as many real sequences as a line."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(metrics), 4.8), layout="constrained")
    for metric, axes in zip(metrics, figure.subplots(1, len(metrics), squeeze=False)[0], strict=True):
        for part in ("exact", "network"):
            _curves(axes, content[part]["rows"], metric, part)
        floor = content["data"][metric]["mean"]
        if floor > 0:
            axes.axhline(floor, color="#222222", lw=0.9, ls=(0, (6, 3)))
            axes.annotate(
                "real data", (1.0, floor), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
            )
        ticks = sorted({row["nfe"] for row in content["network"]["rows"]})
        axes.set(xscale="log", yscale="log", xlabel="network evaluations", title=TITLES.get(metric, metric))
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        if metric.startswith("violation"):
            axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.grid(alpha=0.25)
        if metric == metrics[0]:
            axes.plot([], [], color="#666666", lw=1.2, ls=":", label="exact model")
            axes.legend(frameon=False, fontsize=9)
    return figure


def _curves(axes: "Axes", rows: Sequence[Row], metric: str, part: str) -> None:
    for strategy in dict.fromkeys(row["strategy"] for row in rows):
        mine = sorted((row for row in rows if row["strategy"] == strategy), key=lambda row: row["nfe"])
        nfe = [row["nfe"] for row in mine]
        mean = [row["metrics"][metric]["mean"] for row in mine]
        colour = COLOURS.get(strategy)
        if part == "exact":
            axes.plot(nfe, mean, color=colour, lw=1.0, ls=":")
            continue
        stderr = [row["metrics"][metric]["stderr"] for row in mine]
        width = 2.6 if strategy == "ods" else 1.4
        axes.errorbar(nfe, mean, yerr=stderr, color=colour, lw=width, marker="o", ms=3.5, capsize=2, label=strategy)
