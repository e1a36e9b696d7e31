"""Tables of what our own work costs."""

from results import load


def table() -> str:
    """Backbones per step and memory, with the targets."""
    results, growth = load("bench/speed.json"), load("bench/growth.json")
    times, memory = results["backbones_per_step"], results["gib_beyond_weights"]
    lines = ["| one step of | in evaluations of the backbone | quartiles | at most, we want |", "|---|---|---|---|"]
    for name, row in times.items():
        target = f"{row['target']:.2f}" if row["target"] else "–"
        lines.append(f"| {name} | {row['median']:.3f} | {row['low']:.3f} … {row['high']:.3f} | {target} |")
    ratio = times["dense update"]["median"] / times["ancestral, 16 steps"]["median"]
    needed = ", ".join(f"{name} {value:.2f} GiB" for name, value in memory.items())
    lines.append(f"\nWith 16 steps ancestral sampling is {ratio:.2f} times as fast as the dense update.")
    lines.append(f"Memory beyond the weights: {needed}.")
    slopes = ", ".join(f"{name} {found['ancestral']['slope']:.2f}" for name, found in growth["growth"].items())
    ods = growth["ods"]
    lines.append(
        f"\nWith a network that costs next to nothing, time grows with these powers of each size: {slopes}.\n"
        f"ODS for every number of steps up to {ods['most_steps']:,} takes {ods['seconds']:.1f} s."
    )
    return "\n".join(lines)


def draws() -> str:
    """The chi-square tests of draws."""
    rows = load("bench/draws.json")["rows"]
    return "\n".join(
        f"- {name}: {row['draws']:,} draws, p = {row['p']:.2f} by Fisher's method, least of a row {row['least_p']:.3f}"
        for name, row in rows.items()
    )
