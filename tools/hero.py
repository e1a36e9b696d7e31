"""The README's first picture: digits of the same network at equal cost, and what every evaluation buys."""

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from results import load

import eigentime as et
from eigentime.report.figures import COLOURS
from eigentime.report.tiles import tile

SIZE, DPI = (12.0, 3.9), 130
EVALUATIONS, DIGITS, COLUMNS = 8, 20, 10
INTERVAL = 1.96
NAMES = {"uniform": "equal steps, random places", "ods": "best times, random places", "plan": "measured plan"}
SHEETS = {"uniform": "Equal steps", "plan": "Measured plan"}
GREY = "#555555"


def hero() -> bytes:
    """Two sheets of digits beside the curve, as a PNG; schedules and numbers are those of results/mnist/mnist.json."""
    rows = {(row["strategy"], row["steps"]): row for row in load("mnist/mnist.json")["rows"] if _plain(row)}
    figure = Figure(figsize=SIZE, layout="constrained", facecolor="white")
    sheets, curve = figure.subfigures(1, 2, width_ratios=[1.55, 1])
    model = et.load("mnist")
    kept = rows["plan", EVALUATIONS]["schedule"]
    ways = {"uniform": et.schedule("uniform", steps=EVALUATIONS, model=model), "plan": et.Plan.from_dict(kept)}
    for axes, (name, way) in zip(sheets.subplots(2, 1), ways.items(), strict=True):
        drawn = et.sample(model, way, DIGITS, seed=0).numpy()
        axes.imshow(tile(drawn, (1, 28, 28), len(model.process.kernel.values) - 1, COLUMNS), interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{SHEETS[name]}, {EVALUATIONS} evaluations per digit", loc="left", fontsize=13, weight="bold")
        axes.title.set_color(COLOURS[name])
    _curve(curve.subplots(), rows)
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=DPI)
    return held.getvalue()


def _plain(row: dict[str, Any]) -> bool:
    """One line per strategy: the ancestral sampler's."""
    return row["strategy"] in NAMES and row["sampler"] == "ancestral"


def _curve(axes: Any, rows: dict[tuple[str, int], dict[str, Any]]) -> None:
    """What held-out digits cost with each way of sampling, and how many equal steps the plan saves."""
    counts = sorted({count for _, count in rows})
    found = {}
    for name, words in NAMES.items():
        values = [rows[name, count]["metrics"]["excess"] for count in counts]
        found[name] = np.array([value["mean"] for value in values])
        bars = [INTERVAL * value["stderr"] for value in values]
        thick = 2.8 if name == "plan" else 1.6
        axes.errorbar(
            counts, found[name], bars, label=words, color=COLOURS[name], lw=thick, marker="o", ms=4, capsize=2
        )
    level = float(found["plan"][counts.index(EVALUATIONS)])
    equal = float(np.exp(np.interp(-np.log(level), -np.log(found["uniform"]), np.log(counts))))
    axes.annotate("", (EVALUATIONS, level), (equal, level), arrowprops={"arrowstyle": "<->", "color": GREY})
    axes.text(equal * 1.06, level + 1.5, f"{EVALUATIONS} evaluations\nas good as {equal:.0f}", color=GREY, va="bottom")
    axes.set(xscale="log", ylim=(0, None), xlabel="network evaluations per picture")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_title("Error on pictures it has never seen (nats)", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="upper right")
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
