"""Where a command keeps what it has finished, so that the same command goes on after whatever has ended it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from eigentime.ranks import silent

Keep = Annotated[
    Path | None,
    typer.Option(
        help="A file for finished work, from which the same command goes on after an interruption. It stays; without, "
        "there is one beside the result until that is saved."
    ),
]


@contextmanager
def kept_beside(out: Path | None, keep: Path | None) -> Iterator[Path | None]:
    """The file for finished work: the one asked for, or one beside the result that goes when all is done."""
    path = keep or (None if out is None else out.with_name(f"{out.name}.partial"))
    try:
        yield path
    except KeyboardInterrupt:
        if not silent():
            kept = f"finished work is in {path}, and the same command goes on" if path else "with --keep it could go on"
            print(f"eigentime: Stopped; {kept}.", file=sys.stderr)
        sys.exit(130)
    if keep is None and path is not None and not silent():
        for part in path.parent.glob(f"{path.name}*"):
            part.unlink(missing_ok=True)
