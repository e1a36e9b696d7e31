"""What each strategy costs in nats, before a single sample is drawn."""

from eigentime.report.page.html import escaped, plus_minus, table
from eigentime.report.page.material import Material, Section, rounded


def section(material: Material) -> Section:
    """Certified error against evaluations, and how many evaluations an error needs."""
    certificates = material.certificates
    counts = sorted({count for found in certificates.values() for count in found})
    rows = [
        [strategy, *(plus_minus(found[k].mean, found[k].stderr) if k in found else "" for k in counts)]
        for strategy, found in certificates.items()
    ]
    exact = material.clock.exact
    notes = sorted({each.note for found in certificates.values() for each in found.values() if each.note})
    return Section(
        "errors",
        "What every evaluation buys",
        escaped(
            "The certified path error: how far, in nats per sequence, samples can be from "
            + ("the data" if exact else "what the network would draw with infinitely many steps")
            + ". It comes from the clock alone, before anything is sampled; strategies that the clock chose are judged "
            "on sequences that did not choose them. Bars are 95 % intervals."
            + ("" if not notes else " Note: " + "; ".join(notes) + ".")
        ),
        {
            "counts": counts,
            "strategies": [
                {
                    "name": strategy,
                    "counts": list(found),
                    "mean": [rounded(each.mean, 4) for each in found.values()],
                    "low": [rounded(each.interval()[0], 4) for each in found.values()],
                    "high": [rounded(each.interval()[1], 4) for each in found.values()],
                }
                for strategy, found in certificates.items()
            ],
        },
        table("Certified error in nats ± one standard error, by evaluations", ["strategy", *counts], rows),
    )
