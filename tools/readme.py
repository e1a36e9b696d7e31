"""Put the tables of results/ into README.md and the docs, between their markers.

python tools/readme.py [--check]     with --check only say whether they are up to date
"""

import re
import sys
from typing import Any

import antiberty
import certified
import digits
import domains
import engines
import language
import lists
import ordering
import own_work
import places
import reactions
import scale
import stories
import story_samplers
import summary
import trust
from results import ROOT, load

from eigentime.files import write_atomically
from eigentime.models.list_operations import RANDOM
from eigentime.report.claims import claims_table

Row = dict[str, Any]
DOCS = (
    "choosing",
    "claims",
    "countdown",
    "digits",
    "engines",
    "exact-models",
    "experiments",
    "ideas",
    "language",
    "lists",
    "networks",
    "places",
    "reactions",
    "scale",
    "speed",
    "stories",
    "theory",
    "trust",
)
PAGES = ("README.md", *(f"docs/{name}.md" for name in DOCS))
MOST_STEPS = 64
"""Longer runs are made with few strategies only."""
MARKER = re.compile(r"<!-- table: (.*?) -->")


def comparison(results: dict[str, Any], metric: str, scale: float, digits: int) -> str:
    """A Markdown table: a line per number of evaluations, a column per strategy, the lowest of each part in bold."""
    rows = [row for row in results["rows"] if row["steps"] <= MOST_STEPS]
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    lines = ["| NFE | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for steps in sorted({row["steps"] for row in rows}):
        line = {row["strategy"]: row for row in rows if row["steps"] == steps}
        cells = []
        shown = {
            strategy: (f"{scale * row['metrics'][metric]['mean']:.{digits}f}", f"{row['path_error']['mean']:.3g}")
            for strategy, row in line.items()
        }
        lowest = [min((values[part] for values in shown.values()), key=float) for part in (0, 1)]
        for strategy in strategies:
            cells.append(
                " / ".join(_bold(value, value == low) for value, low in zip(shown[strategy], lowest, strict=True))
            )
        lines.append(f"| {steps} | " + " | ".join(cells) + " |")
    worst = max(row["metrics"][metric]["stderr"] for row in rows) * scale
    relative = max(row["path_error"]["stderr"] / row["path_error"]["mean"] for row in rows)
    counts = sorted({row["samples"] for row in rows}, reverse=True)
    lines.append(
        f"\n{' or '.join(map(str, counts))} sequences per cell; standard errors at most {worst:.{digits}f} and "
        f"{relative:.0%} of the path error; the clock took {results['evaluations']:,} sequence evaluations, JYS up to "
        f"{_jys_cost(rows):,}."
    )
    return "\n".join(lines)


def _jys_cost(rows: list[Row]) -> int:
    return max(row["schedule"]["provenance"]["evaluations"] for row in rows if row["strategy"] == "jys")


def _percent(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.2f} ± {100 * value['stderr']:.2f} %"


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def budget() -> str:
    """The budget study as a Markdown table."""
    results = load("budget.json")
    lines = ["| kernel | sequence evaluations | fewer than the paper's 1024 × 1024 |"]
    steps = list(results["absorbing"]["summary"])
    lines[0] += "".join(f" {k} steps |" for k in steps)
    lines.append("|---" * (3 + len(steps)) + "|")
    for kernel in ("absorbing", "uniform"):
        mine = results[kernel]
        losses = [mine["summary"][k]["above_optimum"] for k in steps]
        cells = "".join(f" {loss['mean']:.1%} ± {loss['stderr']:.1%} |" for loss in losses)
        lines.append(f"| {kernel} | {mine['evaluations']} | {mine['fewer_than_paper']:,.0f} × |{cells}")
    every = [row for kernel in ("absorbing", "uniform") for row in results[kernel]["rows"]]
    covered = sum(abs(row["z"]) < 2 for row in every) / len(every)
    seeds = results["provenance"]["settings"]["seeds"]
    lines.append(
        f"\nMean of {seeds} seeds. The cross-fitted certificate lies within two standard errors of the truth in "
        f"{covered:.0%} of the cases."
    )
    return "\n".join(lines)


def countdown() -> str:
    """Violation of every schedule on the trained network, the exact model's in brackets."""
    results = load("countdown/countdown.json")
    parts = {
        part: {(row["strategy"], row["steps"]): row for row in results[part]["rows"]} for part in ("network", "exact")
    }
    cells = parts["network"]
    strategies = list(dict.fromkeys(strategy for strategy, _ in cells))
    lines = ["| NFE | " + " | ".join(strategies) + " |", "|---" * (len(strategies) + 1) + "|"]
    for steps in sorted({steps for _, steps in cells}):
        line = {
            strategy: [f"{100 * parts[part][strategy, steps]['metrics']['violation']['mean']:.2f}" for part in parts]
            for strategy in strategies
            if (strategy, steps) in cells
        }
        lowest = min((network for network, _ in line.values()), key=float)
        shown = [
            f"{_bold(line[strategy][0], line[strategy][0] == lowest)} ({line[strategy][1]})" if strategy in line else ""
            for strategy in strategies
        ]
        lines.append(f"| {steps} | " + " | ".join(shown) + " |")
    settings = results["provenance"]["settings"]
    worst = 100 * max(row["metrics"]["violation"]["stderr"] for row in cells.values())
    lines.append(
        f"\n{settings['samples']} sequences per cell, half as many from 64 evaluations on; standard errors at most "
        f"{worst:.2f}. The clock took {results['network']['evaluations']:,} sequence evaluations, JYS up "
        f"to {_jys_cost(results['network']['rows']):,}."
    )
    return "\n".join(lines)


def speedups() -> str:
    """What schedules save: evaluations that uniform steps need for the same violation rate."""
    results = load("countdown/countdown.json")
    steps = [4, 8, 16, 32]
    lines = ["| | " + " | ".join(f"{k} NFE" for k in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for part in ("network", "exact"):
        found = {(line["strategy"], line["steps"]): line for line in results["speedup"][part]}
        for strategy in dict.fromkeys(strategy for strategy, _ in found):
            cells = []
            for k in steps:
                line = found[strategy, k]
                equal = line["uniform_steps"]
                cells.append(f"{'> ' if line['beyond'] else ''}{equal['mean']:.0f} ± {equal['stderr']:.0f}")
            lines.append(f"| {strategy}, {part} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def headline() -> str:
    """The paper's claim about countdown, checked: is WDS with 8 evaluations as good as uniform steps with 32?"""
    results, plan = load("countdown/countdown.json"), load("plans/countdown.json")["claims"]
    equal = {
        (part, line["strategy"]): line["uniform_steps"]
        for part in ("network", "exact")
        for line in results["speedup"][part]
        if line["steps"] == 8
    }

    def shown(part: str, strategy: str) -> str:
        return f"{equal[part, strategy]['mean']:.0f} ± {equal[part, strategy]['stderr']:.0f}"

    met = any(equal[part, "wds"]["mean"] + 2 * equal[part, "wds"]["stderr"] >= 32 for part in ("network", "exact"))
    violation = {label: _percent(plan[label]["metrics"]["violation"]) for label in plan}
    return (
        "The paper's headline, WDS with 8 evaluations as good as uniform steps with about 32, is "
        f"{'' if met else 'not '}met: WDS with 8 matches uniform steps with {shown('network', 'wds')} on the network "
        f"and {shown('exact', 'wds')} on the exact model, and ODS, the best time schedule in path KL, with "
        f"{shown('network', 'ods')} and {shown('exact', 'ods')}: no time schedule tried here does better at 8. A plan "
        f"goes further: with 8 evaluations the network violates {violation['plan 8']}, with uniform steps "
        f"{violation['uniform 64']} after 64 and {violation['uniform 256']} after 256 (a run of its own)."
    )


def zoo() -> str:
    """The bundled networks and how good they are."""
    results = load("zoo.json")
    lines = [
        "| name | kernel | parameters | trained | NELBO, above the exact one where known "
        "| violation, 256 steps (uniform / ods) |",
        "|---" * 6 + "|",
    ]
    for name, model in results["models"].items():
        if "nelbo_above_exact" in model:
            above, relative = model["nelbo_above_exact"], model["relative"]
            quality = f"{above['mean']:.2f} ± {above['stderr']:.2f} nats ({relative['mean']:.1%})"
        else:
            bits = model["bits_per_token"]
            quality = f"{bits['mean']:.3f} ± {bits['stderr']:.3f} bits per token in all"
        violation = " / ".join(
            _percent(model[f"violation_{strategy}_256"])
            for strategy in ("uniform", "ods")
            if f"violation_{strategy}_256" in model
        )
        lines.append(
            f"| `{name}` | {model['kernel']} | {model['parameters']:,} | {model['training_minutes']:.0f} min | "
            f"{quality} | {violation} |"
        )
    return "\n".join(lines)


def plans() -> str:
    """Violation of schedules and plans at equal evaluations, network and exact model."""
    parts = {
        part: load(f"plans/{name}.json") for part, name in (("network", "countdown"), ("exact", "countdown-exact"))
    }
    rows = {part: {(row["strategy"], row["steps"]): row for row in results["rows"]} for part, results in parts.items()}
    strategies = list(dict.fromkeys(strategy for strategy, _ in rows["network"]))
    steps = sorted({steps for _, steps in rows["network"]})
    lines = ["| violation in %, network (exact) | " + " | ".join(f"{k} NFE" for k in steps) + " |"]
    lines.append("|---" * (len(steps) + 1) + "|")
    for strategy in strategies:
        cells = []
        for k in steps:
            shown = [f"{100 * rows[part][strategy, k]['metrics']['violation']['mean']:.2f}" for part in rows]
            best = min(
                (f"{100 * rows['network'][other, k]['metrics']['violation']['mean']:.2f}" for other in strategies),
                key=float,
            )
            cells.append(f"{_bold(shown[0], shown[0] == best)} ({shown[1]})")
        lines.append(
            f"| {'**plan** (best certified)' if strategy == 'plan' else strategy} | " + " | ".join(cells) + " |"
        )
    correlations = ", ".join(
        f"{name} {load(f'plans/{name}.json')['rank_correlation']['all']:.2f}"
        for name in ("countdown-exact", "trigram-text", "ising")
    )
    lines.append(
        f"\nRank correlation of certified and achieved error over all strategies and numbers of steps: {correlations}."
    )
    return "\n".join(lines)


def main() -> None:
    """Rewrite the README, or complain that it is stale."""
    tables = {
        "promise": summary.promise(),
        "trust-files": trust.files(),
        "trust-faults": trust.faults(),
        "trust-soak": trust.soak(),
        "trust-splits": trust.splits(),
        "trust-lowest": trust.lowest(),
        "claims": claims_table(ROOT / "results"),
        "summary": summary.table(),
        "countdown": countdown(),
        "speedups": speedups(),
        "headline": headline(),
        "plans": plans(),
        "zoo": zoo(),
        "stories-networks": stories.networks(),
        "stories-law": stories.law(),
        "stories-tuning": stories.tuning(),
        "stories-limits": stories.limits(),
        "stories-divergences": story_samplers.divergences(),
        "stories-key": story_samplers.key(),
        "stories-variety": story_samplers.variety(),
        "stories-claims": story_samplers.claims(),
        "stories-ranks": story_samplers.ranks(),
        "stories-promise": story_samplers.promise(),
        "stories-told": story_samplers.told(),
        "engines": engines.schedulers(),
        "engines-memory": engines.memory(),
        "engines-self-conditioning": engines.self_conditioning(),
        "absorbing": comparison(load("countdown/countdown.json")["exact"], "violation", 100, 1),
        "uniform": comparison(load("countdown-exact/uniform.json"), "unigrams", 1, 3),
        "budget": budget(),
        "music-hellinger": domains.music("tau-leaping", "hellinger"),
        "music-outlier": domains.music("tau-leaping", "outlier"),
        "music-hellinger-euler": domains.music("euler", "hellinger"),
        "music-outlier-euler": domains.music("euler", "outlier"),
        "music-claims": domains.music_claims(),
        "music-nats": ordering.music_nats(),
        "ordering": ordering.countdown(),
        "ordering-jys": ordering.jys(),
        "images": domains.images(),
        "images-claims": domains.images_claims(),
        "fid-check": domains.fid_check(),
        "digits-against": digits.against_plan(),
        "digits-schedules": digits.schedules("frechet_small"),
        "digits-excess": digits.schedules("excess"),
        "digits-saved": digits.saved(),
        "digits-failing": digits.failing(),
        "digits-orders": digits.orders("frechet_small"),
        "digits-orders-excess": digits.orders("excess"),
        "digits-chosen": digits.chosen_orders(),
        "digits-uniform": digits.without_masks(),
        "music-networks": domains.music_networks(),
        "oracle": language.oracle(),
        "text": language.in_short(),
        "text-networks": language.networks(),
        "text-claims": language.claims(),
        "text-plans": language.plans(),
        "text-samples": language.samples(),
        **{f"quality-{model}": language.quality(model) for model in language.NETWORKS},
        **{f"speedups-{model}": language.speedups(model) for model in language.NETWORKS},
        **{f"choosing-{model}": language.choosing(model) for model in language.CHOOSING},
        "choosing-ranks": language.ranks(),
        "ties": language.ties(),
        "clumping": language.clumping(),
        "recommending": language.recommending(),
        "antiberty": antiberty.distances(),
        "antiberty-needed": antiberty.needed(),
        **{f"lists-{name}": lists.operation(name) for name in RANDOM},
        "lists-certain": lists.certain(),
        "lists-bound": lists.bound(),
        "bench": own_work.table(),
        "draws": own_work.draws(),
        "counted": certified.counted(),
        "coverage": certified.coverage(),
        "scale": scale.measured(),
        "on-paper": scale.on_paper(),
        "places": places.orders(),
        "places-counts": places.counts(),
        "reactions-nats": reactions.nats(),
        "reactions-gains": reactions.gains(),
        "reactions-judges": reactions.judges(),
    }
    used = {name for page in PAGES for name in MARKER.findall((ROOT / page).read_text())}
    if used != set(tables):
        sys.exit(f"Tables without a place or places without a table: {', '.join(sorted(used ^ set(tables)))}.")
    stale = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        updated = text
        for name, table in tables.items():
            pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
            updated = re.sub(
                pattern, lambda match, table=table: f"{match[1]}{table}\n\n{match[2]}", updated, flags=re.S
            )
        if updated != text:
            stale.append(page)
            if "--check" not in sys.argv:
                write_atomically(ROOT / page, updated)
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(stale)} does not say what results/ does; run python tools/readme.py")


if __name__ == "__main__":
    main()
