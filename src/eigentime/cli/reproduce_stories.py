"""`eigentime reproduce stories`: every way of sampling, judged by the true law of the text."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from eigentime.cli.options import Seed, console, read_numbers
from eigentime.experiments.stories import STEPS, StoryTelling
from eigentime.report.stories import PANELS, evaluations_of, line_of

QUICK_STEPS, QUICK_SAMPLES, QUICK_BUDGET, QUICK_JYS = (4, 8, 16), 12, 128, 4


def stories(
    out: Annotated[Path | None, typer.Option(help="Folder for results and figures (default: results/stories).")] = None,
    network: Annotated[
        str, typer.Option(help="stories (MDLM), or with schedules only stories-sedd or stories-uniform.")
    ] = "stories",
    samples: Annotated[
        int, typer.Option(help="Samples per cell, and as many sequences of data; half from 64 evaluations on.")
    ] = StoryTelling.samples,
    steps: Annotated[str, typer.Option(help="Comma-separated powers of two, in the order to make them.")] = ",".join(
        map(str, STEPS)
    ),
    quick: Annotated[bool, typer.Option("--quick", help="12 samples per cell, 4 to 16 evaluations.")] = False,
    seed: Seed = 0,
) -> None:
    """Stories with every schedule, judged by their true law. Interrupt it; the same command goes on.

    Example: eigentime reproduce stories --quick
    """
    folder, began = out or Path("results/stories-quick" if quick else "results/stories"), time.perf_counter()
    if quick:
        experiment = StoryTelling(
            network=network,
            samples=QUICK_SAMPLES,
            steps=QUICK_STEPS,
            budget=QUICK_BUDGET,
            jys_samples=QUICK_JYS,
            seed=seed,
        )
    else:
        experiment = StoryTelling(network=network, samples=samples, steps=read_numbers(steps, "steps"), seed=seed)
    content = experiment.run(folder, progress=True)
    counts = sorted(experiment.steps)
    for metric, title in PANELS.items():
        cells = {
            (line_of(row), evaluations_of(row)): row["metrics"][metric]
            for row in content["rows"]
            if metric in row["metrics"]
        }
        if cells:
            table = Table(title, *map(str, counts))
            for line in dict.fromkeys(line for line, _ in cells):
                values = [cells.get((line, count)) for count in counts]
                table.add_row(line, *("" if v is None else f"{v['mean']:.4g} ± {v['stderr']:.2g}" for v in values))
            console.print(table)
    console.print(f"Saved {network}.json, figures and side-by-side pages in {folder}/ after {_since(began)}.")


def _since(began: float) -> str:
    return f"{(time.perf_counter() - began) / 60:.0f} min"
