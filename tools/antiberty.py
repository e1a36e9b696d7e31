"""Tables of a published masked model of antibodies, from results/antiberty.json."""

from math import ceil, hypot
from typing import Any

from domains import metric_table
from results import load

from eigentime.report.claims import INTERVAL


def distances() -> str:
    """A masked language model of antibodies: distance from samples drawn one residue at a time, certified error."""
    results = load("antiberty.json")
    floor, settings = results["one_by_one"], results["provenance"]["settings"]
    lines = [
        metric_table(results["rows"], "pairs", 3),
        "",
        "Certified error in nats per sequence:",
        "",
        metric_table([row | {"metrics": {"certified": row["path_error"]}} for row in results["rows"]], "certified", 1),
        "",
        f"{settings['samples']} sequences per cell, {results['parameters']:,} parameters, measured with "
        f"{results['evaluations']:,} sequence evaluations, its own samples included. A second set drawn one residue at "
        f"a time: {floor['pairs']['mean']:.3f} ± {INTERVAL * floor['pairs']['stderr']:.3f}. An antibody of the plan "
        f"with 8 evaluations: `{results['samples']['plan, 8'][0]}`.",
    ]
    return "\n".join(lines)


def needed() -> str:
    """How many sequences per cell it takes to tell schedules apart."""
    results = load("antiberty.json")
    cells = {(row["strategy"], row["steps"]): row["metrics"]["pairs"] for row in results["rows"]}
    steps, had = sorted({k for _, k in cells}), results["provenance"]["settings"]["samples"]
    lines = ["| less uniform steps | " + " | ".join(f"{k} NFE" for k in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for name in dict.fromkeys(name for name, _ in cells if name != "uniform"):
        shown = [_needed(cells[name, k], cells["uniform", k], had) for k in steps]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    lines.append(
        f"\nDifference of that Hellinger distance ± 95 % interval, {had} sequences per cell, and about how many it "
        "takes for the interval to be as wide as the difference is large."
    )
    return "\n".join(lines)


def _needed(value: dict[str, Any], other: dict[str, Any], had: int) -> str:
    difference, half = value["mean"] - other["mean"], INTERVAL * hypot(value["stderr"], other["stderr"])
    return f"{difference:+.3f} ± {half:.3f}; {ceil(had * (half / difference) ** 2):,}"
