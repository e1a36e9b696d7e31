"""The picture of each thing that has one: what `plot()` and notebooks show."""

from typing import TYPE_CHECKING

import numpy as np

from eigentime.measure import Clock, curve
from eigentime.measure.curves import Curve
from eigentime.pictured import draw
from eigentime.samplers import Samples
from eigentime.schedules import Plan, Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, GREEN, GREY = "#1f4fd8", "#0b8f5a", "#8c8c8c"
SHOWN = 32
"""Sequences of a sample that are shown at most."""


@draw.register(Curve)
def draw_curve(thing: Curve, axes: "Axes") -> None:
    """The quantity over time with its band."""
    _band(axes, thing)
    axes.set(xlim=(0, 1), xlabel="time (0 = data, 1 = noise)", ylabel=thing.name or None)


@draw.register(Clock)
def draw_clock(thing: Clock, axes: "Axes") -> None:
    """The rate at which data are revealed, which is what schedules divide among their steps."""
    _band(axes, curve(thing, "nonadiabatic_data"))
    axes.set(xlim=(0, 1), xlabel="time (0 = data, 1 = noise)", ylabel="nats per unit time")
    axes.set_title(f"information rate, {thing.model}", fontsize=9)


@draw.register(Schedule)
def draw_schedule(thing: Schedule, axes: "Axes") -> None:
    """Where the steps lie on the noise curve."""
    times = np.linspace(0, 1, 201)
    axes.plot(times, thing.noise.alpha(times).numpy(), color=GREY, lw=1)
    axes.vlines(thing.times, 0, thing.alphas, color=BLUE, lw=0.8, alpha=0.5)
    axes.plot(thing.times, thing.alphas, "o", color=BLUE, ms=3.5)
    axes.set(xlim=(1.02, -0.02), ylim=(0, 1.04), xlabel="time, from noise to data", ylabel="tokens kept, α")
    axes.set_title(f"{thing.strategy}, {thing.evaluations} evaluations", fontsize=9)


@draw.register(Plan)
def draw_plan(thing: Plan, axes: "Axes") -> None:
    """Which places each evaluation reveals."""
    steps = thing.step_of(1)[0].numpy()
    axes.scatter(np.arange(len(steps)), steps + 1, c=steps, cmap="viridis", s=5, marker="s", linewidths=0)
    axes.set(xlabel="place in the sequence", ylabel="evaluation", ylim=(thing.steps + 0.6, 0.4))
    axes.locator_params(axis="y", integer=True)
    axes.set_title(f"{thing.order.name}: {_counts(thing.counts)} tokens per evaluation", fontsize=9)


@draw.register(Samples)
def draw_samples(thing: Samples, axes: "Axes") -> None:
    """Tokens as colours, one row per sequence."""
    rows = thing.detach().cpu().numpy().reshape(-1, thing.shape[-1])[:SHOWN]
    axes.imshow(rows, aspect="auto", interpolation="nearest", cmap="viridis")
    axes.set(xlabel="place in the sequence", ylabel="sequence")


def _band(axes: "Axes", thing: Curve) -> None:
    low, high = thing.band()
    finite = np.isfinite(thing.mean)
    axes.fill_between(thing.times[finite], low[finite], high[finite], color=BLUE, alpha=0.2, lw=0)
    axes.plot(thing.times[finite], thing.mean[finite], color=BLUE, lw=1.4)


def _counts(counts: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, counts[:6]))
    return shown if len(counts) <= 6 else f"{shown}, …"
