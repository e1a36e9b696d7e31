"""Where the steps of each strategy fall."""

import numpy as np

from eigentime.measure import curve
from eigentime.report.page.html import escaped, number, table
from eigentime.report.page.material import Material, Section, rounded

SHOWN = 121
IN_TABLE = 8
"""Evaluations of the schedules that the table shows, or the next smaller number there is."""


def section(material: Material) -> Section:
    """All schedules above the rate at which information is generated."""
    times = (np.arange(SHOWN) + 0.5) / SHOWN
    rate = curve(material.clock, "nonadiabatic_data", times)
    counts = sorted({count for grids in material.grids.values() for count in grids})
    told = max((count for count in counts if count <= IN_TABLE), default=counts[0])
    rows = [
        [strategy, ", ".join(number(t) for t in grids[told].times)]
        for strategy, grids in material.grids.items()
        if told in grids
    ]
    return Section(
        "steps",
        "Where the steps fall",
        escaped(
            "Sampling goes from noise, at the right, to the data, at the left; each network evaluation takes it from "
            "one mark to the next. All strategies spend the same number; what differs is when. The hill above them is "
            "the rate at which information is generated (data gauge)."
        ),
        {
            "times": rounded(times, 4),
            "rate": rounded(np.maximum(rate.mean, 0), 4),
            "counts": counts,
            "strategies": [
                {
                    "name": strategy,
                    "grids": {
                        str(count): {"times": rounded(grid.times, 5), "error": _error(material, strategy, count)}
                        for count, grid in grids.items()
                    },
                }
                for strategy, grids in material.grids.items()
            ],
        },
        table(f"Times of the schedules with {told} evaluations", ["strategy", "times"], rows),
    )


def _error(material: Material, strategy: str, count: int) -> list[float | None] | None:
    """Mean and standard error of the certificate."""
    found = material.certificates.get(strategy, {}).get(count)
    return None if found is None else [rounded(found.mean, 4), rounded(found.stderr, 3)]
