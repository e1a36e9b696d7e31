"""Quality of samples against network evaluations, one panel a metric, one row of panels a sampler or judge."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eigentime.report.figures import COLOURS, check_figures
from eigentime.report.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL = 1.96
"""Standard errors on either side of a 95 % interval."""


def quality_figure(
    parts: Mapping[str, Sequence[Row]],
    metrics: dict[str, str],
    levels: dict[str, dict[str, float]],
) -> "Figure":
    """Rows of a comparison by part; `metrics` are names and titles, `levels` horizontal lines {metric: {label: value}}.

    Error bars are 95 % intervals.
    """
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(metrics), 4.3 * len(parts)), layout="constrained")
    grid = figure.subplots(len(parts), len(metrics), squeeze=False)
    for (part, rows), axes_row in zip(parts.items(), grid, strict=True):
        for (metric, title), axes in zip(metrics.items(), axes_row, strict=True):
            for strategy in dict.fromkeys(row["strategy"] for row in rows):
                mine = sorted((row for row in rows if row["strategy"] == strategy), key=lambda row: row["nfe"])
                values = [row["metrics"][metric] for row in mine]
                axes.errorbar(
                    [row["nfe"] for row in mine],
                    [value["mean"] for value in values],
                    yerr=[INTERVAL * value["stderr"] for value in values],
                    color=COLOURS.get(strategy, COLOURS["plan"] if strategy.startswith("plan") else None),
                    lw=2.4 if strategy in ("ods", "plan") else 1.4,
                    marker="o",
                    ms=3.5,
                    capsize=2,
                    label=strategy,
                )
            for label, value in levels.get(metric, {}).items():
                axes.axhline(value, color="#222222", lw=0.9, ls=(0, (6, 3)))
                axes.annotate(
                    label, (0.01, value), xycoords=("axes fraction", "data"), ha="left", va="bottom", fontsize=8
                )
            ticks = sorted({row["nfe"] for row in rows})
            axes.set(xscale="log", xlabel="network evaluations", title=f"{part}: {title}")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
            axes.grid(alpha=0.25)
        axes_row[-1].legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
