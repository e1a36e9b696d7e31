"""Figures of docs/ideas.md: why a step errs, what better times and places save. Exact countdown, seed 0."""

import io
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import eigentime as et
from eigentime.report.figures import COLOURS

NAME, BUDGET, DPI = "countdown-exact", 512, 120
STEPS, EVALUATIONS, SHOWN = 6, 8, 64
ORDERS = {"raster": "from left to right", "random": "at random", "low-discrepancy": "spread out"}
ERROR = "#dc2626"
POINTS = 800


@cache
def _clock() -> et.Clock:
    return et.measure(et.load(NAME), orders=list(ORDERS), budget=BUDGET)


def times() -> bytes:
    """The staircase of a schedule over the curve of what is still undecided: the area between them is its error."""
    clock = _clock()
    rate = et.curve(clock, "nonadiabatic_data", np.linspace(0.002, 0.998, 400))
    slope = clock.noise.beta(rate.times) * clock.noise.alpha(rate.times)
    known, nats = clock.noise.alpha(rate.times).numpy()[::-1], (rate.mean / slope.numpy() / clock.length)[::-1]
    figure = Figure(figsize=(9.6, 3.3), layout="constrained")
    for axes, (name, words) in zip(
        figure.subplots(1, 2, sharey=True), {"uniform": "equal steps", "ods": "best times"}.items(), strict=True
    ):
        grid = et.schedule(clock, name, steps=STEPS)
        error = et.path_error(clock, grid)
        stops = np.array([float(alpha) for alpha in grid.alphas])
        fine = np.linspace(0, 1, POINTS)
        curve = np.interp(fine, known, nats)
        begun = stops[np.searchsorted(stops, fine, side="right").clip(1) - 1]
        step = np.interp(begun, fine, curve)
        axes.fill_between(fine, curve, step, color=ERROR, alpha=0.28, lw=0, label="error")
        axes.plot(fine, step, color=COLOURS[name], lw=1.4)
        axes.plot(fine, curve, color="#222222", lw=1.8)
        axes.vlines(stops[:-1], 0, np.interp(stops[:-1], fine, curve), color=COLOURS[name], lw=1, ls=":")
        axes.set(xlabel="share of tokens known", xlim=(0, 1), ylim=(0, None))
        axes.set_title(f"{STEPS} evaluations, {words}: {error.mean:.0f} ± {error.stderr:.0f} nats", color=COLOURS[name])
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("nats undecided\nper unknown token")
    return _png(figure)


def places() -> bytes:
    """Which evaluation reveals which place, in three orders, and what that costs."""
    clock = _clock()
    figure = Figure(figsize=(9.6, 2.3), layout="constrained")
    for axes, (name, words) in zip(figure.subplots(len(ORDERS), 1, sharex=True), ORDERS.items(), strict=True):
        plan = et.plan(clock, EVALUATIONS, order=name)
        error = plan.predicted_error
        assert error is not None
        when = plan.step_of(1)[0].numpy()[:SHOWN] + 1
        shown = axes.imshow(when[None], cmap="viridis", aspect="auto", vmin=1, vmax=EVALUATIONS)
        axes.set(yticks=[], xticks=[])
        axes.set_ylabel(words, rotation=0, ha="right", va="center")
        axes.text(1.01, 0.5, f"{_plain(error.mean)} ± {error.stderr:.0f} nats", transform=axes.transAxes, va="center")
    figure.axes[-1].set_xlabel(f"the first {SHOWN} places of a sequence")
    figure.colorbar(shown, ax=figure.axes, label="evaluation", ticks=[1, EVALUATIONS], pad=0.13)
    return _png(figure)


def _plain(value: float) -> str:
    return f"{value:.0f}".replace("-0", "0")


def _png(figure: Any) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=DPI)
    return held.getvalue()
