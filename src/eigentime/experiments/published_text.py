"""The paper's language protocol on a published checkpoint: generative perplexity under GPT-2 Large.

1,024 sequences of the model's length a cell, schedules measured on OpenWebText, perplexity in SEDD's and in MDLM's
convention, and beside it entropy and variety. It needs the hub (or folders of the same layout) and a large machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.data.openwebtext import openwebtext, packed
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.dynamics import four_curves
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.speedup import speedups
from eigentime.measure.curves import default_times
from eigentime.models import Model
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.kept import remembered
from eigentime.report.provenance import save_results
from eigentime.report.quality import quality_figure
from eigentime.samplers import make_sampler
from eigentime.schedules import check_steps
from eigentime.tasks.language_judges import language_judge, mauve, tokenizer_of
from eigentime.tasks.metrics import Estimate, distinct_grams, of_the_whole, over_sequences, sequence_entropy

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods"]
STEPS = [16, 32, 64, 128, 256, 512, 1024]
JUDGE, TOKENS = "gpt2-large", "gpt2"
BUDGET = 1024
GRAM = 3
"""Tokens in the strings that are counted for variety."""


def reproduce(
    out: Path,
    checkpoint: str,
    samples: int = 1024,
    steps: Sequence[int] = STEPS,
    strategies: Sequence[str] = STRATEGIES,
    sampler: str = "ancestral",
    judge: str = JUDGE,
    tokenizer: str = TOKENS,
    length: int | None = None,
    own_samples: bool = False,
    with_mauve: bool = False,
    budget: int = BUDGET,
    jys_samples: int = api.JYS_SEQUENCES,
    trust_remote_code: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the strategies on a checkpoint; write published.json and published.png to `out`.

    tokenizer    of the checkpoint: a hub id or a folder
    length       tokens of a sequence, for a checkpoint that takes any number
    own_samples  measure on the model's own samples in place of OpenWebText
    with_mauve   also MAUVE between samples and data, on the judge's features
    """
    check_figures()
    for count in steps:
        check_steps(count)
        if "jys" in strategies and count & (count - 1):
            raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
    if not make_sampler(sampler).scheduled:
        raise EigentimeError(f"{sampler} takes no schedule, so there is nothing to compare.")
    read, words = language_judge(judge), tokenizer_of(tokenizer)
    network = api.load(checkpoint, length=length, trust_remote_code=trust_remote_code)
    if not len(network.process.kernel.values) / 2 <= len(words) <= len(network.process.kernel.values):
        raise EigentimeError(
            f"{tokenizer} has {len(words)} tokens and {checkpoint} {len(network.process.kernel.values)}: name the "
            "checkpoint's own with --tokenizer."
        )
    out.mkdir(parents=True, exist_ok=True)
    count = max(64, budget // 4)
    if own_samples:
        data = _own_samples(network, count, seed, out / "own-samples.json", progress)
    else:
        data = packed(openwebtext(), words, count, network.length)
    clock = api.measure(network, data, budget=budget, seed=seed, progress=progress)
    same_tokens = words.get_vocab() == read.tokenizer.get_vocab()
    level = sequence_entropy(data).mean().item()
    real = read.features(list(map(words.decode, data.tolist()))) if with_mauve else None

    def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
        entropy = sequence_entropy(x)
        found = {"perplexity_mdlm": read.perplexity(x, "mdlm", words.decode)}
        if same_tokens:
            found["perplexity_sedd"] = read.perplexity(x, "sedd")
        if real is not None:
            found["mauve"] = Estimate(
                mauve(read.features(list(map(words.decode, x.tolist()))), real, seed), float("nan")
            )
        return found | {
            "entropy": over_sequences(entropy),
            "entropy_gap": of_the_whole(entropy, lambda part: abs(part.mean().item() - level)),
            "distinct": distinct_grams(x, GRAM),
        }

    jys = None
    if "jys" in strategies:
        jys = kept_jys(network, clock, data[:jys_samples], None, steps, out / "jys.json", progress)
    keep = out / "published.partial.json"
    rows = compare(
        network,
        strategies,
        steps,
        samples=samples,
        sampler=sampler,
        clock=clock,
        data=data,
        jys=jys,
        jys_samples=jys_samples,
        seed=seed,
        metrics=metrics,
        keep=keep,
        made_with={"judge": judge, "tokenizer": tokenizer, "length": length, "mauve": with_mauve},
        progress=progress,
    )
    content = {
        "checkpoint": checkpoint,
        "judge": judge,
        "data": "own samples" if own_samples else "OpenWebText",
        "data_entropy": level,
        "samples": samples,
        "evaluations": clock.evaluations,
        "rows": rows,
        "speedup": speedups(rows, "perplexity_mdlm", seed),
        "dynamics": {name: vars(found) for name, found in four_curves(clock, default_times(128)).items()},
    }
    save_results(out / "published.json", content, samples=samples, budget=budget, sampler=sampler, seed=seed)
    titles = {
        name: f"generative perplexity, {judge} ({name.removeprefix('perplexity_').upper()}'s convention)"
        for name in rows[0]["metrics"]
        if name.startswith("perplexity")
    }
    titles["entropy"] = "entropy of a sequence's tokens, nats"
    save_figure(quality_figure({checkpoint: rows}, titles, {"entropy": {"data": level}}), out / "published.png")
    keep.unlink(missing_ok=True)
    return content


def _own_samples(model: Model, count: int, seed: int, path: Path, progress: bool) -> Int[Tensor, "n length"]:
    """Samples of as many steps as the model has tokens, drawn once: the costliest part of a run without data."""

    def make() -> dict[str, Any]:
        many = api.schedule("uniform", steps=model.length, model=model)
        return {"tokens": api.sample(model, many, count, seed=seed, progress=progress).tolist()}

    return torch.tensor(remembered(path, repr((model.name, model.length, count, seed)), make)["tokens"])
