"""List operations: accuracy of samplers against the best that any can do, and against what the certificate promises."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eigentime.report.figures import check_figures
from eigentime.report.quality import INTERVAL
from eigentime.report.rows import Row, line_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {
    "uniform": ("#8c8c8c", "o", "-"),
    "ods": ("#1f4fd8", "s", "-"),
    "counted, uniform": ("#b8860b", "D", "-"),
    "plan": ("#0b8f5a", "o", "-"),
    "confidence, uniform": ("#d62728", "v", "-"),
    "entropy, uniform": ("#9467bd", "^", "-"),
    "recommended": ("#222222", "*", "-"),
    "entropy-bounded": ("#e377c2", "x", ":"),
    "threshold": ("#8c564b", "x", ":"),
    "prefix": ("#2f6f4f", "x", ":"),
}
PARTS = {"exact": "exact model", "network": "network"}


def lists_figure(content: dict[str, Any], operations: Sequence[str]) -> "Figure":
    """A row of panels for the exact model and one for the network: an operation each, then the certificate."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.1 * (len(operations) + 1), 8.6), layout="constrained")
    grid = figure.subplots(len(PARTS), len(operations) + 1)
    for (part, title), panels in zip(PARTS.items(), grid, strict=True):
        for name, axes in zip(operations, panels[:-1], strict=True):
            best = {int(count): value for count, value in content["best"][name].items()}
            axes.plot(
                best.keys(), [100 * v for v in best.values()], color="black", lw=5, alpha=0.18, label="best possible"
            )
            corners = np.array([[1, best[1]], *content["best_on_average"][name]]).T
            every = np.geomspace(1, corners[0].max(), 200)  # between corners two rules are mixed
            axes.plot(every, 100 * np.interp(every, *corners), "k--", lw=1, alpha=0.6, label="best on average")
            _samplers(axes, content[part][name]["rows"])
            axes.set(xscale="log", xlabel="network evaluations per answer", title=f"{name}, {title}", ylim=(-3, 104))
            axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
            axes.minorticks_off()
            axes.grid(alpha=0.25)
        panels[0].set_ylabel("right answers in %")
        _certificates(panels[-1], {name: content[part][name]["rows"] for name in operations}, title)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def _samplers(axes: "Axes", rows: Sequence[Row]) -> None:
    for line, (colour, marker, style) in STYLES.items():
        mine = sorted((row for row in rows if line_of(row) == line), key=lambda row: row["nfe"])
        accuracy = [row["metrics"]["accuracy"] for row in mine]
        axes.errorbar(
            [row["nfe"] for row in mine],
            [100 * value["mean"] for value in accuracy],
            yerr=[100 * INTERVAL * value["stderr"] for value in accuracy],
            color=colour,
            marker=marker,
            ls=style,
            lw=1.3,
            ms=8 if marker == "*" else 4,
            capsize=1.5,
            label=line,
        )


def _certificates(axes: "Axes", rows: dict[str, Sequence[Row]], title: str) -> None:
    """Accuracy against exp(-KL), the least that the certificate allows."""
    ends = np.array([0.0, 100.0])
    axes.fill_between(ends, ends, 0, color="black", alpha=0.07, lw=0)
    axes.plot(ends, ends, color="black", lw=0.8)
    for (name, mine), marker in zip(rows.items(), "os^D", strict=False):
        axes.plot(
            [100 * np.exp(-row["metrics"]["kl"]["mean"]) for row in mine],
            [100 * row["metrics"]["accuracy"]["mean"] for row in mine],
            marker,
            ms=4,
            alpha=0.7,
            label=name,
        )
    axes.set(xlabel="promised by the certificate: exp(-nats) in %", title=f"certificate, {title}", ylim=(-3, 104))
    axes.set_xlim(-3, 104)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
