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


def law() -> str:
    """What is cut from the law, its entropy, and the judge's own zero."""
    found = load("stories/law.json")
    tokens, entropy, fresh = found["tokens"], found["entropy"], found["provenance"]["settings"]["fresh"]
    millions = entropy["sequences"] * tokens["length"] / 1e6
    return (
        f"Kept are the {tokens['kept']:,} most frequent of {tokens['of']:,} tokens, which cuts "
        f"{_percent(found['mass_cut_per_token'])} of the mass at each token. The entropy of {tokens['length']} tokens "
        f"is {_shown(entropy, 2)} nats, from {entropy['sequences']:,} sequences ({millions:.0f} million tokens); -ln p "
        f"of the same is {_shown(found['surprise_of_the_same'], 2)}. {fresh:,} fresh stories of the law itself are "
        f"{_shown(found['excess_of_fresh_data'], 1)} nats unlikelier than data: the judge sees no excess where "
        "there is none."
    )


def tuning() -> str:
    """Short runs that chose batch and learning rate."""
    lines = [
        "| batch | learning rate | sequences | held-out NELBO, nats per token | above the first |",
        "|---" * 5 + "|",
    ]
    for run in load("stories/tuning.json")["runs"]:
        nelbo, above = _shown(run["nelbo_per_token"], 2), run["above_the_first"]
        shown = _shown(above, 2) if above["stderr"] else ""
        lines.append(f"| {run['batch']} | {run['learning_rate']:g} | {run['sequences']:,} | {nelbo} | {shown} |")
    return "\n".join(lines)


def limits() -> str:
    """Whether more data could have helped, and how the loss fell with the sequences that were seen."""
    found = load("stories/limits.json")
    data, hours, count = found["data"], found["hours"], found["provenance"]["settings"]["sequences"]
    seen = hours[-1]["sequences"]
    before = next(row for row in hours if row["sequences"] >= seen * 2 / 3)
    fell = before["nelbo_per_token"] - hours[-1]["nelbo_per_token"]
    return (
        f"On {count:,} sequences that `stories` learned from, its negative ELBO is {_shown(data['learned_from'], 2)} "
        f"nats per token above the law, on {count:,} others {_shown(data['others'], 2)}. The difference, "
        f"{_shown(data['difference'], 2)}, is what more data could bring at most. From {before['sequences']:,} to "
        f"{seen:,} sequences seen, while the learning rate fell, held-out data became cheaper by "
        f"{fell:.2f} nats per token."
    )


def _percent(share: dict[str, Any]) -> str:
    return f"{100 * share['mean']:.2f} ± {100 * share['stderr']:.2f} %"


def _shown(value: dict[str, Any], digits: int) -> str:
    return f"{value['mean']:.{digits}f} ± {value['stderr']:.{digits}f}"
