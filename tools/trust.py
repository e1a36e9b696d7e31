"""Tables of the campaigns that `make trust` runs; one that has not been run to its end says so."""

from pathlib import Path
from typing import Any

from results import ROOT, load

WRONG = {"raw": "raw error", "hang": "hang", "memory": "memory", "code": "code run", "escape": "path outside"}


def _found(name: str) -> dict[str, Any] | None:
    return load(f"trust/{name}.json") if Path(ROOT / "results" / "trust" / f"{name}.json").exists() else None


def files() -> str:
    """Kinds of files, and what came of changing them."""
    found = _found("fuzz")
    if found is None:
        return "Not run yet."
    lines = ["| file | changed | refused | equal | another object, no checksum | wrong |", "|---|---|---|---|---|---|"]
    for name, row in found["kinds"].items():
        wrong = sum(row.get(word, 0) for word in (*WRONG, "different", "untidy"))
        cells = (row["inputs"], row.get("refused", 0), row.get("equal", 0), row.get("changed", 0), wrong)
        lines.append(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    total = sum(row["inputs"] for row in found["kinds"].values())
    steered = [each for each in found["guided"].values() if each is not None]
    kinds = {**WRONG, "different": "silently different", "untidy": "untidy sentence"}
    counts = ", ".join(
        f"{text} {sum(row.get(word, 0) for row in found['kinds'].values())}" for word, text in kinds.items()
    )
    lines.append(f"\nOf {total:,} changed files: {counts}.")
    if steered:
        runs, raw = sum(each["runs"] for each in steered), sum(each["raw"] for each in steered)
        lines.append(f"Of {runs:,} more that coverage chose: {raw} wrong.")
    if not found["complete"]:
        lines.append("The campaign is not finished; `make trust` goes on with it.")
    return "\n".join(lines)


def faults() -> str:
    """Commands, and what happened to them."""
    found = _found("faults")
    if found is None:
        return "Not run yet."
    kinds = ("kill -9", "SIGTERM", "SIGINT", "disk full", "out of memory")
    head = ("run", *kinds, "faults", "results", "lost", "raw errors", "files left")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, row in found["jobs"].items():
        cells = (*(row[kind] for kind in kinds), row["faults"], row["results"], row["lost"], row["raw"], row["untidy"])
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    total = {word: sum(row[word] for row in found["jobs"].values()) for word in ("faults", "survived", "lost")}
    lines.append(f"\n{total['faults']} faults, {total['survived']} survived, {total['lost']} results lost.")
    if not found["complete"]:
        lines.append("The campaign is not finished; `make trust` goes on with it.")
    return "\n".join(lines)


def soak() -> str:
    """The memory of a long-lived process."""
    found = _found("soak")
    if found is None:
        return "Not run yet."
    first, last = found["megabytes"][str(found["warm_after"])], found["megabytes"][str(found["cycles"])]
    return (
        f"{found['cycles']:,} cycles: {first:.0f} MB resident after {found['warm_after']}, {last:.0f} MB at the end "
        f"(at most {found['allowed']:.0f} MB more are allowed)."
    )


def splits() -> str:
    """Draws that other batches and threads turn."""
    found = _found("splits")
    if found is None:
        return "Not run yet."
    lines = ["| model | what changes | tokens | other than before |", "|---|---|---|---|"]
    for row in found["rows"]:
        lines.append(f"| {row['model']} | {row['change']} | {row['tokens']:,} | {row['different']:,} |")
    return "\n".join(lines)


def lowest() -> str:
    """What the lower bounds are, and whether they hold."""
    found = _found("lowest")
    if found is None:
        return "Not run yet."
    tests = ", ".join(f"{number} {word}" for word, number in found["tests"].items())
    return f"Python 3.11 with {', '.join(found['versions'])}: {tests}."
