"""`eigentime reproduce text` and `choosing`: the language experiment, here and on published checkpoints."""

import time
from pathlib import Path
from typing import Annotated

import typer

from eigentime.api import JYS_SEQUENCES
from eigentime.cli.options import Seed, console, read_list, read_numbers
from eigentime.cli.reproduce import Out
from eigentime.errors import EigentimeError
from eigentime.experiments import choosing as choosing_experiment
from eigentime.experiments import published_text as published_experiment
from eigentime.experiments import text as text_experiment
from eigentime.report.tables import comparison_tables
from eigentime.tasks import EXACT, MODELS


def text(
    out: Out = None,
    models: Annotated[
        str, typer.Option(help="Bundled models of text, comma-separated; the language model judges the first network.")
    ] = ",".join(text_experiment.MODELS_SHOWN),
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
    tokenizer: Annotated[str, typer.Option(help="Of the checkpoint.")] = published_experiment.TOKENS,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence, where the checkpoint takes any number (LLaDA, Dream).")
    ] = None,
    sampler: Annotated[str, typer.Option(help="For the checkpoint.")] = "ancestral",
    own_samples: Annotated[
        bool, typer.Option("--own-samples", help="Measure the checkpoint on its own samples, not on OpenWebText.")
    ] = False,
    mauve: Annotated[bool, typer.Option("--mauve", help="Also MAUVE on the judge's features.")] = False,
    budget: Annotated[int, typer.Option(help="Network evaluations for each clock.")] = text_experiment.BUDGET,
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
    if samples is not None and samples < 4:
        raise EigentimeError(f"--samples must be at least 4, not {samples}.")
    if checkpoint is not None and (full or judge == "none"):
        raise EigentimeError("--checkpoint runs the published protocol: leave out --full, and name a judge.")
    if checkpoint is None and (own_samples or trust_remote_code or mauve or length is not None):
        raise EigentimeError("--length, --own-samples, --trust-remote-code and --mauve go with --checkpoint.")
    began = time.perf_counter()
    if checkpoint is not None:
        place = out or Path("results/published-text")
        content = published_experiment.reproduce(
            place,
            checkpoint,
            samples=samples or 1024,
            steps=read_numbers(steps, "steps") if steps else published_experiment.STEPS,
            sampler=sampler,
            judge=judge or published_experiment.JUDGE,
            tokenizer=tokenizer,
            length=length,
            jys_samples=jys_samples or JYS_SEQUENCES,
            own_samples=own_samples,
            with_mauve=mauve,
            budget=budget,
            trust_remote_code=trust_remote_code,
            seed=seed,
            progress=True,
        )
        console.print(f"Judge: {content['judge']}")
        console.print(*comparison_tables(content["rows"], "perplexity_mdlm", "entropy_gap"))
        console.print(f"Saved published.json and published.png in {place}/ after {time.perf_counter() - began:.0f} s.")
        return
    place = out or Path("results/text")
    counts = text_experiment.STEPS
    if full:
        counts = [*counts, 128, 256, 512, 1024]
    if steps:
        counts = read_numbers(steps, "steps")
    names = read_list(models, "models")
    text_experiment.check_request(names, counts)
    read = next((name for name in names if name not in EXACT), None)
    for model in names:
        reader = None if model != read or judge == "none" else judge or "smollm2"
        content = text_experiment.reproduce(
            place,
            model=model,
            samples=samples or (512 if full else 64),
            steps=counts,
            judge=reader,
            budget=budget,
            jys_samples=jys_samples or text_experiment.JYS_SAMPLES,
            seed=seed,
            progress=True,
        )
        task = MODELS[model]
        console.print(f"[bold]{model}[/]")
        console.print(*comparison_tables(content["rows"], task.fidelity, task.diversity))
    console.print(f"Saved results, figures and samples in {place}/ after {time.perf_counter() - began:.0f} s.")


def choosing(
    out: Out = None,
    models: Annotated[str, typer.Option(help="Bundled masked networks, comma-separated.")] = ",".join(
        choosing_experiment.MODELS_SHOWN
    ),
    samples: Annotated[int, typer.Option(help="Sequences a cell.")] = 32,
    steps: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(map(str, choosing_experiment.STEPS)),
    budget: Annotated[int, typer.Option(help="Network evaluations for each clock.")] = 1024,
    seed: Seed = 0,
) -> None:
    """Samplers that choose which tokens to reveal, with every schedule. Interrupt it; the same command goes on.

    Example: eigentime reproduce choosing --models countdown
    """
    if samples < 4:
        raise EigentimeError(f"--samples must be at least 4, not {samples}.")
    place, began = out or Path("results/choosing"), time.perf_counter()
    choosing_experiment.reproduce(
        place, read_list(models, "models"), samples, read_numbers(steps, "steps"), budget, seed, progress=True
    )
    console.print(f"Saved results and choosing.png in {place}/ after {time.perf_counter() - began:.0f} s.")
