"""The paper's language protocol on a published checkpoint: generative perplexity under GPT-2 Large.

1,024 sequences of the model's length a cell, schedules measured on OpenWebText, perplexity in SEDD's and in MDLM's
convention, and beside it entropy and variety. It needs the hub (or folders of the same layout) and a large machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.provenance import save_results
from eigentime.report.quality import quality_figure
from eigentime.tasks.language_judges import language_judge, tokenizer_of
from eigentime.tasks.metrics import Estimate, distinct, over_sequences, sequence_entropy

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods"]
STEPS = [16, 32, 64, 128, 256, 512, 1024]
JUDGE, TOKENS = "gpt2-large", "gpt2"
BUDGET = 1024


def reproduce(
    out: Path,
    checkpoint: str,
    samples: int = 1024,
    steps: Sequence[int] = STEPS,
    strategies: Sequence[str] = STRATEGIES,
    sampler: str = "ancestral",
    judge: str = JUDGE,
    tokenizer: str = TOKENS,
    own_samples: bool = False,
    budget: int = BUDGET,
    jys_samples: int = api.JYS_SEQUENCES,
    trust_remote_code: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the strategies on a checkpoint; write published.json and published.png to `out`.

    tokenizer    of the checkpoint: a hub id or a folder
    own_samples  measure on the model's own samples in place of OpenWebText
    """
    check_figures()
    read, words = language_judge(judge), tokenizer_of(tokenizer)
    network = api.load(checkpoint, trust_remote_code=trust_remote_code)
    if len(words) > network.process.kernel.size:
        raise EigentimeError(
            f"{tokenizer} has {len(words)} tokens and {checkpoint} only {network.process.kernel.size}: name the "
            "checkpoint's own with --tokenizer."
        )
    out.mkdir(parents=True, exist_ok=True)
    if own_samples:
        clock = api.measure(network, "self", budget=budget, seed=seed, progress=progress)
        data = api.sample(network, api.schedule("uniform", steps=network.length, model=network), jys_samples, seed=seed)
    else:
        data = packed(openwebtext(), words, max(64, budget // 4), network.length)
        clock = api.measure(network, data, budget=budget, seed=seed, progress=progress)
    same_tokens = words.get_vocab() == read.tokenizer.get_vocab()

    def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
        found = {"perplexity_mdlm": read.perplexity(x, "mdlm", words.decode)}
        if same_tokens:
            found["perplexity_sedd"] = read.perplexity(x, "sedd")
        return found | {"entropy": over_sequences(sequence_entropy(x)), "distinct": distinct(x)}

    jys = (
        kept_jys(network, data[:jys_samples], None, max(steps), out / "jys.json", progress)
        if "jys" in strategies
        else None
    )
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
        seed=seed,
        metrics=metrics,
        keep=keep,
        progress=progress,
    )
    content = {
        "checkpoint": checkpoint,
        "judge": judge,
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
    save_figure(quality_figure({checkpoint: rows}, titles, {}), out / "published.png")
    keep.unlink(missing_ok=True)
    return content
