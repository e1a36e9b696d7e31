"""Entropy and Wasserstein dynamics over time: truth, and an estimate with its error band."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from eigentime.report.figures import check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRUTH, ESTIMATE = "#222222", "#1f4fd8"
UNITS = {"entropy rate": "nats per unit time", "cumulative entropy": "nats", "Wasserstein rate": "per unit time"}


def dynamics_figure(kernels: dict[str, dict[str, dict[str, Any]]], note: str) -> "Figure":
    """One row per kernel, one column per quantity; each {times, truth, mean, stderr}. `note` stands below."""
    check_figures()
    from matplotlib.figure import Figure

    names = list(next(iter(kernels.values())))
    figure = Figure(figsize=(4 * len(names), 3.3 * len(kernels) + 0.6), layout="constrained")
    for row, axes_row in zip(kernels.items(), figure.subplots(len(kernels), len(names), squeeze=False), strict=True):
        kernel, curves = row
        for (name, content), axes in zip(curves.items(), axes_row, strict=True):
            times, mean, stderr = (np.asarray(content[key]) for key in ("times", "mean", "stderr"))
            axes.plot(times, content["truth"], color=TRUTH, lw=2.2, label="exact")
            axes.plot(times, mean, color=ESTIMATE, lw=1.2, ls="--", label="network, ± 2 standard errors")
            axes.fill_between(times, mean - 2 * stderr, mean + 2 * stderr, color=ESTIMATE, alpha=0.25, lw=0)
            axes.axhline(0, color="#bbbbbb", lw=0.7, zorder=0)
            axes.set(xlim=(0, 1), title=f"{kernel}: {name}", xlabel="time (0 = data, 1 = noise)")
            axes.set_ylabel(UNITS.get(name, ""))
            axes.grid(alpha=0.2)
        axes_row[0].legend(frameon=False, fontsize=9)
    figure.supxlabel("\n".join(textwrap.wrap(note, 150)), fontsize=9, color="#555555")
    return figure


def modalities_figure(content: dict[str, dict[str, Any]]) -> "Figure":
    """One column per model, one row per quantity; each {times, mean, stderr}, with a band of ± 2 standard errors."""
    check_figures()
    from matplotlib.figure import Figure

    names = list(next(iter(content.values()))["curves"])
    figure = Figure(figsize=(4.2 * len(content), 2.7 * len(names)), layout="constrained")
    for row, axes_row in zip(names, figure.subplots(len(names), len(content), squeeze=False, sharex=True), strict=True):
        for (model, found), axes in zip(content.items(), axes_row, strict=True):
            times, mean, stderr = (np.asarray(found["curves"][row][key]) for key in ("times", "mean", "stderr"))
            axes.plot(times, mean, color=ESTIMATE, lw=1.6)
            axes.fill_between(times, mean - 2 * stderr, mean + 2 * stderr, color=ESTIMATE, alpha=0.25, lw=0)
            axes.axhline(0, color="#bbbbbb", lw=0.7, zorder=0)
            axes.set(xlim=(0, 1), title=f"{model} ({found['kernel']}): {row}", ylabel=UNITS.get(row, ""))
            axes.title.set_fontsize(10)
            axes.grid(alpha=0.2)
            if row == names[-1]:
                axes.set_xlabel("time (0 = data, 1 = noise)")
    return figure
