"""Tables of the list operations, from results/lists/lists.json."""

from itertools import pairwise
from typing import Any

from results import load

from eigentime.report.rows import line_of

STEPS = (1, 2, 4, 8)
ADAPTIVE = ("entropy-bounded", "threshold", "prefix")
PARTS = ("exact", "network")
Row = dict[str, Any]


def _accuracy(rows: list[Row], line: str, steps: int) -> str:
    """In per cent; of an adaptive rule the best setting with at most so many evaluations on average."""
    mine = [row for row in rows if line_of(row) == line]  # type: ignore[arg-type]
    if line in ADAPTIVE:
        mine = [row for row in mine if row["nfe"] <= steps]
    else:
        mine = [row for row in mine if row["steps"] == steps]
    return f"{100 * max(row['metrics']['accuracy']['mean'] for row in mine):.1f}" if mine else "–"


def operation(name: str) -> str:
    """Right answers in per cent on the exact model, and in brackets on the network."""
    results = load("lists/lists.json")
    rows = {part: results[part][name]["rows"] for part in PARTS}
    lines = list(dict.fromkeys(line_of(row) for row in rows["exact"]))
    table = ["| right in %, exact (network) | " + " | ".join(f"{k} NFE" for k in STEPS) + " |", "|---" * 5 + "|"]
    for line in lines:
        cells = [f"{_accuracy(rows['exact'], line, k)} ({_accuracy(rows['network'], line, k)})" for k in STEPS]
        table.append(f"| {line} | " + " | ".join(cells) + " |")
    best = [f"**{100 * results['best'][name][str(k)]:.1f}**" for k in STEPS]
    table.append("| **best possible** | " + " | ".join(best) + " |")
    on_average = [_on_average(results["best_on_average"][name], results["best"][name]["1"], k) for k in STEPS]
    table.append("| best possible on average | " + " | ".join(f"{100 * value:.1f}" for value in on_average) + " |")
    return "\n".join(table)


def _on_average(corners: list[list[float]], once: float, steps: float) -> float:
    """What mixing two rules reaches with so many evaluations on average."""
    known = sorted([[1.0, once], *corners])
    for (before, low), (after, high) in pairwise(known):
        if before <= steps <= after and after > before:
            return low + (high - low) * (steps - before) / (after - before)
    return known[-1][1]


def certain() -> str:
    """The network on operations that leave no choice, where every sampler of the exact model is right."""
    results = load("lists/lists.json")
    names = [name for name in results["network"] if name not in results["exact"]]
    table = ["| right in %, network | " + " | ".join(f"{k} NFE" for k in STEPS) + " |", "|---" * 5 + "|"]
    for name in names:
        rows = results["network"][name]["rows"]
        table.append(f"| {name} | " + " | ".join(_accuracy(rows, "counted, uniform", k) for k in STEPS) + " |")
    return "\n".join(table)


def bound() -> str:
    """Does the certificate predict accuracy?"""
    results = load("lists/lists.json")
    said = []
    for part, words in zip(PARTS, ("exact model", "network"), strict=True):
        found = results["bound"][part]
        said.append(
            f"On the {words} accuracy is at least exp(-nats) in {found['holds']:.0%} of {found['cells']} cells (up to "
            f"two standard errors), {100 * found['mean_above']:.1f} points above it on average; the rank correlation "
            f"of the two is {found['rank_correlation']:.2f}."
        )
    settings = results["provenance"]["settings"]
    said.append(
        f"{settings['samples']} answers per cell of the exact model, {settings['samples'] // 4} of the network."
    )
    return " ".join(said)
