"""Figures of what our own work costs beside the network's."""

from typing import TYPE_CHECKING, Any

import numpy as np

from eigentime.report.figures import check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, PLAIN, TARGET = "#1f4fd8", "#8c8c8c", "#d62728"


def ratios_figure(times: dict[str, dict[str, Any]], memory: dict[str, float]) -> "Figure":
    """Backbones per step with quartiles and targets, and memory beyond the weights."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    names = list(times)[::-1]
    middle = np.array([times[name]["median"] for name in names])
    spread = np.array([[times[name]["low"], times[name]["high"]] for name in names]).T
    colours = [OURS if times[name]["target"] else PLAIN for name in names]
    left.barh(names, middle, color=colours, xerr=np.abs(spread - middle), error_kw={"lw": 1, "capsize": 2})
    for row, name in enumerate(names):
        if times[name]["target"]:
            left.plot([times[name]["target"]] * 2, [row - 0.4, row + 0.4], color=TARGET, lw=2)
    left.axvline(1, color="black", lw=0.8)
    left.set(xlabel="time of a step, in evaluations of the backbone (red: target)", xlim=(0, None))
    right.barh(
        list(memory)[::-1],
        list(memory.values())[::-1],
        color=[OURS if "dense" not in n else PLAIN for n in memory][::-1],
    )
    right.set(xlabel="GiB beyond the weights")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def growth_figure(axes_of: dict[str, dict[str, Any]]) -> "Figure":
    """Seconds against each size, with the slope that was fitted."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(axes_of), 3.2), layout="constrained")
    for axes, (name, found) in zip(figure.subplots(1, len(axes_of)), axes_of.items(), strict=True):
        for sampler, line in found.items():
            axes.loglog(line["sizes"], line["seconds"], "o-", ms=3, label=f"{sampler}, slope {line['slope']:.2f}")
        axes.set(xlabel=name, ylabel="seconds")
        axes.legend(frameon=False, fontsize=7)
        axes.grid(alpha=0.25)
    return figure


def scale_figure(found: dict[str, Any]) -> "Figure":
    """Evaluations per second by one process and by several, every repetition a point."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(found["seconds"])
    for place, name in enumerate(names):
        rates = [found["evaluations"] / seconds for seconds in found["seconds"][name]]
        left.bar(place, np.median(rates), width=0.6, color=OURS if place else PLAIN)
        left.plot([place] * len(rates), rates, ".", color="black", ms=4)
    left.set(ylabel="evaluations per second", xticks=range(len(names)), xticklabels=names, xlabel="processes")
    ranks = [str(rank) for rank in range(len(found["peak_mib"]))]
    right.bar(ranks, found["peak_mib"], width=0.6, color=OURS)
    right.set(ylabel="peak memory in MiB", xlabel="rank")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
