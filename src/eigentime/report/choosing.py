"""Samplers that choose their tokens against those that do not: quality and variety by network evaluations."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

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
DASHES = {"uniform": "--", "wds": "-.", "ods": "-"}
TITLES = {
    "forward": "what data cost, nats per token",
    "reverse": "its own samples above one token at a time, nats per token",
    "bits": "judge: bits per character under an n-gram model",
    "entropy_gap": "judge: distance from the entropy of text",
    "violation": "judge: transitions that break the rule",
    "unigrams": "judge: distance from the frequencies of tokens",
    "frechet_pixels": "judge: Fréchet distance, pixels",
    "frechet_small": "judge: Fréchet distance, features",
    "variance": "judge: variance, |ln ratio| to real",
}
TICKS = [2**k for k in range(12)]
DODGE = 0.012
"""Lines are drawn a little beside each other, so that their error bars can be told apart."""


def agreement(rows: list[Row], fidelity: str) -> dict[str, float]:
    """Spearman's rank correlation of what is certified, forward and reverse, with what the judge says, over the `rows`
    that a certificate covers."""
    covered = [row["metrics"] for row in rows if np.isfinite(row["metrics"]["forward"]["mean"])]
    judged = [row[fidelity]["mean"] for row in covered]
    ranks = {way: spearmanr([row[way]["mean"] for row in covered], judged).statistic for way in ("forward", "reverse")}
    return {"rows": len(covered)} | {way: float(value) for way, value in ranks.items()}


def choosing_figure(content: dict[str, Any]) -> "Figure":
    """One column per model: above what is certified in nats, forward and reverse, below how samples are judged by
    fidelity and diversity; lower is better in all."""
    check_figures()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(9.0, 5.2 * len(content)), 15.5), layout="constrained")
    grid = figure.subplots(4, len(content), squeeze=False)
    handles: dict[str, Any] = {}
    for (model, found), panels in zip(content.items(), grid.T, strict=True):
        lines = list(dict.fromkeys(map(_line, found["rows"])))
        for metric, axes in zip(("forward", "reverse", found["fidelity"], found["diversity"]), panels, strict=True):
            for number, line in enumerate(lines):
                beside = 1 + DODGE * (number - len(lines) / 2) if line[1] else 1.0
                _draw(axes, [row for row in found["rows"] if _line(row) == line], metric, beside, *line)
            if metric in found["real"]:
                _level(axes, found["real"][metric]["mean"], "NELBO" if metric == "forward" else "real data")
            _axes(axes, found["rows"], TITLES.get(metric, metric.replace("_", " ")))
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        ranks = agreement(found["rows"], found["fidelity"])
        note = f"rank correlation {ranks['forward']:.2f} with forward, {ranks['reverse']:.2f} with reverse"
        panels[2].set_title(f"{panels[2].get_title()}\n{note}")
        panels[0].annotate(
            model, (0.5, 1.12), xycoords="axes fraction", ha="center", va="bottom", fontsize=15, weight="bold"
        )
    figure.legend(handles.values(), handles.keys(), frameon=False, fontsize=9, ncols=6, loc="outside lower center")
    return figure


def _axes(axes: "Axes", rows: list[Row], title: str) -> None:
    """Evaluations on a logarithmic axis with plain numbers."""
    evaluations = [row["nfe"] for row in rows]
    ticks = [tick for tick in TICKS if min(evaluations) / 1.5 <= tick <= 1.5 * max(evaluations)]
    axes.set(xscale="log", xlabel="network evaluations", title=title)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)


def _level(axes: "Axes", value: float, name: str) -> None:
    axes.axhline(value, color="#222222", lw=0.8, ls=(0, (6, 3)))
    axes.annotate(name, (0.01, value), xycoords=("axes fraction", "data"), ha="left", va="bottom", fontsize=8)


def _draw(axes: "Axes", rows: list[Row], metric: str, beside: float, kind: str, schedule: str | None) -> None:
    """One sampler along one schedule; nothing where no certificate covers it."""
    rows = sorted((row for row in rows if np.isfinite(row["metrics"][metric]["mean"])), key=lambda row: row["nfe"])
    base, _, setting = kind.partition(" (")
    axes.errorbar(
        [beside * row["nfe"] for row in rows],
        [row["metrics"][metric]["mean"] for row in rows],
        yerr=[INTERVAL * row["metrics"][metric]["stderr"] for row in rows],
        color=COLOURS[base],
        ls=DASHES.get(schedule or "", "-" if kind == "plan" else ":"),
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
