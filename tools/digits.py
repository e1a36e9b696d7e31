"""Tables of the experiment on MNIST, from results/mnist/."""

from typing import Any

from domains import INTERVAL, is_worse, shown, speedup_table
from results import load
from scipy.stats import spearmanr

from eigentime.experiments.mnist import CHOOSING, SCHEDULES, by_line

Row = dict[str, Any]
Cells = dict[tuple[str, int], Row]
MASKED, UNIFORM = "mnist/mnist.json", "mnist/mnist-uniform.json"
AGAINST = ("uniform", "eds", "wds", "ods", "jys")
PLANNED = 8
"""Evaluations of the plan that all others are set against."""
JUDGES = {"frechet_small": 1, "unsure": 3, "class_gap": 2, "variance": 2, "excess": 1}
"""With their decimal places."""


def _cells(name: str) -> Cells:
    return {(row["strategy"], row["steps"]): row for row in by_line(load(name)["rows"])}  # type: ignore[misc]


def _steps(cells: Cells) -> list[int]:
    return sorted({steps for _, steps in cells})


def _table(cells: Cells, lines: list[str], metric: str) -> str:
    """One line per way of sampling, one column per number of evaluations, the lowest of a column in bold."""
    steps, digits = _steps(cells), JUDGES[metric]
    table = ["| | " + " | ".join(f"{k} NFE" for k in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    lowest = {k: min(cells[line, k]["metrics"][metric]["mean"] for line in lines) for k in steps}
    for line in lines:
        shown_cells = []
        for k in steps:
            value = cells[line, k]["metrics"][metric]
            mean = f"{value['mean']:.{digits}f}"
            mean = f"**{mean}**" if value["mean"] == lowest[k] else mean
            shown_cells.append(f"{mean} ± {INTERVAL * value['stderr']:.{digits}f}")
        table.append(f"| {line} | " + " | ".join(shown_cells) + " |")
    return "\n".join(table)


def _timed(cells: Cells) -> list[str]:
    """Time schedules, and the best plan."""
    known = dict.fromkeys(line for line, _ in cells)
    return [line for line in known if line in (*SCHEDULES, "counted", "plan")]


def _ordered(cells: Cells) -> list[str]:
    """Plans in one order each, and orders that look at the content."""
    known = dict.fromkeys(line for line, _ in cells)
    return [line for line in known if line in CHOOSING or line.startswith("plan-")]


def schedules(metric: str) -> str:
    """Every time schedule and the plan by one judge."""
    cells, results = _cells(MASKED), load(MASKED)
    lines = [_table(cells, _timed(cells), metric)]
    if metric in results["real"]:
        lines += ["", f"{results['images']} pictures per cell, ± 95 % interval; as many real ones: "]
        lines[-1] += f"{shown(results['real'][metric])}."
    else:
        lines += [
            "",
            f"{results['provenance']['settings']['held_out']} held-out pictures, the same in every cell, ± 95 % "
            f"interval; one pixel at a time in random order they cost {shown(results['nelbo'])} nats.",
        ]
    return "\n".join(lines)


def orders(metric: str) -> str:
    """Orders by one judge."""
    cells = _cells(MASKED)
    return _table(cells, _ordered(cells), metric)


def against_plan() -> str:
    """The plan with 8 evaluations against schedules with as many and with more."""
    cells = _cells(MASKED)
    steps = [k for k in _steps(cells) if k >= PLANNED]
    parts = []
    for metric, title in (("frechet_small", "Fréchet distance"), ("excess", "nats per picture above the NELBO")):
        plan = cells["plan", PLANNED]["metrics"][metric]
        table = [f"| {title}; plan, {PLANNED} NFE: {shown(plan)} | " + " | ".join(f"{k} NFE" for k in steps) + " |"]
        table.append("|---" * (len(steps) + 1) + "|")
        for line in AGAINST:
            found = [cells[line, k]["metrics"][metric] for k in steps]
            verdicts = [f"{value['mean']:.1f}, {_verdict(plan, value)}" for value in found]
            table.append(f"| {line} | " + " | ".join(verdicts) + " |")
        parts.append("\n".join(table))
    return "\n\n".join(parts) + "\n\nThe plan is better, worse or even (≈: within the 95 % interval of the difference)."


def _verdict(plan: Row, other: Row) -> str:
    return "plan better" if is_worse(other, plan) else "plan worse" if is_worse(plan, other) else "≈"


def saved() -> str:
    """As good as so many uniform steps."""
    wanted = (*SCHEDULES, "plan", "plan-halton", "plan-sobol", "plan-pairs")
    return speedup_table([line for line in load(MASKED)["speedup"]["frechet_small"] if line["strategy"] in wanted])


def chosen_orders() -> str:
    """Which order the plan took, and do certificates agree with held-out digits and with the judge?"""
    cells = _cells(MASKED)
    took = [f"{cells['plan', k]['schedule']['order']['name']} with {k}" for k in _steps(cells)]
    covered = [row for row in cells.values() if row["path_error"]["mean"] == row["path_error"]["mean"]]
    rank = _rank(covered, "excess", certified=True)
    within = [
        f"{_rank([row for (_, k), row in cells.items() if k == steps], 'frechet_small'):.2f} ({steps})"
        for steps in _steps(cells)
    ]
    return (
        f"The plan's order is the one that costs least on the data it was measured on: {', '.join(took)} evaluations. "
        f"The error that the clock certifies and the excess that other held-out pictures show have a rank correlation "
        f"of {rank:.2f} over {len(covered)} cells. The excess and the Fréchet distance, over the ways of sampling with "
        f"one number of evaluations: {', '.join(within)}."
    )


def _rank(rows: list[Row], metric: str, certified: bool = False) -> float:
    other = [row["path_error"] if certified else row["metrics"]["excess"] for row in rows]
    return float(spearmanr([value["mean"] for value in other], [row["metrics"][metric]["mean"] for row in rows])[0])


def failing() -> str:
    """Every judge on the ways whose canvases are drawn, with 8 and with 32 evaluations."""
    cells, results = _cells(MASKED), load(MASKED)
    lines = ("plan-raster", "confidence", "entropy", "plan-farthest", "uniform", "plan-halton", "plan-pairs")
    table = ["| NFE | | Fréchet | unsure | class gap, nats | variance | excess, nats |", "|---" * 7 + "|"]
    for k in (8, 32):
        for line in lines:
            metrics = cells[line, k]["metrics"]
            values = [f"{metrics[name]['mean']:.{digits}f}" for name, digits in JUDGES.items()]
            table.append(f"| {k} | {line} | " + " | ".join(values) + " |")
    real = [f"{results['real'][name]['mean']:.{digits}f}" for name, digits in JUDGES.items() if name != "excess"]
    table.append("| | real pictures | " + " | ".join(real) + " | |")
    return "\n".join(table)


def without_masks() -> str:
    """Time schedules on the uniform kernel."""
    cells, results = _cells(UNIFORM), load(UNIFORM)
    return "\n".join(
        [
            _table(cells, _timed(cells), "frechet_small"),
            "",
            f"{results['images']} pictures per cell, ± 95 % interval; as many real ones: "
            f"{shown(results['real']['frechet_small'])}.",
        ]
    )
