"""`eigentime merge`: one clock of the sequences that several have seen."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime import api
from eigentime.cli.measure import describe
from eigentime.cli.options import Json, console, print_json
from eigentime.files import check_writable
from eigentime.measure import Clock


def merge(
    clocks: Annotated[
        list[Path], typer.Argument(help="Files from `eigentime measure`, such as shards and their pilot.")
    ],
    out: Annotated[Path, typer.Option(help="Where to save the clock of all.")],
    json: Json = False,
) -> None:
    """Add clocks up that were measured in parts. Refuses parts of something else, and sequences that were seen twice.

    Example: eigentime merge pilot.safetensors part-*.safetensors --out clock.safetensors
    """
    check_writable(out)
    merged = api.merge([Clock.load(path) for path in clocks])
    summary = describe(merged)
    merged.save(out)
    if json:
        print_json({"file": str(out), **summary})
        return
    console.print(f"{len(clocks)} clocks of [bold]{merged.model}[/], {merged.evaluations:,} sequence evaluations.")
    console.print(f"Saved to {out}.")
