"""The tables of docs/engines.md: steps through the scheduler that pipelines call, and what DiffusionGemma takes."""

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


def memory() -> str:
    """Seconds and peak memory with DiffusionGemma's real vocabulary, a line for everything that was done."""
    results = load("bench/gemma.json")
    lines = ["| | seconds of CPU | peak memory so far |", "|---|---|---|"]
    found = results["real_vocabulary"]
    for name, row in found.items():
        if isinstance(row, dict):
            lines.append(f"| {name} | {row['cpu_seconds']:.2g} | {row['peak_mb']:,.0f} MB |")
    measured, settings = found["measure"], results["provenance"]["settings"]
    lines.append(
        f"\n{results['vocabulary']:,} words, canvases of {results['canvas']} tokens, a trunk of two layers "
        f"({found['network']['parameters'] / 1e6:.0f} M parameters with the embedding). Measuring takes "
        f"{measured['evaluations']} evaluations, sampling and `generate` {settings['steps']} steps for one canvas. To "
        f"hold 16 tokens at all {measured['levels']} levels at once would alone take "
        f"{measured['all_at_once_mb']:,.0f} MB; nothing does."
    )
    return "\n".join(lines)


def self_conditioning() -> str:
    """A line per number of steps and grid: path KL, nats per token above the data's, and KL of pairs, kind by kind."""
    results = load("gemma.json")
    kinds, real = list(dict.fromkeys(row["self_conditioning"] for row in results["rows"])), results["real"]
    judged = ("path KL, nats", "nats per token", "KL of pairs")
    lines = ["| steps | " + " | ".join(f"{what}: {' / '.join(kinds)}" for what in judged) + " |", "|---" * 4 + "|"]
    for steps, strategy in dict.fromkeys((row["steps"], row["strategy"]) for row in results["rows"]):
        line = [row for row in results["rows"] if (row["steps"], row["strategy"]) == (steps, strategy)]
        errors = " / ".join(_shown(row["path_error"], 1, 1) if row["path_error"] else "–" for row in line)
        nats, pairs = (" / ".join(_shown(row[what], 1, 2) for row in line) for what in ("nats", "pairs"))
        lines.append(f"| {steps}, {'equal' if strategy == 'uniform' else 'ODS'} | {errors} | {nats} | {pairs} |")
    settings = results["provenance"]["settings"]
    lines.append(
        f"\n{settings['samples']} canvases of {results['canvas']} tokens after prompts of {results['prompt']}; "
        f"{results['parameters'] / 1e6:.1f} M parameters, {settings['updates']:,} updates. Real data: "
        f"{_shown(real['nats'], 1, 2)} nats per token, KL of pairs {_shown(real['pairs'], 1, 2)} (few pairs show "
        "as much by themselves). `once` takes two passes per step. ± is one standard error."
    )
    return "\n".join(lines)


def _shown(value: dict[str, Any], scale: float, digits: int) -> str:
    return f"{scale * value['mean']:.{digits}f} ± {scale * value['stderr']:.{digits}f}"
