"""Tables of docs/stories.md and docs/networks.md about stories, whose law is known."""

from typing import Any

from results import load


def networks() -> str:
    """How far above the entropy each network is, and what its samples are like beside data."""
    results, law = load("stories/networks.json")["networks"], load("stories/law.json")
    entropy = law["entropy_per_token"]
    lines = [
        "| name | kernel | parameters | trained | NELBO, nats per token | above the entropy | samples: nats unlikelier "
        "than data | different 3-grams |",
        "|---" * 8 + "|",
    ]
    for name, found in results.items():
        samples = found["samples"]
        lines.append(
            f"| `{name}` | {found['kernel']} | {found['parameters']:,} | {found['training']['hours']:.1f} h, "
            f"{found['training']['sequences']:,} sequences | {_shown(found['nelbo_per_token'], 2)} | "
            f"{_shown(found['nelbo_above_entropy_per_token'], 2)} | {_shown(samples['surprise'], 0)} | "
            f"{samples['distinct']['mean']:.2f} |"
        )
    singly, first = results["stories"]["one_by_one"], next(iter(results.values()))
    samples = first["samples"]
    lines.append(
        f"\nEntropy of the data: {_shown(entropy, 4)} nats per token. NELBO on {first['held_out']:,} held-out "
        f"sequences; {samples['count']} samples with {samples['evaluations']} evaluations and uniform steps. From left "
        f"to right, one token at a time, `stories` has KL(data ‖ samples) = {_shown(singly['kl_data_samples'], 0)} and "
        f"KL(samples ‖ data) = {_shown(singly['kl_samples_data'], 0)} nats per sequence. ± is one standard error."
    )
    return "\n".join(lines)


def _shown(value: dict[str, Any], digits: int) -> str:
    return f"{value['mean']:.{digits}f} ± {value['stderr']:.{digits}f}"
