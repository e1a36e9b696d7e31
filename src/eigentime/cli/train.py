"""`eigentime train`: train one of the small networks, or go on with a run that was stopped."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime import api
from eigentime.cli.options import console
from eigentime.errors import EigentimeError
from eigentime.models.trained import Trained
from eigentime.report.progress import progress_bar
from eigentime.tasks import RECIPES
from eigentime.training import train as run_recipe
from eigentime.training.loop import Interrupted

RECIPE = f"A recipe: {', '.join(RECIPES)}."


def train(
    recipe: Annotated[str, typer.Argument(help=RECIPE)],
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: training/RECIPE).")] = None,
    steps: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    batch: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    width: Annotated[
        int | None, typer.Option(help="Of the network, instead of the recipe's (images: published 128).")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Instead of the recipe's.")] = None,
    start_from: Annotated[str | None, typer.Option(help="A model name or folder to start from.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same weights.")] = None,
) -> None:
    """Train a network. Stop it at any moment; the same command goes on and reaches the same weights.

    Example: eigentime train countdown --steps 2000 --out my-run
    """
    if recipe not in RECIPES:
        raise EigentimeError(f"Unknown recipe {recipe!r}; known are {', '.join(RECIPES)}.")
    task, described = RECIPES[recipe]
    changes: dict[str, Any] = {
        "steps": steps,
        "batch": batch,
        "learning_rate": learning_rate,
        "start_from": start_from,
        "seed": seed,
    }
    described = dataclasses.replace(described, **{key: value for key, value in changes.items() if value is not None})
    if width is not None:
        if width < 8:
            raise EigentimeError(f"--width must be at least 8, not {width}.")
        described = dataclasses.replace(described, network=dataclasses.replace(described.network, width=width))
    folder = out or Path("training") / recipe
    start = None
    if described.start_from is not None:
        loaded = api.load(described.start_from)
        if not isinstance(loaded, Trained):
            raise EigentimeError(f"{described.start_from} is not a trained network, so nothing can start from it.")
        start = loaded.network
    data, held_out = task.training_data(described.seed, described.sequences)
    with progress_bar(f"Training {recipe}") as advance:

        def told(step: int, total: int, latest: dict[str, float]) -> None:
            note = f"nelbo {latest['nelbo']:.2f}" if "nelbo" in latest else f"loss {latest['loss']:.2f}"
            advance(step, total, note)

        try:
            trained = run_recipe(described, data, held_out, folder, start=start, advance=told)
        except Interrupted:
            console.print(f"Stopped; everything is saved in {folder}/. The same command goes on from there.")
            sys.exit(130)
    final = trained.about["log"]
    console.print(
        f"Trained {recipe} in {trained.about['seconds'] / 60:.0f} min: negative ELBO {final['nelbo']:.2f} ± "
        f"{final['stderr']:.2f} nats per sequence. Use it: et.load({str(folder)!r})."
    )
