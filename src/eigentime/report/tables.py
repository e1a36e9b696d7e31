"""Tables for the terminal, each with a line above it that says what it shows."""

from collections.abc import Callable, Sequence
from math import hypot

from rich.table import Table
from rich.text import Text

from eigentime.report.rows import Row, Value
from eigentime.report.terminal import Fitted

COLLAPSED, INTERVAL = 3, 1.96
"""Samples so many times as far from the data's variety as the most varied ones, beyond a 95 % interval, collapsed."""
Best = Callable[[Sequence[Row]], Sequence[Row]]
"""Which rows of a line may be called the best."""


def comparison_tables(rows: Sequence[Row], fidelity: str, diversity: str) -> list[Text | Table]:
    """One line per number of evaluations, one column per strategy: what samples and certificates say, and variety. What
    has collapsed is never called the best by fidelity, which alone rewards it."""
    percent = fidelity.startswith("violation")

    def varied(line: Sequence[Row]) -> Sequence[Row]:
        most = min((row["metrics"][diversity] for row in line), key=lambda value: value["mean"])
        return [row for row in line if not _collapsed(row["metrics"][diversity], most)]

    first = _table(
        rows,
        f"{fidelity} in % / path error in nats" if percent else f"{fidelity} / path error in nats",
        [
            (
                lambda row: row["metrics"][fidelity]["mean"],
                lambda v: f"{100 * v:.1f}" if percent else _short(v),
                varied,
            ),
            (lambda row: row["path_error"]["mean"], lambda v: f"{v:.0f}" if abs(v) >= 10 else f"{v:.1f}", list),
        ],
    )
    second = _table(
        rows,
        f"diversity: {diversity.replace('_', ' ')}, distance from the truth (0 is best)",
        [(lambda row: row["metrics"][diversity]["mean"], _short, list)],
    )
    return [*first, *second]


def certificate_tables(rows: Sequence[Row], of_data: dict[str, float]) -> list[Text | Table]:
    """For models without a judge of ours: what certificates say, and what a metric, or else how varied they are, says
    of samples and data. None of the latter is called best: which way is better is not known, and samples that are all
    the same would win."""
    first = _table(rows, "path error in nats", [(lambda row: row["path_error"]["mean"], _short, list)])

    def variety(name: str) -> list[Text | Table]:
        title = f"{name.replace('_', ' ')} of the samples (of the data: {_short(of_data[name])})"
        return _table(rows, title, [(lambda row: row["metrics"][name]["mean"], _short, lambda line: [])])

    return [*first, *(part for name in of_data for part in variety(name))]


def _collapsed(value: Value, most: Value) -> bool:
    """Whether samples are much less like the data in variety than the most varied ones of the line."""
    gap = INTERVAL * hypot(value["stderr"], most["stderr"])
    return value["mean"] > COLLAPSED * max(most["mean"], 0) and value["mean"] - most["mean"] > gap


def _short(value: float) -> str:
    """About three digits, and no minus before a zero."""
    text = f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _table(
    rows: Sequence[Row],
    title: str,
    parts: list[tuple[Callable[[Row], float], Callable[[float], str], Best]],
) -> list[Text | Table]:
    """Every cell shows all parts of a row; the lowest of those that may be the best of a line is bold, part by part."""
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    table = Fitted(header_style="bold", padding=(0, 0), collapse_padding=True)
    table.add_column("NFE", justify="right")
    for strategy in strategies:
        table.add_column(strategy, justify="right")
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        lowest = [min(map(value, best(list(line.values()))), default=None) for value, _, best in parts]
        cells = [
            "/".join(
                f"[bold green]{show(value(line[strategy]))}[/]"
                if value(line[strategy]) == low
                else show(value(line[strategy]))
                for (value, show, _), low in zip(parts, lowest, strict=True)
            )
            for strategy in strategies
        ]
        table.add_row(f"{next(iter(line.values()))['nfe']:g}", *cells)
    return [Text(title, style="italic"), table]
