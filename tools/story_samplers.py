"""Tables of docs/stories.md: every way of sampling stories, from results/stories/NETWORK.json."""

from collections.abc import Callable
from math import hypot
from typing import Any

import numpy as np
from results import ROOT, load

from eigentime.experiments.stories import NETWORKS, SCHEDULES
from eigentime.report.stories import PAIRS, evaluations_of, line_of, value_of

Row = dict[str, Any]
INTERVAL = 1.96
BOTH = ("kl_data", "kl_samples")
PAPERS = ("uniform", "jys", "eds", "wds")
"""The schedules that the paper compares."""
RIVALS, MORE = ("uniform", "eds", "wds", "ods", "jys"), (8, 16, 32, 64)
FEW = 8
"""Evaluations of the plan that they are compared with."""
SHOWN = {"uniform": "equal steps", "lowest entropy first": "lowest entropy first", "plan": "plan"}
WIDTH = 230
"""Letters of a story in the README."""
SLACK = 1.05
"""More evaluations than this times as many are too many to be called the best."""
MEASURES = {
    "kl_data": "KL(data ‖ samples)",
    "kl_samples": "KL(samples ‖ data)",
    "surprise": "nats unlikelier than data",
}


def _cells(network: str) -> dict[tuple[str, int], Row]:
    """Rows by what they are called and their evaluations; of an adaptive rule's the nearest to that number."""
    found: dict[tuple[str, int], Row] = {}
    for row in load(f"stories/{network}.json")["rows"]:
        cell = line_of(row), evaluations_of(row)
        if cell not in found or _off(row, cell[1]) < _off(found[cell], cell[1]):
            found[cell] = row
    return {cell: row for cell, row in found.items() if ("uniform", cell[1]) in found}


def _off(row: Row, count: int) -> float:
    return float(abs(np.log2(row["nfe"] / max(count, 1))))


def _table(network: str, shown: Callable[[Row], str], lowest: str | None = None) -> str:
    """One line per way of sampling, one column per number of evaluations, the lowest of a column in bold."""
    cells = _cells(network)
    counts = sorted({count for _, count in cells})
    best = {
        count: min(
            (line for line, k in cells if k == count and cells[line, k]["nfe"] <= SLACK * count),
            key=lambda line: _order(cells[line, count], lowest),
        )
        for count in counts
        if lowest
    }
    lines = ["| | " + " | ".join(f"{count} NFE" for count in counts) + " |", "|---" * (len(counts) + 1) + "|"]
    for line in dict.fromkeys(line for line, _ in cells):
        values = [_with_cost(cells[line, count], shown) if (line, count) in cells else "" for count in counts]
        bold = [
            f"**{value}**" if best.get(count) == line else value for count, value in zip(counts, values, strict=True)
        ]
        lines.append(f"| {line} | " + " | ".join(bold) + " |")
    return "\n".join(lines)


def _with_cost(row: Row, shown: Callable[[Row], str]) -> str:
    """An adaptive rule's cell says how many evaluations it really took."""
    return shown(row) if row["steps"] else f"{shown(row)} ({row['nfe']:.1f})"


def _order(row: Row, metric: str | None) -> float:
    value = value_of(row, metric or "")  # type: ignore[arg-type]
    return value if np.isfinite(value) else float("inf")


def divergences() -> str:
    """Both divergences of every way of sampling."""
    results = load("stories/stories.json")
    rows = list(_cells("stories").values())
    worst = [max(row["metrics"][name]["stderr"] for row in rows) for name in BOTH]
    floor, settings = results["one_at_a_time"], results["provenance"]["settings"]
    return "\n".join(
        [
            _table("stories", lambda row: " / ".join(f"{value_of(row, name):.0f}" for name in BOTH), "kl_samples"),  # type: ignore[arg-type]
            "",
            f"KL(data ‖ samples) / KL(samples ‖ data) in nats per sequence of 128 tokens; lower is better, the lowest "
            f"KL(samples ‖ data) in bold. Standard errors at most {worst[0]:.0f} / {worst[1]:.0f}. "
            f"{settings['samples']} samples and as many sequences of data per cell, half of both from 64 evaluations "
            f"on. One token at a time in random order: KL(data ‖ samples) at most {floor['mean']:.0f} ± "
            f"{floor['stderr']:.0f}.",
        ]
    )


def variety() -> str:
    """What repetition would give away."""
    real = load("stories/stories.json")["real"]

    def shown(row: Row) -> str:
        metrics = row["metrics"]
        return " / ".join(
            [f"{metrics['surprise']['mean']:.0f}", *(f"{metrics[k]['mean']:.2f}" for k in ("entropy", "distinct"))]
        )

    return "\n".join(
        [
            _table("stories", shown),
            "",
            "Nats unlikelier than data / entropy of a sequence's own tokens in nats / share of different 3-grams (it "
            "falls with the number of samples, which is half from 64 evaluations on). Data: "
            f"{real['surprise']['mean']:.0f} ± {real['surprise']['stderr']:.0f} / {real['entropy']['mean']:.2f} / "
            f"{real['distinct']['mean']:.2f}.",
        ]
    )


def _difference(row: Row, other: Row, metric: str) -> tuple[float, float]:
    """Mean and standard error of row less other; KL(data ‖ samples) is paired by sequence."""
    if metric == "kl_data":
        shared = min(len(row["nats"]), len(other["nats"]))
        nats = np.array(row["nats"][:shared]) - np.array(other["nats"][:shared])
        return float(nats.mean()), float(nats.std(ddof=1) / np.sqrt(shared))
    a, b = row["metrics"][metric], other["metrics"][metric]
    return a["mean"] - b["mean"], hypot(a["stderr"], b["stderr"])


def key() -> str:
    """A plan with few evaluations against schedules with as many and more."""
    cells = _cells("stories")
    plan = cells["plan", FEW]
    counts = [count for count in MORE if ("uniform", count) in cells]
    lines = [
        f"| above a plan with {FEW} evaluations | " + " | ".join(f"{count} NFE" for count in counts) + " |",
        "|---" * (len(counts) + 1) + "|",
    ]
    ahead = 0
    for name in RIVALS:
        shown = []
        for count in counts:
            if (name, count) not in cells:
                shown.append("")
                continue
            found = [_difference(cells[name, count], plan, metric) for metric in BOTH]
            ahead += all(mean > INTERVAL * stderr for mean, stderr in found)
            shown.append(" / ".join(f"{mean:+.0f} ± {INTERVAL * stderr:.0f}" for mean, stderr in found))
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    total = sum((name, count) in cells for name in RIVALS for count in counts)
    means = [plan["metrics"][metric]["mean"] for metric in BOTH]
    lines += [
        "",
        f"Nats per sequence by which KL(data ‖ samples) / KL(samples ‖ data) of a schedule are above those of the plan"
        f", {means[0]:.0f} / {means[1]:.0f}; ± is a 95 % interval, paired by sequence in the first. In {ahead} of "
        f"{total} cells the plan is ahead in both directions beyond the intervals.",
    ]
    return "\n".join(lines)


def claims() -> str:
    """The paper's claims about text, checked on every network that was run."""
    lines = [
        "| network | judged by | WDS is the lowest of the paper's four at | WDS better than uniform / worse at | EDS "
        "better than uniform / worse at |",
        "|---" * 5 + "|",
    ]
    for network in NETWORKS:
        if not (ROOT / "results" / "stories" / f"{network}.json").exists():
            continue
        cells = _cells(network)
        counts = sorted({count for line, count in cells if line == "wds"})
        for metric, title in MEASURES.items():
            if metric not in cells["wds", counts[0]]["metrics"]:
                continue
            four = {k: [name for name in PAPERS if (name, k) in cells] for k in counts}
            lowest = [k for k in counts if min(four[k], key=lambda name: value_of(cells[name, k], metric)) == "wds"]  # type: ignore[arg-type]
            against = [" / ".join(map(_listed, _told_apart(cells, name, counts, metric))) for name in ("wds", "eds")]
            lines.append(f"| `{network}` | {title} | {_listed(lowest)} | {against[0]} | {against[1]} |")
    lines.append(
        "\nNumbers of evaluations; better and worse are beyond the 95 % interval of the difference, which is paired by "
        "sequence for KL(data ‖ samples)."
    )
    return "\n".join(lines)


def _told_apart(
    cells: dict[tuple[str, int], Row], name: str, counts: list[int], metric: str
) -> tuple[list[int], list[int]]:
    """Numbers of evaluations at which a schedule is better and worse than uniform steps."""
    found = {count: _difference(cells[name, count], cells["uniform", count], metric) for count in counts}
    better = [count for count, (mean, stderr) in found.items() if mean < -INTERVAL * stderr]
    return better, [count for count, (mean, stderr) in found.items() if mean > INTERVAL * stderr]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def ranks() -> str:
    """Do certificates rank ways of sampling as the true divergences do?"""
    found = load("stories/stories.json")["agreement"]
    counts = sorted({int(count) for each in found.values() for count in each})
    lines = ["| certificate | predicts | " + " | ".join(f"{count} NFE" for count in counts) + " |"]
    lines.append("|---" * (len(counts) + 2) + "|")
    for pair, each in found.items():
        shown = [
            f"{each[str(k)]['rank_correlation']:.2f} ({each[str(k)]['ways']})" if str(k) in each else "" for k in counts
        ]
        lines.append(f"| {PAIRS[pair][0]} | {PAIRS[pair][1]} | " + " | ".join(shown) + " |")
    lines.append(
        "\nSpearman's rank correlation among ways of sampling with as many evaluations, and in brackets how many ways "
        f"there are. The clock covers schedules ({', '.join(SCHEDULES)}, `counted`) and plans."
    )
    return "\n".join(lines)


def promise() -> str:
    """In a sentence."""
    cells = _cells("stories")
    plan, most = cells["plan", FEW], max(count for line, count in cells if line == "uniform")
    uniform = [cells["uniform", count]["metrics"]["kl_samples"]["mean"] for count in (FEW, most)]
    return (
        f"With {FEW} evaluations for 128 tokens samples are {uniform[0]:.0f} nats from the data after equal steps, "
        f"{plan['metrics']['kl_samples']['mean']:.0f} with a plan; equal steps with {most} evaluations leave "
        f"{uniform[1]:.0f} (KL(samples ‖ data) per story, from the true law of the data)."
    )


def told() -> str:
    """The first story of the page, as three ways tell it with few evaluations."""
    page = (ROOT / "results" / "stories" / "side-by-side.md").read_text()
    story = page.split("\n## Story ")[1]
    begun = story.partition("“")[2].partition(" …”")[0]
    lines = story.partition(f"| {FEW} evaluations | |")[2].partition("\n\n")[0].splitlines()
    cells = [line.strip("| ").split(" | ", 1) for line in lines[2:]]
    found = {name.partition(" (")[0]: (name, text) for name, text in cells}
    table = [f"| nats per token | “{begun} …” |", "|---|---|"]
    for name, title in SHOWN.items():
        nats = found[name][0].rpartition("(")[2].rstrip(")")
        table.append(f"| {title}: {nats} | … {found[name][1][:WIDTH].rpartition(' ')[0]} … |")
    return "\n".join(table)
