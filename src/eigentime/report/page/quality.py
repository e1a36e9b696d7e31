"""What samples are worth: the metrics of comparisons against evaluations."""

from collections.abc import Sequence

from eigentime.report.page.html import escaped, joined, plus_minus, table
from eigentime.report.page.material import Material, Missing, Section, rounded
from eigentime.report.rows import Row

TITLE = "How good the samples are"
INTERVAL = 1.96


def section(material: Material) -> Section | Missing:
    """One chart per comparison and metric."""
    if not material.rows:
        return Missing(TITLE, "no comparison was given; `eigentime compare MODEL --json rows.json` makes one")
    charts = [
        {
            "title": _title(metric),
            "of": name if len(material.rows) > 1 else "",
            "percent": metric.startswith("violation"),
            "strategies": [_line(strategy, rows, metric) for strategy in _strategies(rows)],
        }
        for name, rows in material.rows.items()
        for metric in _metrics(rows)
    ]
    tables = joined(
        _numbers(f"{_title(metric)}, {name}" if len(material.rows) > 1 else _title(metric), rows, metric)
        for name, rows in material.rows.items()
        for metric in _metrics(rows)
    )
    counts = sorted({row["samples"] for rows in material.rows.values() for row in rows})
    span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return Section(
        "quality",
        TITLE,
        escaped(
            f"Samples that were really drawn, {span} sequences per point, and judged. Bars are 95 % intervals. Look at "
            "more than one metric: fidelity alone rewards samples that are all alike."
        ),
        {"charts": charts},
        tables,
    )


def _title(metric: str) -> str:
    return metric.replace("_", " ")


def _strategies(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(_label(row) for row in rows))


def _label(row: Row) -> str:
    """The strategy, or the sampler where it takes no schedule."""
    return row["strategy"] if row["strategy"] != "adaptive" else row["sampler"]


def _metrics(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(metric for row in rows for metric in row["metrics"]))


def _line(strategy: str, rows: Sequence[Row], metric: str) -> dict[str, object]:
    mine = sorted((row for row in rows if _label(row) == strategy and metric in row["metrics"]), key=lambda r: r["nfe"])
    found = [(row["nfe"], row["metrics"][metric]["mean"], row["metrics"][metric]["stderr"]) for row in mine]
    return {
        "name": strategy,
        "nfe": [rounded(nfe, 5) for nfe, _, _ in found],
        "mean": [rounded(mean, 5) for _, mean, _ in found],
        "low": [rounded(mean - INTERVAL * stderr, 5) for _, mean, stderr in found],
        "high": [rounded(mean + INTERVAL * stderr, 5) for _, mean, stderr in found],
    }


def _numbers(caption: str, rows: Sequence[Row], metric: str) -> object:
    spent = sorted({row["nfe"] for row in rows})
    cells = {(_label(row), row["nfe"]): row["metrics"][metric] for row in rows if metric in row["metrics"]}
    return table(
        f"{caption}, ± one standard error, by evaluations",
        ["strategy", *(f"{nfe:g}" for nfe in spent)],
        [
            [each, *(plus_minus(**cells[each, nfe]) if (each, nfe) in cells else "" for nfe in spent)]
            for each in _strategies(rows)
        ],
    )
