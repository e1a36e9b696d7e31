"""Piano rolls: tunes as pictures."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Integer

from eigentime.report.figures import check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REST, BAR = 128, 16


def roll_figure(tunes: dict[str, Integer[np.ndarray, " steps"]], given: int) -> "Figure":
    """One strip a tune, pitch upwards, bars as lines; the given part on grey."""
    check_figures()
    from matplotlib.figure import Figure

    sounding = np.concatenate([row[row != REST] for row in tunes.values()])
    low, high = (sounding.min() - 2, sounding.max() + 2) if len(sounding) else (0, REST)
    figure = Figure(figsize=(11, 1.25 * len(tunes) + 0.5), layout="constrained")
    strips = figure.subplots(len(tunes), 1, squeeze=False, sharex=True)[:, 0]
    for (name, row), axes in zip(tunes.items(), strips, strict=True):
        changes = np.flatnonzero(np.diff(row, prepend=-1))
        for start, stop in zip(changes, [*changes[1:], len(row)], strict=True):
            if row[start] != REST:
                axes.hlines(row[start], start, stop, color="#1f4fd8", lw=2.6, capstyle="butt")
        axes.axvspan(0, given, color="#dddddd", alpha=0.6, lw=0)
        axes.set(xlim=(0, len(row)), ylim=(low, high), yticks=[])
        axes.set_xticks(range(0, len(row) + 1, BAR), [str(k) for k in range(len(row) // BAR + 1)])
        axes.grid(axis="x", alpha=0.3)
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    axes.set_xlabel("bars (grey: given)")
    return figure
