"""`eigentime midi`: sampled tunes as MIDI files and a picture."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from eigentime.cli.options import console, read_array
from eigentime.data.folk import STEPS, SYMBOLS
from eigentime.data.midi import write_midi
from eigentime.errors import EigentimeError
from eigentime.files import make_folder
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.rolls import roll_figure
from eigentime.tasks.music import GIVEN

DRAWN = 8


def midi(
    tokens: Annotated[Path, typer.Argument(help="Tunes from `eigentime sample music --out tunes.npy`.")],
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("midi"),
) -> None:
    """Turn sampled tunes into MIDI files, with piano rolls of the first few.

    Example: eigentime sample music --num-samples 4 --out tunes.npy && eigentime midi tunes.npy
    """
    check_figures()
    tunes = read_array(tokens, "tokens")
    assert tunes is not None
    if (
        tunes.ndim != 2
        or not tunes.size
        or not np.issubdtype(tunes.dtype, np.integer)
        or tunes.min() < 0
        or tunes.max() >= SYMBOLS
    ):
        raise EigentimeError(f"{tokens} must hold tunes: integers from 0 to {SYMBOLS - 1} of shape (N, {STEPS}).")
    make_folder(out)
    for k, tune in enumerate(tunes):
        write_midi(out / f"{k}.mid", tune)
    save_figure(roll_figure({str(k): tune for k, tune in enumerate(tunes[:DRAWN])}, GIVEN), out / "rolls.png")
    console.print(f"Wrote {len(tunes)} MIDI files and rolls.png to {out}/.")
