"""`eigentime draw`: clean data of a task whose law is known."""

import io
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from eigentime.arguments import SEED, whole
from eigentime.cli.options import Seed, console
from eigentime.errors import EigentimeError
from eigentime.files import check_writable, write_atomically
from eigentime.report.progress import progress_bar
from eigentime.tasks import TASKS, LawTask

LAWS = {name: task for name, task in TASKS.items() if isinstance(task, LawTask)}


def draw(
    task: Annotated[str, typer.Argument(help=f"A task: {', '.join(LAWS)}.")],
    sequences: Annotated[int | None, typer.Option(help="How many (default: as many as training takes).")] = None,
    part: Annotated[str, typer.Option(help="training, validation or test: parts share no sequence.")] = "training",
    out: Annotated[Path | None, typer.Option(help="Also write them to this .npy file.")] = None,
    seed: Seed = 0,
) -> None:
    """Draw clean sequences from a task's law. Stop it at any moment; the same command goes on.

    Example: eigentime draw stories --part test --sequences 512 --out stories.npy
    """
    if task not in LAWS:
        raise EigentimeError(f"No law is known for {task!r}; one is for {', '.join(LAWS)}.")
    if out is not None:
        check_writable(out)
    chosen = LAWS[task]
    count = chosen.training_sequences if sequences is None else sequences
    whole(1)(count, "--sequences")
    SEED(seed, "--seed")
    try:
        with progress_bar(f"Drawing {task}") as advance:
            drawn = chosen.draw_part(part, count, seed, advance)
    except KeyboardInterrupt:
        console.print("Stopped. What was drawn of stories is kept; the same command goes on from there.")
        sys.exit(130)
    if out is not None:
        buffer = io.BytesIO()
        np.save(buffer, drawn.numpy())
        write_atomically(out, buffer.getvalue())
    where = f"; written to {out}" if out is not None else ""
    console.print(f"{count:,} sequences of {drawn.shape[1]} tokens, {part} part, seed {seed}{where}.")
