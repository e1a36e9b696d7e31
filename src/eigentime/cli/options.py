"""Options that commands share, and how their values are read."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from eigentime.arguments import place
from eigentime.errors import EigentimeError
from eigentime.reading import Unreadable, read_npy
from eigentime.report.provenance import jsonable
from eigentime.report.terminal import Terminal
from eigentime.samplers import SAMPLERS

console = Terminal()

Kernel = Annotated[
    str | None, typer.Option(help="Kernel of an exact model, absorbing or uniform; a trained network has its own.")
]
Device = Annotated[str | None, typer.Option(help="Where a network runs, such as cuda or mps (default: the CPU).")]
Precision = Annotated[str | None, typer.Option(help="What it computes in: float32, float16 or bfloat16.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Sampler = Annotated[str, typer.Option(help=f"{', '.join(SAMPLERS)}.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Clean sequences, an integer array (N, L) in a .npy file. Exact models draw their own."),
]


Length = Annotated[int | None, typer.Option(help="Tokens of a sequence, for language models that take any number.")]
Trust = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run Python code that comes with a checkpoint; nothing does else.")
]


def read_array(path: Path | None, what: str) -> np.ndarray | None:
    """An array from a .npy file, never a pickle."""
    if path is None:
        return None
    place(path, f"The {what} file")
    try:
        return read_npy(path)
    except FileNotFoundError:
        raise EigentimeError(f"There is no {what} file {path}.") from None
    except Unreadable as error:
        raise EigentimeError(f"{path} is not a .npy array ({error}).") from None


def read_list(text: str, what: str) -> list[str]:
    """Comma-separated words."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise EigentimeError(f"--{what} needs at least one entry, such as --{what} 2,4,8.")
    return words


def read_numbers(text: str, what: str) -> list[int]:
    """Comma-separated whole numbers."""
    try:
        return [int(word) for word in read_list(text, what)]
    except ValueError:
        raise EigentimeError(f"--{what} takes whole numbers such as 2,4,8, not {text!r}.") from None


def print_json(value: Any) -> None:
    """JSON on standard output; infinite and undefined numbers become strings that JSON can hold."""
    print(json.dumps(jsonable(value), indent=1))
