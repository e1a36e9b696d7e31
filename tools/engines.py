"""The table of docs/engines.md: equal against measured steps through the scheduler that pipelines call."""

from typing import Any

from results import load


def schedulers() -> str:
    """A line per number of evaluations: path KL in nats, bits per character and real words, equal / measured."""
    results = load("engines.json")
    names = list(dict.fromkeys(row["scheduler"] for row in results["rows"]))
    both, judged = " / ".join(names), ("path KL, nats", "bits per character", "real words")
    lines = ["| evaluations | " + " | ".join(f"{what}: {both}" for what in judged) + " |", "|---" * 4 + "|"]
    for evaluations in dict.fromkeys(row["evaluations"] for row in results["rows"]):
        pair = [row for row in results["rows"] if row["evaluations"] == evaluations]
        errors = " / ".join(_shown(row["path_error"], 1, 1) for row in pair)
        bits = " / ".join(_shown(row["metrics"]["bits"], 1, 2) for row in pair)
        words = " / ".join(_shown(row["metrics"]["real_words"], 100, 0) + " %" for row in pair)
        lines.append(f"| {evaluations} | {errors} | {bits} | {words} |")
    real = results["real"]
    lines.append(
        f"\n{results['samples']} samples per cell; the clock took {results['measuring_evaluations']:,} sequence "
        f"evaluations. Real text: {_shown(real['bits'], 1, 2)} bits per character, "
        f"{_shown(real['real_words'], 100, 0)} % real words. ± is one standard error."
    )
    return "\n".join(lines)


def _shown(value: dict[str, Any], scale: float, digits: int) -> str:
    return f"{scale * value['mean']:.{digits}f} ± {scale * value['stderr']:.{digits}f}"
