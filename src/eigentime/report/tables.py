"""Tables for the terminal, each with a line above it that says what it shows."""

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from eigentime.report.rows import Row
from eigentime.report.terminal import Fitted


def comparison_tables(rows: Sequence[Row], fidelity: str, diversity: str) -> list[Text | Table]:
    """One line per number of evaluations, one column per strategy: what samples and certificates say, and variety."""
    percent = fidelity.startswith("violation")
    first = _table(
        rows,
        f"{fidelity} in % / path error in nats" if percent else f"{fidelity} / path error in nats",
        [
            (lambda row: row["metrics"][fidelity]["mean"], lambda v: f"{100 * v:.1f}" if percent else _short(v)),
            (lambda row: row["path_error"]["mean"], lambda v: f"{v:.0f}" if abs(v) >= 10 else f"{v:.1f}"),
        ],
    )
    second = _table(
        rows,
        f"diversity: {diversity.replace('_', ' ')}, distance from the truth (0 is best)",
        [(lambda row: row["metrics"][diversity]["mean"], _short)],
    )
    return [*first, *second]


def certificate_tables(rows: Sequence[Row], of_data: dict[str, float]) -> list[Text | Table]:
    """For models without a judge of ours: what certificates say, and what a metric, or else how varied they are, says
    of samples and data. None of the latter is called best: which way is better is not known, and samples that are all
    the same would win."""
    first = _table(rows, "path error in nats", [(lambda row: row["path_error"]["mean"], _short)])

    def variety(name: str) -> list[Text | Table]:
        title = f"{name.replace('_', ' ')} of the samples (of the data: {_short(of_data[name])})"
        return _table(rows, title, [(lambda row: row["metrics"][name]["mean"], _short)], lowest_is_best=False)

    return [*first, *(part for name in of_data for part in variety(name))]


def _short(value: float) -> str:
    """About three digits, and no minus before a zero."""
    text = f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _table(
    rows: Sequence[Row],
    title: str,
    parts: list[tuple[Callable[[Row], float], Callable[[float], str]]],
    lowest_is_best: bool = True,
) -> list[Text | Table]:
    """Every cell shows all parts of a row; where lower is better the lowest of a line is bold, part by part."""
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    table = Fitted(header_style="bold", padding=(0, 0), collapse_padding=True)
    table.add_column("NFE", justify="right")
    for strategy in strategies:
        table.add_column(strategy, justify="right")
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        lowest = [min(value(row) for row in line.values()) for value, _ in parts]
        cells = [
            "/".join(
                f"[bold green]{show(value(line[strategy]))}[/]"
                if lowest_is_best and value(line[strategy]) == low
                else show(value(line[strategy]))
                for (value, show), low in zip(parts, lowest, strict=True)
            )
            for strategy in strategies
        ]
        table.add_row(f"{next(iter(line.values()))['nfe']:g}", *cells)
    return [Text(title, style="italic"), table]
