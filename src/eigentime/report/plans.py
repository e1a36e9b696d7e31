"""Plans beside schedules: what samples say against evaluations, and whether the certificate saw it coming."""

from typing import TYPE_CHECKING, Any

from eigentime.report.figures import COLOURS, check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAN_COLOURS = {
    "plan-random": "#7fb3ff",
    "plan-low-discrepancy": "#0b8f5a",
    "plan-dilated": "#7a5195",
    "plan-farthest": "#ef5675",
    "plan-raster": "#5b5b5b",
    "plan-halton": "#ffa600",
    "plan-sobol": "#bc5090",
}


def plans_figure(content: dict[str, Any], name: str) -> "Figure":
    """Left: surprise of the samples against evaluations. Right: every cell's certificate against its surprise."""
    check_figures()
    from matplotlib.figure import Figure

    rows = content["rows"]
    figure = Figure(figsize=(12.5, 5.2), layout="constrained")
    curves, scatter = figure.subplots(1, 2)
    for strategy in dict.fromkeys(row["strategy"] for row in rows if row["strategy"] != "plan"):  # one of those drawn
        mine = sorted((row for row in rows if row["strategy"] == strategy), key=lambda row: row["steps"])
        found = [row["metrics"]["surprise"] for row in mine]
        mean, stderr = [value["mean"] for value in found], [value["stderr"] for value in found]
        timed = strategy in COLOURS
        shared: dict[str, Any] = {"yerr": stderr, "color": (COLOURS | PLAN_COLOURS)[strategy], "label": strategy}
        curves.errorbar(
            [row["steps"] for row in mine], mean, ls="--" if timed else "-", marker="o", ms=3.5, capsize=2, **shared
        )
        certified = [row["path_error"]["mean"] for row in mine]
        scatter.errorbar(certified, mean, ls="", marker="s" if timed else "o", ms=5, **shared)
    for axes in (curves, scatter):
        axes.set_yscale("symlog", linthresh=1.0)
        axes.axhline(0, color="#999999", lw=0.8)
        axes.grid(alpha=0.25)
        axes.set_ylabel("surprise of samples above data (nats)")
    ticks = sorted({row["steps"] for row in rows})
    curves.set(xscale="log", xlabel="network evaluations", title=name)
    curves.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    curves.minorticks_off()
    curves.legend(frameon=False, fontsize=8)
    certified = [row["path_error"]["mean"] for row in rows]
    scatter.set_xscale("symlog", linthresh=1.0)
    scatter.set_xlim(min(0.0, *certified) - 0.5, 1.5 * max(certified))
    scatter.set(
        xlabel="certified path error (nats)", title=f"rank correlation {content['rank_correlation']['all']:.3f}"
    )
    return figure
