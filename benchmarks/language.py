"""Tables and verdicts of the language experiment, for README and docs."""

from typing import Any

from domains import against_uniform, metric_table, speedup_table
from provenance import load

Row = dict[str, Any]


def oracle() -> str:
    """The trigram chain: certified error, and what samples say independently of it."""
    results = load("text/trigram-exact.json")
    rows = results["rows"]
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    lines = ["| NFE | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        parts = [
            {name: row["path_error"]["mean"] for name, row in line.items()},
            {name: row["metrics"]["surprise"]["mean"] for name, row in line.items()},
        ]
        cells = [
            " / ".join(
                f"**{part[name]:.0f}**" if part[name] == min(part.values()) else f"{part[name]:.0f}" for part in parts
            )
            for name in strategies
        ]
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    worst = max(row["metrics"]["surprise"]["stderr"] for row in rows)
    correlation = results["rank_correlation"]
    better = {name: against_uniform(rows, name, "surprise") for name in strategies if name != "uniform"}
    lines += [
        "",
        f"{results['samples']} sequences a cell, standard errors of the surprise at most {worst:.0f}. Rank "
        f"correlation, over all cells, of the certified error with the surprise "
        f"{correlation['surprise']:.2f} and with the trigram distance {correlation['trigrams']:.2f}.",
        "",
        speedup_table(results["speedup"]["surprise"]),
        "",
        "Beyond the 95 % intervals of the differences:",
        "",
        *(f"- {name} is less surprising than uniform steps at {a}, more at {b}." for name, (a, b) in better.items()),
        "",
        "Hellinger distance of the trigrams (its floor is that of as many real sequences, "
        f"{results['real']['trigrams']['mean']:.3f}):",
        "",
        metric_table(rows, "trigrams", 3),
    ]
    return "\n".join(lines)
