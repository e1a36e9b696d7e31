"""Stories: both divergences against network evaluations, and how well certificates predict them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from eigentime.report.choosing import COLOURS as SAMPLERS
from eigentime.report.figures import COLOURS, check_figures
from eigentime.report.quality import INTERVAL
from eigentime.report.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = SAMPLERS | COLOURS | {"apart": "#7f7f00"}
PANELS = {
    "kl_data": "KL(data ‖ samples), nats per sequence",
    "kl_samples": "KL(samples ‖ data), nats per sequence",
    "surprise": "nats unlikelier than data",
    "distinct": "share of different 3-grams",
}
PAIRS = {
    "path error, kl_data": ("path error of the clock", "KL(data ‖ samples)"),
    "kl_data, kl_samples": ("what data cost, above their entropy", "KL(samples ‖ data)"),
    "reverse, kl_samples": ("its own samples above one token at a time", "KL(samples ‖ data)"),
}
"""A certificate and what it should predict. What data cost is KL(data ‖ samples) but for a constant."""
NEAR = 0.35
"""Powers of two by which the evaluations of an adaptive rule may differ from a number that it is compared with."""
LEAST = 4
"""Ways of sampling that a rank correlation needs."""


def line_of(row: Row) -> str:
    """What a row is called: the schedule or the plan, a sampler that chooses, or an adaptive rule."""
    if row["strategy"] == "adaptive" or row["sampler"] != "ancestral":
        return row["sampler"].split(" (")[0]
    return row["strategy"]


def evaluations_of(row: Row) -> int:
    """The power of two that a row is compared at, 0 where an adaptive rule is near none."""
    if row["steps"]:
        return row["steps"]
    power = round(np.log2(row["nfe"]))
    return int(2**power) if abs(np.log2(row["nfe"]) - power) <= NEAR else 0


def value_of(row: Row, name: str) -> float:
    """A metric, or the certified path error; NaN where there is none."""
    found = row["path_error"] if name == "path error" else row["metrics"].get(name)
    return float("nan") if found is None else found["mean"]


def agreement(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Spearman's rank correlation of certificates with divergences among ways of sampling with as many evaluations."""
    result: dict[str, dict[str, dict[str, float]]] = {}
    for pair in PAIRS:
        certificate, truth = pair.split(", ")
        for count in sorted({evaluations_of(row) for row in rows} - {0}):
            mine = [row for row in rows if evaluations_of(row) == count]
            points = np.array([[value_of(row, certificate), value_of(row, truth)] for row in mine])
            points = points[np.isfinite(points).all(1)]
            if len(points) >= LEAST:
                ranks = {"ways": len(points), "rank_correlation": float(spearmanr(*points.T).statistic)}
                result.setdefault(pair, {})[str(count)] = ranks
    return result


def divergences_figure(content: dict[str, Any]) -> "Figure":
    """One panel per judge, one line per way of sampling; 95 % intervals."""
    check_figures()
    from matplotlib.figure import Figure

    rows = content["rows"]
    shown = [name for name in PANELS if any(np.isfinite(value_of(row, name)) for row in rows)]
    figure = Figure(figsize=(6.2 * 2, 4.6 * ((len(shown) + 1) // 2)), layout="constrained")
    panels = figure.subplots((len(shown) + 1) // 2, 2, squeeze=False).ravel()
    for name, axes in zip(shown, panels, strict=False):
        for line in dict.fromkeys(map(line_of, rows)):
            _draw(axes, [row for row in rows if line_of(row) == line], name, line)
        if name == "distinct":
            _level(axes, content["real"]["distinct"]["mean"], "data", "bottom")
        if name == "kl_data" and content["one_at_a_time"]:
            _level(axes, content["one_at_a_time"]["mean"], "one token at a time, random order (at most)", "top")
        ticks = sorted({evaluations_of(row) for row in rows} - {0})
        axes.set(xscale="log", xlabel="network evaluations", title=PANELS[name])
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.25)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False, fontsize=9)
    return figure


def certificates_figure(content: dict[str, Any]) -> "Figure":
    """Certificates against divergences, one colour per number of evaluations."""
    check_figures()
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    rows, found = content["rows"], content["agreement"]
    counts = sorted({evaluations_of(row) for row in rows} - {0})
    colours = dict(zip(counts, colormaps["viridis"](np.linspace(0, 0.92, len(counts))), strict=True))
    figure = Figure(figsize=(5.4 * len(found), 5.0), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for pair, axes in zip(found, panels, strict=True):
        (certificate, truth), (x_title, y_title) = pair.split(", "), PAIRS[pair]
        for count in counts:
            mine = [row for row in rows if evaluations_of(row) == count]
            rank = found[pair].get(str(count))
            note = f" ({rank['rank_correlation']:.2f})" if rank else ""
            points = np.array([[value_of(row, certificate), value_of(row, truth)] for row in mine]).T
            axes.plot(*points, "o", color=colours[count], ms=5, alpha=0.85, label=f"{count}{note}")
            for row, x, y in zip(mine, *points, strict=True):
                if line_of(row) == "plan" and np.isfinite(x + y):
                    axes.plot(x, y, "o", ms=10, mfc="none", mec=LINES["plan"], mew=1.5)
        axes.set(xlabel=f"{x_title}, nats", ylabel=f"{y_title}, nats")
        axes.legend(title="evaluations (rank correlation)", frameon=False, fontsize=8, title_fontsize=8)
        axes.grid(alpha=0.25)
    figure.suptitle("Certificates, made without the true law, against true divergences; ringed: plans", fontsize=11)
    return figure


def _draw(axes: "Axes", rows: Sequence[Row], metric: str, line: str) -> None:
    mine = sorted((row for row in rows if np.isfinite(value_of(row, metric))), key=lambda row: row["nfe"])
    adaptive = bool(mine) and not mine[0]["steps"]
    axes.errorbar(
        [row["nfe"] for row in mine],
        [row["metrics"][metric]["mean"] for row in mine],
        yerr=[INTERVAL * row["metrics"][metric]["stderr"] for row in mine],
        color=LINES[line],
        ls=":" if adaptive else "--" if line in SAMPLERS and line != "plan" else "-",
        lw=2.6 if line == "plan" else 1.3,
        marker="x" if adaptive else "o",
        ms=4,
        capsize=1.5,
        alpha=1.0 if line in ("plan", "ods", "uniform") else 0.8,
        label=line,
    )


def _level(axes: "Axes", value: float, name: str, side: str) -> None:
    """A line across, named at its left where lines of the figure are on the other `side`."""
    axes.axhline(value, color="#222222", lw=0.8, ls=(0, (6, 3)))
    axes.annotate(name, (0.01, value), xycoords=("axes fraction", "data"), ha="left", va=side, fontsize=8)
