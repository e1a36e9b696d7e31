"""Tables and verdicts of the language experiment, for README and docs."""

from typing import Any

import numpy as np
from domains import (
    INTERVAL,
    against_uniform,
    is_worse,
    metric_table,
    shown,
    speedup_cell,
    speedup_table,
    table_by_steps,
)
from results import ROOT, load
from scipy.stats import spearmanr

from eigentime.experiments.speedup import speedups as speedups_of
from eigentime.report.choosing import agreement
from eigentime.report.claims import where
from eigentime.report.provenance import load_results
from eigentime.tasks.text import LENGTH

Row = dict[str, Any]
NETWORKS = {"text": "MDLM", "text-sedd": "SEDD", "text-uniform": "uniform kernel"}
CHOOSING = ("text", "countdown", "digits")
PAPERS = ("uniform", "jys", "eds", "wds")
"""The schedules that the paper compares."""
A_BIT = 0.6931471805599453 * LENGTH
"""Nats a sequence that are one bit a character."""


def oracle() -> str:
    """The trigram chain: certified error, and what samples say independently of it."""
    results = load("text/trigram-exact.json")
    rows = results["rows"]

    def cells(line: dict[str, Row]) -> dict[str, str]:
        pairs = {name: (row["path_error"]["mean"], row["metrics"]["surprise"]["mean"]) for name, row in line.items()}
        lowest = [min(pair[k] for pair in pairs.values()) for k in (0, 1)]
        return {
            name: " / ".join(f"**{x:.0f}**" if x == low else f"{x:.0f}" for x, low in zip(pair, lowest, strict=True))
            for name, pair in pairs.items()
        }

    lines = [table_by_steps(rows, cells)]
    worst = max(row["metrics"]["surprise"]["stderr"] for row in rows)
    correlation = results["rank_correlation"]
    others = dict.fromkeys(row["strategy"] for row in rows if row["strategy"] != "uniform")
    better = {name: against_uniform(rows, name, "surprise") for name in others}
    lines += [
        "",
        f"{results['samples']} sequences per cell, standard errors of the surprise at most {worst:.0f}. Rank "
        f"correlation of the certified error with the surprise {correlation['surprise']:.2f} over all cells (the "
        f"number of evaluations alone: {_by_steps(rows):.2f}), among the strategies of one number of evaluations "
        f"{_within(rows, 'surprise')}; with the trigram distance {correlation['trigrams']:.2f} over all cells.",
        "",
        speedup_table(results["speedup"]["surprise"]),
        "",
        "Beyond the 95 % intervals of the differences:",
        "",
        *(f"- {name} against uniform steps: {where(a, b)}." for name, (a, b) in better.items()),
        "",
        "Hellinger distance of the trigrams (its floor is that of as many real sequences, "
        f"{results['real']['trigrams']['mean']:.3f}):",
        "",
        metric_table(rows, "trigrams", 3),
    ]
    return "\n".join(lines)


def _by_steps(rows: list[Row]) -> float:
    """How much of a rank correlation is there for knowing the number of evaluations only."""
    return float(spearmanr([-row["steps"] for row in rows], _means(rows, "surprise")).statistic)


def _within(rows: list[Row], metric: str) -> str:
    """Rank correlations of certified error and metric, one for each number of evaluations."""
    found = []
    for steps in sorted({row["steps"] for row in rows}):
        line = [row for row in rows if row["steps"] == steps]
        value = spearmanr([row["path_error"]["mean"] for row in line], _means(line, metric)).statistic
        found.append(f"{value:.2f} ({steps})")
    return ", ".join(found)


def _means(rows: list[Row], metric: str) -> list[float]:
    return [row["metrics"][metric]["mean"] for row in rows]


def networks() -> str:
    """Held-out bits per character of the networks, of the chain and of the judge."""
    lines = ["| model | kernel | parameters | trained | bits per character of test text |", "|---" * 5 + "|"]
    found = load("zoo.json")["models"]
    for name in NETWORKS:
        model = found[name]
        lines.append(
            f"| `{name}` | {model['kernel']} | {model['parameters']:,} | {model['training_minutes']:.0f} min | "
            f"≤ {_interval(model['bits_per_token'])} |"
        )
    chain = load_results(ROOT / "src" / "eigentime" / "zoo" / "trigram" / "evaluation.json")
    lines += [
        f"| trigram chain | | {27**3:,} counts | | {chain['test_bits']:.3f} (entropy rate "
        f"{chain['entropy_rate_bits']:.3f}) |",
        f"| 6-gram judge | | | | {_interval(found['text']['judge_bits'])} |",
    ]
    below = [f"`{name}`" for name in NETWORKS if _highest(found[name]["bits_per_token"]) < chain["entropy_rate_bits"]]
    lines.append(
        f"\nThe networks' is the negative ELBO, on {found['text']['held_out']:,} test sequences as the judge's, the "
        f"chain's on all of the test text. Below the chain's entropy rate beyond the interval: "
        f"{', '.join(below) or 'none'}."
    )
    return "\n".join(lines)


def _interval(value: dict[str, float]) -> str:
    return f"{value['mean']:.3f} ± {INTERVAL * value['stderr']:.3f}"


def _highest(value: dict[str, float]) -> float:
    return value["mean"] + INTERVAL * value["stderr"]


def in_short() -> str:
    """What a plan gains on the masked network, in a sentence."""
    results = load("text/text.json")
    steps = sorted({row["steps"] for row in results["rows"]})
    plan = next(line for line in results["speedup"]["bits"] if (line["strategy"], line["steps"]) == ("plan", 4))
    words = {(row["strategy"], row["steps"]): row["metrics"]["real_words"]["mean"] for row in results["rows"]}
    return (
        f"A plan with 4 evaluations is as good as uniform steps with {speedup_cell(plan, steps)} (one standard error) "
        f"under the 6-gram judge, and {words['plan', 4]:.0%} of its words are real (uniform steps: "
        f"{words['uniform', 4]:.0%} with 4, {words['uniform', 32]:.0%} with 32)."
    )


def quality(model: str) -> str:
    """Bits a character under the judges, with what repetition would give away."""
    results = load(f"text/{model}.json")
    rows, real = results["rows"], results["real"]
    readers = [name for name in rows[0]["metrics"] if name.startswith("bits")]
    lines = []
    for reader in readers:
        who = "the 6-gram judge" if reader == "bits" else reader.removeprefix("bits_")
        lines += [
            f"Bits a character under {who} (real text: {shown(real[reader])}):",
            "",
            metric_table(rows, reader, 2),
            "",
        ]
    lines += [
        f"Beside them, entropy of a sequence's characters in nats / share of real words / share of different "
        f"4-grams (real text: {_variety(real)}):",
        "",
        variety_table(rows),
        "",
        f"{results['samples']} sequences per cell; the clock took {results['evaluations']:,} sequence evaluations.",
    ]
    return "\n".join(lines)


def _variety(metrics: Row) -> str:
    return f"{metrics['entropy']['mean']:.2f} / {metrics['real_words']['mean']:.0%} / {metrics['distinct']['mean']:.2f}"


def variety_table(rows: list[Row]) -> str:
    """What perplexity alone does not see."""
    return table_by_steps(rows, lambda line: {name: _variety(row["metrics"]) for name, row in line.items()})


def speedups(model: str) -> str:
    """Evaluations saved at equal perplexity under each judge, and whether entropy tells anything apart."""
    lines = []
    for title, found in saved(model).items():
        lines += [f"At equal {title}:", "", speedup_table(found), ""]
    return "\n".join([*lines, entropies(load(f"text/{model}.json")["rows"])])


def saved(model: str) -> dict[str, list[Row]]:
    """Uniform steps that are as good as each cell, by the judge under which they are."""
    results = load(f"text/{model}.json")
    seed, rows = results["provenance"]["settings"]["seed"], results["rows"]
    found = {"bits under the 6-gram judge": results["speedup"]["bits"]}
    for reader in rows[0]["metrics"]:
        if reader.startswith("bits_"):
            found[f"bits under {reader.removeprefix('bits_')}"] = speedups_of(rows, reader, seed)
    return found


def entropies(rows: list[Row]) -> str:
    """Is what is equal in bits also equal in entropy?"""
    most = max(row["steps"] for row in rows)
    reference = next(row for row in rows if row["strategy"] == "uniform" and row["steps"] == most)
    level, others = reference["metrics"]["entropy"], [row for row in rows if row is not reference]
    apart = [
        f"{row['strategy']} {row['steps']}"
        for row in others
        if is_worse(row["metrics"]["entropy"], level) or is_worse(level, row["metrics"]["entropy"])
    ]
    means = _means(rows, "entropy")
    return (
        f"And at equal entropy? It lies between {min(means):.3f} and {max(means):.3f} nats in all cells. Of "
        f"{len(others)} cells {len(apart)} differ from uniform steps with {most} evaluations beyond the 95 % interval, "
        f"where {0.05 * len(others):.0f} would by chance{': ' if apart else ''}{', '.join(apart)}."
    )


def claims() -> str:
    """The paper's claims about text, one by one."""
    lines = []
    for model, name in NETWORKS.items():
        rows = load(f"text/{model}.json")["rows"]
        for judge in (name for name in rows[0]["metrics"] if name.startswith("bits")):
            cells = {(row["strategy"], row["steps"]): row["metrics"][judge] for row in rows}
            who = "6-gram judge" if judge == "bits" else judge.removeprefix("bits_")
            steps = sorted({steps for _, steps in cells})
            lowest = [k for k in steps if min(PAPERS, key=lambda strategy: cells[strategy, k]["mean"]) == "wds"]
            lines.append(
                f"- {name}, {who}: *WDS is best at all budgets*: of {', '.join(PAPERS)} it has the fewest bits "
                f"{'at ' + _listed(lowest) if lowest else 'nowhere'}. {_beaten(cells, 'wds')}"
            )
            lines.append(f"  - *EDS*: {_beaten(cells, 'eds')}")
            for strategy in dict.fromkeys(strategy for strategy, _ in cells if strategy != "uniform"):
                better, worse = against_uniform(rows, strategy, judge)
                lines.append(f"  - {strategy} against uniform steps: {where(better, worse)}.")
    return "\n".join(lines)


def _beaten(cells: dict[tuple[str, int], Row], strategy: str) -> str:
    """Where each of the paper's other schedules is better, beyond the interval of the difference."""
    steps = sorted({steps for _, steps in cells})
    found = {
        other: [k for k in steps if is_worse(cells[strategy, k], cells[other, k])]
        for other in PAPERS
        if other != strategy
    }
    return "Better than it beyond the intervals: " + "; ".join(f"{o} at {_listed(k)}" for o, k in found.items()) + "."


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def plans() -> str:
    """Plans against time schedules: what held-out text costs, and what samples say, at 4, 8 and 16 evaluations."""
    results = load("text/text.json")
    rows = {(row["strategy"], row["steps"]): row for row in results["rows"]}
    steps = sorted({steps for _, steps in rows})
    lines = ["| bits per character of held-out text, at most | " + " | ".join(f"{k} NFE" for k in steps) + " |"]
    lines.append("|---" * (len(steps) + 1) + "|")
    for strategy in ("uniform", "cosine", "wds", "ods", "plan"):
        found = [rows[strategy, k]["nll_bound"] for k in steps]
        cells = [f"{bound['mean'] / A_BIT:.3f} ± {INTERVAL * bound['excess_stderr'] / A_BIT:.3f}" for bound in found]
        lines.append(f"| {strategy} | " + " | ".join(cells) + " |")
    common = rows["uniform", steps[-1]]["nll_bound"]
    lines += [
        "",
        f"All on the same sequences: ± is of differences between cells (what they have in common is known to "
        f"{INTERVAL * common['stderr'] / A_BIT:.2f}). Uniform steps (random order) that are as good as a plan:",
        "",
        "| at equal | " + " | ".join(f"plan, {k} NFE" for k in (4, 8, 16)) + " |",
        "|---" * 4 + "|",
    ]
    equal = {"cost of held-out text": results["speedup"]["nll_bound"], **saved("text")}
    for title, lines_found in equal.items():
        found = {line["steps"]: line for line in lines_found if line["strategy"] == "plan"}
        lines.append(f"| {title} | " + " | ".join(speedup_cell(found[k], steps) for k in (4, 8, 16)) + " |")
    return "\n".join([*lines, "", entropies(results["rows"])])


def samples() -> str:
    """The first sample of a few cells."""
    blocks = (ROOT / "results" / "text" / "text-samples.txt").read_text().split("\n\n")
    first = {block.split("\n")[0].strip(): block.split("\n")[1].strip() for block in blocks if "\n" in block.strip()}
    wanted = [f"{strategy}, {k} evaluations" for k in (16, 64) for strategy in ("uniform", "wds", "ods", "plan")]
    return "\n".join(f"- *{name}:* {first[name]}" for name in wanted if name in first)


def choosing(model: str) -> str:
    """Samplers that choose their tokens crossed with schedules: certified forward and reverse, then the judges."""
    results = load(f"choosing/{model}.json")
    rows, shown = results["rows"], ("forward", "reverse", results["fidelity"], results["diversity"])
    scheduled = [row for row in rows if row["steps"]]
    steps = sorted({row["steps"] for row in scheduled})

    def cell(row: Row) -> str:
        values = [row["metrics"][metric]["mean"] for metric in shown]
        return " / ".join("–" if np.isnan(value) else f"{value:.3f}" for value in values)

    lines = ["| sampler | schedule | " + " | ".join(f"{k} NFE" for k in steps) + " |"]
    lines.append("|---" * (len(steps) + 2) + "|")
    for sampler, schedule in dict.fromkeys((row["sampler"], row["strategy"]) for row in scheduled):
        mine = {row["steps"]: row for row in scheduled if (row["sampler"], row["strategy"]) == (sampler, schedule)}
        lines.append(f"| {sampler} | {schedule} | " + " | ".join(cell(mine[k]) for k in steps) + " |")
    adaptive = sorted((row for row in rows if not row["steps"]), key=lambda row: row["nfe"])
    lines += ["", "| adaptive | NFE | |", "|---|---|---|"] if adaptive else []
    lines += [f"| {row['sampler']} | {row['nfe']:.0f} | {cell(row)} |" for row in adaptive]
    errors = [np.nanmax([row["metrics"][metric]["stderr"] for row in rows]) for metric in shown]
    real = " / ".join(f"{results['real'][metric]['mean']:.3f}" for metric in shown if metric in results["real"])
    settings, ranks = results["provenance"]["settings"], agreement(rows, results["fidelity"])
    lines.append(
        f"\nNats per token forward (held-out data) / reverse (the sampler's own samples against one token at a time) / "
        f"{shown[2].replace('_', ' ')} / {shown[3].replace('_', ' ')}; – where no certificate covers the sampler. "
        f"NELBO and real data: {real}. Standard errors at most {' / '.join(f'{error:.3f}' for error in errors)}; "
        f"{settings['sequences']} held-out sequences and {settings['samples']} samples a cell "
        f"({settings.get('reversed', settings['samples'])} others in reverse). "
        f"Rank correlation of forward and reverse with {shown[2].replace('_', ' ')} over the {ranks['rows']} covered "
        f"rows: {ranks['forward']:.2f} and {ranks['reverse']:.2f}."
    )
    return "\n".join(lines)


def ranks() -> str:
    """Does the certificate rank ways of sampling as the judges do? One line per domain."""
    lines = ["| domain | judge | ways of sampling | forward | reverse |", "|---|---|---|---|---|"]
    for model in CHOOSING:
        results = load(f"choosing/{model}.json")
        found = agreement(results["rows"], results["fidelity"])
        judge = results["fidelity"].replace("_", " ")
        lines.append(f"| {model} | {judge} | {found['rows']} | {found['forward']:.2f} | {found['reverse']:.2f} |")
    return "\n".join(lines)


def ties() -> str:
    """How much of what lowest entropy first loses against chance is the rule for ties, in a sentence."""
    rows = load("choosing/text.json")["rows"]
    cost = {
        (row["sampler"], row["steps"]): row["metrics"]["forward"]["mean"]
        for row in rows
        if row["strategy"] == "uniform"
    }
    lines = []
    for steps in (4, 16):
        chance, spread, first = (cost[name, steps] for name in ("counted", "entropy", "entropy (ties first)"))
        lines.append(
            f"with {steps} evaluations chance costs {chance:.3f} nats per character, lowest entropy first {first:.3f} "
            f"when ties go to the first places and {spread:.3f} when they are spread: ties are {first - spread:.2f} of "
            f"the {first - chance:.2f} nats that it loses"
        )
    return f"On the network of text (uniform steps) {'; '.join(lines)}."


def clumping() -> str:
    """Why rules lose against chance: what an order does to the network, and what tokens drawn at once lose."""
    results = load("choosing/clumping.json")
    lines = [
        "| | steps | neighbours in one step | nats per token | of the order | of tokens at once |",
        "|---|---|---|---|---|---|",
    ]
    names = {"counted": "chance (counted)", "entropy": "entropy (ties spread)"}
    for model in ("text", "digits", "countdown-exact"):
        for row in sorted(results[model]["rows"], key=lambda row: row["steps"]):
            parts = [
                f"{round(row[part]['mean'], 3) + 0.0:.3f} ± {INTERVAL * row[part]['stderr']:.3f}"
                for part in ("order", "clumping")
            ]
            lines.append(
                f"| {model}: {names.get(row['sampler'], row['sampler'])} | {row['steps']} | "
                f"{row['neighbours revealed together']:.0%} | {row['nats']['mean']:.3f} | {' | '.join(parts)} |"
            )
    settings = results["provenance"]["settings"]
    counts = " and ".join(f"{count} sequences of {model}" for model, count in settings["sequences"].items())
    floors = " and ".join(f"{results[model]['nelbo']:.3f} ({model})" for model in settings["sequences"])
    lines.append(
        f"\nNats = NELBO, {floors}, + the order's part + the part of tokens drawn at once. Uniform steps, {counts}, "
        f"{settings['references']} tokens of each one at a time; ± 95 %."
    )
    return "\n".join(lines)


def recommending() -> str:
    """Does `recommend` find what comparing everything finds?"""
    lines = [
        "| | seeds | found the best or one within 2 % | evaluations, of comparing everything |",
        "|---|---|---|---|",
    ]
    results = load("recommending.json")
    for name, world in results["worlds"].items():
        spent = [run["evaluations"] for run in world["runs"]]
        mine, every = (np.mean([each["clock"] + each[part] for each in spent]) for part in ("recommend", "exhaustive"))
        lines.append(
            f"| {name} | {world['seeds']} | {world['close']} | {mine:,.0f} of {every:,.0f} ({world['share']:.0%}) |"
        )
    lines.append(
        f"\n{results['provenance']['settings']['nfe']} evaluations per sequence. Both numbers include the clock; "
        "everything is all candidates that are within the budget, on all sequences that choose "
        + ", ".join(f"({name}: {world['settings']['sequences'] // 2})" for name, world in results["worlds"].items())
        + "."
    )
    return "\n".join(lines)
