"""Tables of the experiment on reactions, from results/reactions.json."""

from collections.abc import Callable
from typing import Any

import numpy as np
from results import load

from eigentime.intervals import PerSequence
from eigentime.report.stories import NEAR, line_of

Row = dict[str, Any]
Cells = dict[tuple[str, int], Row]
JUDGES = {"both": "both sides parse", "right": "free tokens right", "recovered": "the reaction itself"}
INTERVAL = 1.96
QUESTIONS = (
    ("plan-low-discrepancy", "plan-random", "an order that spreads, over chance"),
    ("plan-pairs", "plan-low-discrepancy", "an order from pairs, over one that spreads"),
    ("plan-pairs", "plan-random", "an order from pairs, over chance"),
    ("plan-random", "uniform", "exact counts at the best moments, over equal steps"),
    ("ods", "uniform", "the best moments, over equal steps"),
    ("entropy", "uniform", "the surest first, over chance"),
    ("order-bounded", "plan-low-discrepancy", "counts that adapt, over the plan's"),
    ("apart", "entropy", "measured dependence, over the surest first"),
    ("apart", "plan-low-discrepancy", "measured dependence, over a plan"),
)
"""One way of sampling, another, and what the first gains over the second."""


def _cells() -> Cells:
    """Rows by what they are called and their evaluations: of an adaptive rule those that data took, and the nearest."""
    found: Cells = {}
    for row in load("reactions.json")["rows"]:
        cell = line_of(row), row["steps"] or int(2 ** round(np.log2(row["taught_nfe"])))
        if _off(row, cell[1]) <= NEAR and (cell not in found or _off(row, cell[1]) < _off(found[cell], cell[1])):
            found[cell] = row
    return found


def _off(row: Row, count: int) -> float:
    """Powers of two by which an adaptive rule's evaluations differ from a number of them."""
    if row["steps"]:
        return 0.0
    return float(abs(np.log2(row["taught_nfe"] / count)))


def _table(title: str, shown: Callable[[Cells, Row, int], str]) -> str:
    """One line per way of sampling, one column per number of evaluations."""
    cells = _cells()
    counts = sorted({count for _, count in cells})
    table = [f"| {title} | " + " | ".join(f"{k} NFE" for k in counts) + " |", "|---" * (len(counts) + 1) + "|"]
    for line in dict.fromkeys(name for name, _ in cells):
        values = [shown(cells, cells[line, k], k) if (line, k) in cells else "" for k in counts]
        table.append(f"| {line} | " + " | ".join(values) + " |")
    return "\n".join(table)


def _cost(_: Cells, row: Row, count: int) -> str:
    nats = PerSequence(np.array(row["nats"]))
    spent = "" if row["steps"] else f" ({row['taught_nfe']:.1f})"
    return f"{nats.mean:.1f} ± {INTERVAL * nats.stderr:.1f}{spent}"


def _above_uniform(cells: Cells, row: Row, count: int) -> str:
    return "" if line_of(row) == "uniform" else _shown(_difference(row, cells["uniform", count]))  # type: ignore[arg-type]


def _difference(row: Row, other: Row) -> PerSequence:
    """Paired by reaction."""
    shared = min(len(row["nats"]), len(other["nats"]))
    return PerSequence(np.array(row["nats"][:shared])) - PerSequence(np.array(other["nats"][:shared]))


def _shown(difference: PerSequence) -> str:
    """Mean ± 95 % interval, in bold where that tells it from 0."""
    half = INTERVAL * difference.stderr
    text = f"{difference.mean:+.1f} ± {half:.1f}"
    return f"**{text}**" if abs(difference.mean) > half else text


def nats() -> str:
    """What held-out reactions cost, and the difference from uniform steps, paired."""
    content = load("reactions.json")
    settings, single, rows = content["provenance"]["settings"], content["one_at_a_time"], content["rows"]
    fewest = min(len(row["nats"]) for row in rows)
    fewer = f" ({fewest} with {max(row['steps'] for row in rows)} evaluations)"
    return "\n".join(
        [
            _table("nats per reaction", _cost),
            "",
            _table("less uniform steps, paired", _above_uniform),
            "",
            f"{settings['reactions']} held-out reactions{fewer if fewest < settings['reactions'] else ''} with "
            f"{settings['free']} free tokens, ± 95 % interval, bold where a difference is told from 0; in brackets "
            f"what an adaptive rule took. One token at a time in random order they cost {single['mean']:.1f} ± "
            f"{INTERVAL * single['stderr']:.1f} nats. The clock took {content['evaluations']:,} sequence evaluations.",
        ]
    )


def gains() -> str:
    """Pairs of ways that answer a question, and how many reactions it takes to tell them apart."""
    cells = _cells()
    counts = sorted({count for _, count in cells})
    lines = ["| what is gained by | less | " + " | ".join(f"{k} NFE" for k in counts) + " | reactions for 1 nat |"]
    lines.append("|---" * (len(counts) + 3) + "|")
    for first, second, gain in QUESTIONS:
        pairs = {k: (cells[first, k], cells[second, k]) for k in counts if {(first, k), (second, k)} <= set(cells)}
        found = {k: _difference(*pair) for k, pair in pairs.items()}
        needed = [(INTERVAL * each.values.std(ddof=1)) ** 2 for each in found.values()]
        shown = [_shown(found[k]) if k in found else "" for k in counts]
        asked = f"{np.ceil(min(needed)):.0f} to {np.ceil(max(needed)):.0f}" if needed else ""
        lines.append(f"| {gain} | `{first}` - `{second}` | " + " | ".join(shown) + f" | {asked} |")
    lines.append(
        "\nNats per reaction, paired, ± 95 % interval, bold where told from 0; below 0 the first is better. Last "
        "column: how many reactions make that interval ± 1 nat, from how much the differences spread."
    )
    return "\n".join(lines)


def judges() -> str:
    """RDKit and recovery."""
    content = load("reactions.json")
    samples = sorted({row["samples"] for row in content["rows"]}, reverse=True)

    def share(name: str) -> Callable[[Cells, Row, int], str]:
        def shown(_: Cells, row: Row, count: int) -> str:
            value = row["metrics"][name]
            return f"{100 * value['mean']:.0f} ± {100 * INTERVAL * value['stderr']:.0f}"

        return shown

    tables = [_table(f"{title}, %", share(name)) for name, title in JUDGES.items()]
    note = (
        f"{' or '.join(map(str, samples))} samples per cell, ± 95 % interval. Of the real reactions RDKit reads both "
        f"sides of {100 * content['real']['both']['mean']:.0f} %."
    )
    return "\n\n".join([*tables, note])
