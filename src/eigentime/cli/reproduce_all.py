"""`eigentime reproduce all`: every experiment of the paper, and one page that shows them beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime.cli.options import Seed, console, read_list
from eigentime.cli.reproduce import binomial, countdown, dynamics, images, music
from eigentime.cli.reproduce_text import text
from eigentime.errors import EigentimeError
from eigentime.files import check_writable, write_atomically
from eigentime.report.paper import is_made, paper_page

EXPERIMENTS: dict[str, Callable[..., Any]] = {
    "binomial": binomial,
    "countdown": countdown,
    "dynamics": dynamics,
    "music": music,
    "images": images,
    "text": text,
}
"""In the order of their cost."""
SCALED = ("images", "text")
"""Those with a published scale of their own."""


def all_experiments(
    out: Annotated[Path, typer.Option(help="Folder for all results.")] = Path("results"),
    only: Annotated[str, typer.Option(help="Comma-separated, to leave the others out.")] = ",".join(EXPERIMENTS),
    full: Annotated[
        bool, typer.Option("--full", help="Images and text at the paper's scale: days, not hours.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Run every experiment of the paper, and write one page that shows its figures and claims beside ours. Interrupt
    it: the same command goes on, and what is finished is not made again.

    Example: eigentime reproduce all --only binomial,countdown
    """
    names = read_list(only, "only")
    for name in names:
        if name not in EXPERIMENTS:
            raise EigentimeError(f"Unknown experiment {name!r}; known are {', '.join(EXPERIMENTS)}.")
    page = out / "paper.html"
    out.mkdir(parents=True, exist_ok=True)
    check_writable(page)
    for name in names:
        if is_made(out, name):
            console.print(f"{name}: finished before; to make it again, move {out / name}/ away.")
            continue
        scale: dict[str, Any] = {"full": True} if full and name in SCALED else {}
        EXPERIMENTS[name](out=out / name, seed=seed, **scale)
        write_atomically(page, paper_page(out))
    write_atomically(page, paper_page(out))
    console.print(f"Wrote {page}: the paper's figures and claims beside ours. It opens offline.")
