"""Tunes on the grid of sixteenth notes as MIDI files, and back."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from eigentime.data.folk import REST, on_grid, symusic
from eigentime.errors import EigentimeError

TICKS, TEMPO, VELOCITY = 480, 120.0, 90


def write_midi(path: str | Path, tune: Integer[np.ndarray, " steps"]) -> None:
    """One track; equal neighbours are one held note."""
    library = symusic()
    score = library.Score(TICKS)
    score.tempos.append(library.Tempo(0, TEMPO))
    track = library.Track()
    changes = np.flatnonzero(np.diff(tune, prepend=-1))
    for start, stop in zip(changes, [*changes[1:], len(tune)], strict=True):
        if tune[start] != REST:
            step = TICKS // 4
            track.notes.append(library.Note(int(start) * step, int(stop - start) * step, int(tune[start]), VELOCITY))
    score.tracks.append(track)
    score.dump_midi(str(path))


def read_midi(path: str | Path) -> Integer[np.ndarray, " steps"]:
    """What sounds at the beginning of each sixteenth, the highest of notes that sound together."""
    try:
        score: Any = symusic().Score(str(path))
        return on_grid(score)
    except EigentimeError as error:
        raise EigentimeError(f"{path} cannot be used: {error}.") from None
    except (RuntimeError, ValueError, OSError) as error:
        detail = (str(error).splitlines() or ["not a MIDI file"])[0]
        raise EigentimeError(f"{path} cannot be read as MIDI ({detail}).") from None
