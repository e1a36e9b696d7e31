"""Where along the reverse process information is generated: the rates that were measured, and their sums."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eigentime.measure import Clock, cumulative, curve, wasserstein
from eigentime.measure.curves import BOUNDS, Curve, wasserstein_rate
from eigentime.report.page.html import Markup, escaped, number, plus_minus, table
from eigentime.report.page.material import Material, Section, rounded

SHOWN = 121
"""Times that a curve is drawn at."""
BARE, DATA = "nonadiabatic", "nonadiabatic_data"
INTERVAL = 1.96
Times = np.ndarray


@dataclass(frozen=True)
class Panel:
    """One chart: its name, its unit, what it says, and its lines."""

    title: str
    unit: str
    about: str
    lines: dict[str, Callable[[Clock, Times], Curve]]


PANELS = (
    Panel(
        "Entropy rate",
        "nats per unit time",
        "How fast information is generated. The bare gauge is the paper's; the data gauge counts only the entropy of "
        "the data. For kernels without a mask the two are the same.",
        {"bare gauge": lambda c, t: curve(c, BARE, t), "data gauge": lambda c, t: curve(c, DATA, t)},
    ),
    Panel(
        "Information so far",
        "nats",
        "The integral of the entropy rate from the data (time 0) on.",
        {"bare gauge": lambda c, t: cumulative(c, BARE, t), "data gauge": lambda c, t: cumulative(c, DATA, t)},
    ),
    Panel(
        "Activity",
        "jumps per unit time",
        "How many tokens change per unit time.",
        {"activity": lambda c, t: curve(c, "activity", t)},
    ),
    Panel(
        "Jumps so far",
        "jumps",
        "The integral of the activity from the data on.",
        {"activity": lambda c, t: cumulative(c, "activity", t)},
    ),
    Panel(
        "Wasserstein rate",
        "per unit time",
        "√(activity × entropy rate): what WDS makes equal at every step.",
        {
            "bare gauge": lambda c, t: wasserstein_rate(c, t, BARE),
            "data gauge": lambda c, t: wasserstein_rate(c, t, DATA),
        },
    ),
    Panel(
        "Wasserstein distance",
        "tokens",
        "Upper bounds on how many tokens must change between the data and time t. On masked models only the mobility "
        "bound is a bound; the others are the paper's surrogates there, and one that is infinite is not drawn.",
        {bound: lambda c, t, bound=bound: wasserstein(c, bound, t) for bound in BOUNDS},  # type: ignore[misc]
    ),
)


def section(material: Material) -> Section:
    """Every panel with 95 % bands, and the numbers at a few times."""
    clock = material.clock
    times = (np.arange(SHOWN) + 0.5) / SHOWN
    drawn = [(panel, _drawn(panel, clock, times)) for panel in PANELS]
    at = [int(share * SHOWN) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
    rows = [
        [f"{panel.title}, {name} ({panel.unit})", *(plus_minus(each.mean[k], each.stderr[k]) for k in at)]
        for panel, lines in drawn
        for name, each in lines.items()
    ]
    return Section(
        "dynamics",
        "Where information is generated",
        escaped(
            "Time runs from the data (0) to pure noise (1); sampling goes from right to left. Bands are 95 % intervals "
            f"from {clock.groups} groups of sequences. Where a curve is high, a model decides much in little time: "
            "steps belong there."
        ),
        {
            "times": rounded(times, 4),
            "panels": [
                {
                    "title": panel.title,
                    "unit": panel.unit,
                    "about": panel.about,
                    "lines": [
                        {
                            "name": name,
                            "mean": rounded(each.mean, 5),
                            "low": rounded(each.mean - INTERVAL * each.stderr, 5),
                            "high": rounded(each.mean + INTERVAL * each.stderr, 5),
                        }
                        for name, each in lines.items()
                    ],
                }
                for panel, lines in drawn
            ],
        },
        _numbers(times[at], rows),
    )


def _drawn(panel: Panel, clock: Clock, times: Times) -> dict[str, Curve]:
    """Its lines, without those that are infinite everywhere."""
    found = {name: line(clock, times) for name, line in panel.lines.items()}
    return {name: each for name, each in found.items() if np.isfinite(each.mean).any()}


def _numbers(times: Times, rows: list[list[str]]) -> Markup:
    return table(
        "Rates and sums at five times, ± one standard error",
        ["rate or sum", *(f"t = {number(t)}" for t in times)],
        rows,
    )
