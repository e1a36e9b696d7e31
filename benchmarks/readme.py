"""Put the tables of results/ into README.md, between its markers.

python benchmarks/readme.py [--check]     with --check only say whether the README is up to date
"""

import re
import sys
from typing import Any

from provenance import ROOT, load

from eigentime.files import write_atomically

Row = dict[str, Any]


def comparison(name: str, metric: str, scale: float, digits: int) -> str:
    """A Markdown table: one line a number of evaluations, one column a strategy, the lowest of each part in bold."""
    results = load(f"countdown-exact/{name}.json")
    rows = results["rows"]
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    lines = ["| NFE | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        cells = []
        shown = {
            strategy: (f"{scale * row['metrics'][metric]['mean']:.{digits}f}", f"{row['path_error']['mean']:.3g}")
            for strategy, row in line.items()
        }
        lowest = [min((values[part] for values in shown.values()), key=float) for part in (0, 1)]
        for strategy in strategies:
            cells.append(
                " / ".join(_bold(value, value == low) for value, low in zip(shown[strategy], lowest, strict=True))
            )
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    worst = max(row["metrics"][metric]["stderr"] for row in rows) * scale
    relative = max(row["path_error"]["stderr"] / row["path_error"]["mean"] for row in rows)
    lines.append(
        f"\n{rows[0]['samples']} sequences a cell; standard errors at most {worst:.{digits}f} and {relative:.0%} "
        f"of the path error; the clock took {results['evaluations']:,} sequence evaluations, JYS up to "
        f"{_jys_cost(rows):,}."
    )
    return "\n".join(lines)


def _jys_cost(rows: list[Row]) -> int:
    return max(row["schedule"]["provenance"]["evaluations"] for row in rows if row["strategy"] == "jys")


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def budget() -> str:
    """The budget study as a Markdown table."""
    results = load("budget.json")
    lines = ["| kernel | sequence evaluations | fewer than the paper's 1024 × 1024 |"]
    steps = list(results["absorbing"]["summary"])
    lines[0] += "".join(f" {k} steps |" for k in steps)
    lines.append("|---" * (3 + len(steps)) + "|")
    for kernel in ("absorbing", "uniform"):
        mine = results[kernel]
        losses = [mine["summary"][k]["above_optimum"] for k in steps]
        cells = "".join(f" {loss['mean']:.1%} ± {loss['stderr']:.1%} |" for loss in losses)
        lines.append(f"| {kernel} | {mine['evaluations']} | {mine['fewer_than_paper']:,.0f} × |{cells}")
    every = [row for kernel in ("absorbing", "uniform") for row in results[kernel]["rows"]]
    covered = sum(abs(row["z"]) < 2 for row in every) / len(every)
    seeds = results["provenance"]["settings"]["seeds"]
    lines.append(
        f"\nMean of {seeds} seeds. The cross-fitted certificate lies within two standard errors of the truth in "
        f"{covered:.0%} of the cases."
    )
    return "\n".join(lines)


def main() -> None:
    """Rewrite the README, or complain that it is stale."""
    tables = {
        "absorbing": comparison("absorbing", "violation", 100, 1),
        "uniform": comparison("uniform", "unigrams", 1, 3),
        "budget": budget(),
    }
    readme = (ROOT / "README.md").read_text()
    updated = readme
    for name, table in tables.items():
        pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        updated = re.sub(pattern, lambda match, table=table: f"{match[1]}{table}\n\n{match[2]}", updated, flags=re.S)
    if "--check" in sys.argv:
        sys.exit("README.md is not what results/ says; run python benchmarks/readme.py" if updated != readme else 0)
    write_atomically(ROOT / "README.md", updated)


if __name__ == "__main__":
    main()
