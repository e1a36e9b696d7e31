"""`eigentime reproduce text` and `choosing`: the language experiment, here and on published checkpoints."""

import time
from pathlib import Path
from typing import Annotated

import typer

from eigentime.api import JYS_SEQUENCES
from eigentime.cli.options import Seed, console, read_list, read_numbers
from eigentime.cli.reproduce import Out
from eigentime.errors import EigentimeError
from eigentime.experiments.choosing import MODELS_SHOWN as CHOOSING
from eigentime.experiments.choosing import Choosing
from eigentime.experiments.published_text import PublishedText
from eigentime.experiments.text import MODELS_SHOWN, Text
from eigentime.report.tables import comparison_tables
from eigentime.tasks import EXACT, MODELS


def text(
    out: Out = None,
    models: Annotated[
        str, typer.Option(help="Bundled models of text, comma-separated; the language model judges the first network.")
    ] = ",".join(MODELS_SHOWN),
    samples: Annotated[int | None, typer.Option(help="Sequences a cell (default: 64; --full 512).")] = None,
    steps: Annotated[str | None, typer.Option(help="Comma-separated powers of two (default: 2 … 64).")] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="A language model: smollm2, a folder, a hub id, or none (default: smollm2, or gpt2-large)."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Up to 1,024 evaluations.")] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="The published protocol on this: louaaron/sedd-small, kuleshov-group/mdlm-owt, a folder …"),
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="Of the checkpoint.")] = PublishedText.tokenizer,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence, where the checkpoint takes any number (LLaDA, Dream).")
    ] = None,
    sampler: Annotated[str, typer.Option(help="For the checkpoint.")] = "ancestral",
    own_samples: Annotated[
        bool, typer.Option("--own-samples", help="Measure the checkpoint on its own samples, not on OpenWebText.")
    ] = False,
    mauve: Annotated[bool, typer.Option("--mauve", help="Also MAUVE on the judge's features.")] = False,
    budget: Annotated[int, typer.Option(help="Network evaluations for each clock.")] = Text.budget,
    jys_samples: Annotated[
        int | None, typer.Option(help="Sequences that JYS looks at (default: 32; 64 with --checkpoint).")
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run the Python code that comes with the checkpoint.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Sample text with every schedule. Interrupt it; the same command goes on.

    Example: eigentime reproduce text --checkpoint louaaron/sedd-small --judge gpt2-large
    """
    if checkpoint is not None and (full or judge == "none"):
        raise EigentimeError("--checkpoint runs the published protocol: leave out --full, and name a judge.")
    if checkpoint is None and (own_samples or trust_remote_code or mauve or length is not None):
        raise EigentimeError("--length, --own-samples, --trust-remote-code and --mauve go with --checkpoint.")
    began = time.perf_counter()
    if checkpoint is not None:
        place = out or Path("results/published-text")
        published = PublishedText(
            checkpoint=checkpoint,
            samples=PublishedText.samples if samples is None else samples,
            steps=read_numbers(steps, "steps") if steps else PublishedText.steps,
            sampler=sampler,
            judge=judge or PublishedText.judge,
            tokenizer=tokenizer,
            length=length,
            jys_samples=jys_samples or JYS_SEQUENCES,
            own_samples=own_samples,
            with_mauve=mauve,
            budget=budget,
            trust_remote_code=trust_remote_code,
            seed=seed,
        )
        content = published.run(place, progress=True)
        console.print(f"Judge: {content['judge']}")
        console.print(*comparison_tables(content["rows"], "perplexity_mdlm", "entropy_gap"))
        console.print(f"Saved published.json and published.png in {place}/ after {time.perf_counter() - began:.0f} s.")
        return
    place = out or Path("results/text")
    counts = [*Text.steps, *((128, 256, 512, 1024) if full else ())]
    if steps:
        counts = read_numbers(steps, "steps")
    names = read_list(models, "models")
    read = next((name for name in names if name not in EXACT), None)
    experiments = [
        Text(
            model=model,
            samples=(512 if full else Text.samples) if samples is None else samples,
            steps=counts,
            judge=None if model != read or judge == "none" else judge or "smollm2",
            budget=budget,
            jys_samples=jys_samples or Text.jys_samples,
            seed=seed,
        )
        for model in names
    ]
    for experiment in experiments:  # refused before anything is spent
        experiment.check()
    for model, experiment in zip(names, experiments, strict=True):
        content = experiment.run(place, progress=True)
        task = MODELS[model]
        console.print(f"[bold]{model}[/]")
        console.print(*comparison_tables(content["rows"], task.fidelity, task.diversity))
    console.print(f"Saved results, figures and samples in {place}/ after {time.perf_counter() - began:.0f} s.")


def choosing(
    out: Out = None,
    models: Annotated[str, typer.Option(help="Bundled masked networks, comma-separated.")] = ",".join(CHOOSING),
    samples: Annotated[int | None, typer.Option(help="Sequences a cell, instead of the domain's.")] = None,
    sequences: Annotated[int | None, typer.Option(help="Held-out sequences, instead of the domain's.")] = None,
    steps: Annotated[str | None, typer.Option(help="Comma-separated, instead of the domain's.")] = None,
    budget: Annotated[int | None, typer.Option(help="Network evaluations for each clock.")] = None,
    seed: Seed = 0,
) -> None:
    """Samplers that choose which tokens to reveal, with every schedule. Interrupt it; the same command goes on.

    Example: eigentime reproduce choosing --models countdown
    """
    place, began = out or Path("results/choosing"), time.perf_counter()
    counts = read_numbers(steps, "steps") if steps else None
    experiments = [
        Choosing(model=model, samples=samples, sequences=sequences, steps=counts, budget=budget, seed=seed)
        for model in read_list(models, "models")
    ]
    for experiment in experiments:  # refused before anything is spent
        experiment.check()
    for experiment in experiments:
        content = experiment.run(place, progress=True)
        ranks = content["agreement"]
        console.print(
            f"{experiment.model}: rank correlation of forward and reverse nats with {content['fidelity']} over "
            f"{ranks['rows']} ways of sampling: {ranks['forward']:.2f} and {ranks['reverse']:.2f}."
        )
    console.print(f"Saved results and choosing.png in {place}/ after {time.perf_counter() - began:.0f} s.")
