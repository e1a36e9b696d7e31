"""Tables and verdicts of the experiments on real data, for README and docs."""

from collections.abc import Callable
from typing import Any

from results import load

from eigentime.report.claims import INTERVAL, against_uniform, is_worse, shown, where

Row = dict[str, Any]
MUSIC, IMAGES = "music/music.json", "images/images.json"
UNTOLD = 0.5
"""A number of steps with a larger relative error says nothing."""


def table_by_steps(rows: list[Row], cells: Callable[[dict[str, Row]], dict[str, str]]) -> str:
    """One line per number of evaluations, one column per strategy; `cells` writes a line's from its rows."""
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    lines = ["| NFE | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for steps in sorted({row["steps"] for row in rows}):
        line = cells({row["strategy"]: row for row in rows if row["steps"] == steps})
        lines.append(f"| {steps} | " + " | ".join(line[strategy] for strategy in strategies) + " |")
    return "\n".join(lines)


def metric_table(rows: list[Row], metric: str, digits: int) -> str:
    """Mean ± 95 % interval, the lowest of a line in bold."""

    def cells(line: dict[str, Row]) -> dict[str, str]:
        values = {strategy: row["metrics"][metric] for strategy, row in line.items()}
        best = min(values, key=lambda strategy: values[strategy]["mean"])
        means = {strategy: f"{value['mean']:.{digits}f}" for strategy, value in values.items()}
        means[best] = f"**{means[best]}**"
        return {
            strategy: f"{means[strategy]} ± {INTERVAL * values[strategy]['stderr']:.{digits}f}" for strategy in line
        }

    return table_by_steps(rows, cells)


def speedup_table(found: list[Row]) -> str:
    """Evaluations that uniform steps need for what each strategy reaches; a dash where that cannot be told."""
    steps = sorted({line["steps"] for line in found})
    lines = ["| as good as so many uniform steps | " + " | ".join(f"{k} NFE" for k in steps) + " |"]
    lines.append("|---" * (len(steps) + 1) + "|")
    for strategy in dict.fromkeys(line["strategy"] for line in found):
        cells = [speedup_cell(line, steps) for line in found if line["strategy"] == strategy]
        lines.append(f"| {strategy} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speedup_cell(line: Row, steps: list[int]) -> str:
    """Equal uniform steps ± standard error; a bound where that reaches the first or the last number that was tried."""
    mean, stderr = line["uniform_steps"]["mean"], line["uniform_steps"]["stderr"]
    if stderr > UNTOLD * mean:
        return "–"
    if mean + stderr > 0.999 * steps[-1]:
        return f"≥ {mean - stderr:.0f}"
    return f"≤ {mean + stderr:.0f}" if mean - stderr < 1.001 * steps[0] else f"{mean:.0f} ± {stderr:.0f}"


def music(sampler: str, metric: str) -> str:
    """One metric of the music experiment, and what it says of speed."""
    results = load(MUSIC)
    reference, level = results["reference"], results["reference"]["metrics"][metric]
    lines = [
        metric_table(results["rows"][sampler], metric, 3),
        "",
        f"{results['songs']} held-out songs, ± 95 % interval; {reference['steps']} uniform steps of "
        f"{reference['sampler']}: {level['mean']:.3f} ± {INTERVAL * level['stderr']:.3f}.",
        "",
        speedup_table(results["speedup"][sampler][metric]),
    ]
    return "\n".join(lines)


def music_claims() -> str:
    """The paper's claims about music: do schedules match the long reference, and do they beat uniform steps?"""
    results = load(MUSIC)
    lines = [
        f"| sampler | metric | | not told apart from {results['reference']['steps']} uniform steps from "
        "| better than uniform at | worse at |",
        "|---" * 6 + "|",
    ]
    for sampler, rows in results["rows"].items():
        for metric in ("hellinger", "outlier"):
            level = results["reference"]["metrics"][metric]
            for strategy in dict.fromkeys(row["strategy"] for row in rows):
                mine = [row for row in rows if row["strategy"] == strategy]
                apart = [row["steps"] for row in mine if is_worse(row["metrics"][metric], level)]
                reached = [row["steps"] for row in mine if row["steps"] > max(apart, default=0)]
                better, worse = against_uniform(rows, strategy, metric)
                first = str(min(reached)) if reached else "none tried"
                lines.append(f"| {sampler} | {metric} | {strategy} | {first} | {better} | {worse} |")
    rows = {(row["strategy"], row["steps"]): row for row in results["rows"]["tau-leaping"]}
    steps = [f"{name} to t = {rows[name, 8]['schedule']['times'][1]:.2f}" for name in ("uniform", "eds", "wds", "ods")]
    lines.append(f"\nThe first of 8 steps goes from t = 1 (noise) with {', with '.join(steps)}.")
    return "\n".join(lines)


def images() -> str:
    """The image experiment's table."""
    results = load(IMAGES)
    real = results["real"]["frechet_small"]
    lines = [
        metric_table(results["rows"], "frechet_small", 2),
        "",
        f"{results['images']} images per cell, ± 95 % interval; as many real ones: {shown(real)}. Judge: "
        f"{results['judge']}.",
        "",
        speedup_table(results["speedup"]),
    ]
    return "\n".join(lines)


def images_claims() -> str:
    """The paper's claims about images, one by one."""
    results = load(IMAGES)
    rows = results["rows"]
    cells = {(row["strategy"], row["steps"]): row["metrics"]["frechet_small"] for row in rows}
    most = max(steps for _, steps in cells)
    lines = []
    if ("eds", most // 4) in cells:
        met = not is_worse(cells["eds", most // 4], cells["uniform", most])
        lines.append(
            f"- EDS with {most // 4} evaluations is {'not told apart from' if met else 'worse than'} uniform steps "
            f"with {most} "
            f"({shown(cells['eds', most // 4])} against {shown(cells['uniform', most])})."
        )
    for strategy in dict.fromkeys(strategy for strategy, _ in cells if strategy != "uniform"):
        better, worse = against_uniform(rows, strategy, "frechet_small")
        lines.append(f"- {strategy} against uniform steps: {where(better, worse)}.")
    for found in results["fid"]:
        value = found["fid"]
        lines.append(
            f"- FID of {found['strategy']} with {found['steps']} evaluations ({found['samples']:,} samples, "
            f"{found['real']:,} real images): "
            f"{value['mean']:.1f} ± {INTERVAL * value['stderr']:.1f}."
        )
    return "\n".join(lines)


def fid_check() -> str:
    """Is the Fréchet distance right: between real sets it must be linear in 1/n, and noise must raise it."""
    results = load("fid.json")
    lines = ["| features | between disjoint real sets of n images | at n → ∞ | largest misfit of the line in 1/n |"]
    lines[0] += " with noise of " + ", ".join(f"{level['noise']}" for level in _ladders(results)[0]) + " grey values |"
    lines.append("|---" * 5 + "|")
    for name, judge in results["judges"].items():
        real = judge["real"]
        points = ", ".join(f"n = {point['n']:,}: {point['mean']:.2f}" for point in real["points"])
        ladder = ", ".join(f"{level['distance']:.1f}" for level in judge["ladder"])
        lines.append(f"| {name} | {points} | {real['intercept']:.2f} | {real['largest_misfit']:.1%} | {ladder} |")
    images, few = (results["provenance"]["settings"][key] for key in ("images", "ladder_images"))
    lines.append(
        f"\n{images:,} real images; the noisy ones are {few} others, so that even without noise the distance is large."
    )
    return "\n".join(lines)


def _ladders(results: dict[str, Any]) -> list[list[dict[str, float]]]:
    return [judge["ladder"] for judge in results["judges"].values()]


def music_networks() -> str:
    """tauLDR's piano transformer beside the DDiT that was trained."""
    results = load("music-networks.json")
    lines = ["| network | parameters | seconds | negative ELBO, nats per tune |", "|---" * 4 + "|"]
    for name, found in results["networks"].items():
        bound = f"{found['nelbo']:.1f} ± {found['stderr']:.1f}"
        lines.append(f"| {name} | {found['parameters']:,} | {found['seconds']:,} | {bound} |")
    lines.append(f"\nAfter {results['provenance']['settings']['steps']} steps each, with the same data and noise.")
    return "\n".join(lines)
