"""Tables of orders and counts, from results/places.json."""

from typing import Any

from results import load

Row = dict[str, Any]


def _worlds() -> dict[str, Any]:
    return {name: part for name, part in load("places.json").items() if isinstance(part, dict) and "rows" in part}


def orders() -> str:
    """Nats per sequence above the best named order, paired, by world, order and number of evaluations."""
    lines = []
    for world, part in _worlds().items():
        cells = {(row["order"], row["steps"]): row for row in part["rows"]}
        steps = sorted({row["steps"] for row in part["rows"]})
        lines += [f"| {world} | " + " | ".join(f"{k} NFE" for k in steps) + " |", "|---" * (len(steps) + 1) + "|"]
        for order in dict.fromkeys(row["order"] for row in part["rows"]):
            shown = [_cell(order, cells[order, k]) for k in steps]
            lines.append(f"| {order} | " + " | ".join(shown) + " |")
        lines.append(
            f"\n{part['held_out']} held-out sequences of {part['tokens']} tokens; the clock took "
            f"{part['evaluations']:,} sequence evaluations.\n"
        )
    return "\n".join(lines).rstrip()


def _cell(order: str, row: Row) -> str:
    """The best named order in nats, the others above it with the 95 % interval of the difference."""
    if order == row["best_named"]:
        return f"**{row['nats']['mean']:.2f}**"
    low, high = row["above_best_named"]["interval"]
    return f"{row['above_best_named']['mean']:+.2f} ({low:+.2f} to {high:+.2f})"


def counts() -> str:
    """What counts cost on other sequences than those that chose them."""
    worlds = _worlds()
    rules = list(next(iter(worlds.values()))["counts"])
    lines = ["| nats per sequence | " + " | ".join(rules) + " | cases |", "|---" * (len(rules) + 2) + "|"]
    for world, part in worlds.items():
        found = part["counts"]
        cells = " | ".join(f"{found[rule]['mean']:.3g}" for rule in rules)
        lines.append(f"| {world} | {cells} | {found[rules[0]]['cases']} |")
    return "\n".join(lines)
