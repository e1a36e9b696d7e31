"""`eigentime reproduce mnist`: schedules, plans and orders on digits that one can see."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from eigentime.api import JYS_SEQUENCES
from eigentime.cli.options import Seed, console, read_numbers
from eigentime.cli.reproduce import Out
from eigentime.experiments.mnist import METRICS, Mnist, by_line


def mnist(
    out: Out = None,
    model: Annotated[str, typer.Option(help="mnist, or mnist-uniform for schedules without masks.")] = Mnist.model,
    images: Annotated[int, typer.Option(help="Pictures per cell.")] = Mnist.images,
    steps: Annotated[str, typer.Option(help="Comma-separated powers of two.")] = ",".join(map(str, Mnist.steps)),
    held_out: Annotated[int, typer.Option(help="Test pictures that are followed with every sampler.")] = Mnist.held_out,
    budget: Annotated[
        int, typer.Option(help="Network evaluations for the clock, and again for every order.")
    ] = Mnist.budget,
    jys_samples: Annotated[int, typer.Option(help="Pictures that JYS looks at.")] = JYS_SEQUENCES,
    quick: Annotated[bool, typer.Option("--quick", help="64 pictures per cell, 8 to 32 evaluations.")] = False,
    seed: Seed = 0,
) -> None:
    """Draw digits with every schedule, plan and order. Interrupt it; the same command goes on.

    Example: eigentime reproduce mnist --quick
    """
    place, began = out or Path("results/mnist"), time.perf_counter()
    counts = read_numbers(steps, "steps")
    if quick:
        images, counts, held_out, budget, jys_samples = 64, [8, 16, 32], 16, 256, 16
    experiment = Mnist(
        model=model,
        images=images,
        steps=counts,
        held_out=held_out,
        budget=budget,
        jys_samples=jys_samples,
        seed=seed,
    )
    content = experiment.run(place, progress=True)
    rows = {(row["strategy"], row["steps"]): row["metrics"] for row in by_line(content["rows"])}
    for metric, title in METRICS.items():
        found = {cell: metrics[metric]["mean"] for cell, metrics in rows.items() if metric in metrics}
        if not found:
            continue
        table = Table(title, *(f"{count} NFE" for count in sorted(counts)))
        for line in dict.fromkeys(line for line, _ in found):
            table.add_row(line, *(f"{found[line, count]:.3g}" for count in sorted(counts)))
        console.print(table)
    console.print(
        f"{images} real pictures: Fréchet distance {content['real']['frechet_small']['mean']:.2f}, unsure "
        f"{content['real']['unsure']['mean']:.3f}. Saved {model}.json and its pictures in {place}/ after "
        f"{time.perf_counter() - began:.0f} s."
    )
