"""Tables of certificates: how often intervals cover, and what exact counts save."""

from typing import Any

from results import load

SCHEDULED = {("uniform", "ancestral"): "uniform", ("ods", "ancestral"): "ODS", ("ods", "counted"): "ODS for counts"}
KINDS = {"bound": "bounds", "plan": "plans", "ods -": "differences"}


def counted() -> str:
    """Nats that exact counts cost more than coin flips, by model, schedule and number of evaluations."""
    models, steps = load("choosing/counted.json")["models"], (4, 8, 16, 32)
    lines = ["| | schedule | " + " | ".join(f"{k} NFE" for k in steps) + " |", "|---" * (len(steps) + 2) + "|"]
    rows = 0
    for name, part in models.items():
        found = {(row["schedule"], row["planned_for"], row["steps"]): row["cross-entropy"] for row in part["rows"]}
        rows += len(found)
        for (schedule, law), shown in SCHEDULED.items():
            cells = [_saved(found[schedule, law, k]) if (schedule, law, k) in found else "" for k in steps]
            lines.append(f"| {name} | {shown} | " + " | ".join(cells) + " |")
    every = [row["cross-entropy"]["interval"] for part in models.values() for row in part["rows"]]
    less, more = sum(high < 0 for _, high in every), sum(low > 0 for low, _ in every)
    lines.append(
        f"\nNats per sequence of data, counted less coin flips with its 95 % interval, in brackets what coin flips "
        f"cost above infinitely many steps. Of all {rows} comparisons (2 to 64 evaluations) {less} are below 0 beyond "
        f"their interval and {more} above."
    )
    return "\n".join(lines)


def _saved(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['counted less coin flips']:+.2f} ({low:+.2f} to {high:+.2f}) [{found['coin flips']:.1f}]"


def coverage() -> str:
    """Coverage of what clocks say, by kernel, budget and kind of statement."""
    results = load("coverage/clocks.json")
    found: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for cell in results["cells"]:
        kernel = "uniform" if "uniform kernel" in cell["world"] else "masked"
        what = next((kind for start, kind in KINDS.items() if cell["what"].startswith(start)), "schedules")
        what = "differences" if " - " in cell["what"] else what
        found.setdefault((kernel, cell["budget"], what), []).append(cell)
    lines = ["| kernel | budget | | cells × seeds | covered | Student's t | worst cell | open |", "|---" * 8 + "|"]
    for (kernel, budget, what), cells in sorted(found.items(), key=lambda item: (item[0][0], item[0][1], item[0][2])):
        total = sum(cell["seeds"] for cell in cells)
        ours, student = (sum(cell["covered"][kind] for cell in cells) / total for kind in ("ours", "student"))
        worst = min(cell["covered"]["ours"] / cell["seeds"] for cell in cells)
        seeds = " or ".join(str(number) for number in sorted({cell["seeds"] for cell in cells}))
        opened = sum(cell["infinite"] * cell["seeds"] for cell in cells) / total
        lines.append(
            f"| {kernel} | {budget} | {what} | {len(cells)} × {seeds} | {ours:.1%} | {student:.1%} | {worst:.1%} "
            f"| {opened:.1%} |"
        )
    pooled, cells = results["pooled"], results["cells"]
    plain, student = (f"{pooled[kind]:.1%}" for kind in ("bootstrap of t", "student"))
    lines.append(
        f"\nAll {len(cells)} cells together: {pooled['ours']:.1%} (the bootstrap of t alone {plain}, Student's t "
        f"{student}). Where the exact 99.9 % binomial interval meets 93 to 97 %: "
        f"{results['cells_that_meet_93_to_97']} of {len(cells)}."
    )
    return "\n".join(lines)
