"""Tables for the terminal."""

from typing import Any

from rich.table import Table

Rows = list[dict[str, Any]]


def comparison_table(rows: Rows, headline: str) -> Table:
    """One line a number of steps, one column a strategy: metric / path error in nats; the best of a line is bold."""
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    table = Table(title=f"{headline} / path error in nats", title_justify="left", header_style="bold")
    table.add_column("NFE", justify="right")
    for strategy in strategies:
        table.add_column(strategy, justify="right")
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        metric_best = min(row["metrics"][headline]["mean"] for row in line.values())
        error_best = min(row["path_error"]["mean"] for row in line.values())
        cells = []
        for strategy in strategies:
            row = line[strategy]
            value, error = row["metrics"][headline]["mean"], row["path_error"]["mean"]
            left, right = _shown(value, headline), f"{error:.3g}"
            cells.append(f"{_bold(left, value == metric_best)} / {_bold(right, error == error_best)}")
        table.add_row(f"{next(iter(line.values()))['nfe']:g}", *cells)
    return table


def _shown(value: float, metric: str) -> str:
    return f"{100 * value:.1f}%" if metric.startswith("violation") else f"{value:.3f}"


def _bold(text: str, best: bool) -> str:
    return f"[bold green]{text}[/]" if best else text
