"""Tables of the experiment on reactions, from results/reactions.json."""

from results import load

JUDGES = {"both": "both sides parse", "right": "free tokens right", "recovered": "the reaction itself"}


def _table(title: str, cell: str, scale: float, digits: int) -> str:
    """One line per strategy, one column per number of evaluations, mean ± standard error."""
    rows = load("reactions.json")["rows"]
    found = {(r["strategy"], r["steps"]): r.get(cell) or r["metrics"][cell] for r in rows}
    steps = sorted({count for _, count in found})
    table = [f"| {title} | " + " | ".join(f"{count} NFE" for count in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for line in dict.fromkeys(name for name, _ in found):
        values = [found[line, count] for count in steps]
        shown = [f"{scale * each['mean']:.{digits}f} ± {scale * each['stderr']:.{digits}f}" for each in values]
        table.append(f"| {line} | " + " | ".join(shown) + " |")
    return "\n".join(table)


def nats() -> str:
    """What held-out reactions cost, and the difference from uniform steps, paired."""
    content = load("reactions.json")
    settings, single = content["provenance"]["settings"], content["one_at_a_time"]
    return "\n".join(
        [
            _table("nats per reaction", "cost", 1, 1),
            "",
            _table("less uniform steps, paired", "above_uniform", 1, 1),
            "",
            f"{settings['reactions']} held-out reactions with {settings['free']} free tokens, ± standard error. One "
            f"token at a time in random order they cost {single['mean']:.1f} ± {single['stderr']:.1f} nats. The clock "
            f"took {content['evaluations']:,} sequence evaluations.",
        ]
    )


def judges() -> str:
    """RDKit and recovery."""
    real = load("reactions.json")["real"]["both"]["mean"]
    tables = [_table(f"{title}, %", name, 100, 0) for name, title in JUDGES.items()]
    return "\n\n".join([*tables, f"Of the real reactions RDKit reads both sides of {100 * real:.0f} %."])
