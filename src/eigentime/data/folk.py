"""Monophonic music on a grid of sixteenth notes: folk tunes from the music21 corpora, or arrays in a folder.

A tune is a row of tokens, one for each sixteenth: the pitch that sounds (0 … 127), or 128 for a rest.
"""

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer

from eigentime.data.packages import Package, cache_folder, fetch, say
from eigentime.errors import EigentimeError
from eigentime.reading import Unreadable, read_npy, read_text

MUSIC21 = Package(
    "music21",
    "10.5.1",
    "music21-10.5.1-py3-none-any.whl",
    "dc3309498c4c95cebdf8d4f20c868deb6b63bce1d929cad4f51a7ccc982987b1",
    "folk tunes",
)
COLLECTIONS = ("ryansMammoth", "oneills1850", "airdsAirs")
"""Free to use; essenFolksong is not for commercial use and therefore left out."""
STEPS, REST, SYMBOLS = 256, 128, 129
TEST_SHARE = 10
"""Every tenth tune is held out."""


@dataclass(frozen=True)
class Tunes:
    """Tunes as rows of pitches, some to train on and some held out."""

    training: list[Integer[np.ndarray, " steps"]]
    test: list[Integer[np.ndarray, " steps"]]
    skipped: list[str]
    """Names of those that could not be read."""


def folk_tunes(collections: Sequence[str] = COLLECTIONS) -> Tunes:
    """All tunes of the collections; parsed once (about half a minute) and kept in the cache folder."""
    kept = cache_folder() / f"folk-{MUSIC21.version}-{'-'.join(collections)}.npz"
    if not kept.exists():
        names, rows, skipped = _parse(fetch(MUSIC21), collections)
        with kept.with_suffix(".partial").open("wb") as file:
            np.savez_compressed(
                file,
                names=np.array(names),
                tokens=np.concatenate(rows),
                lengths=[len(row) for row in rows],
                skipped=np.array(skipped, dtype=str),
            )
        os.replace(kept.with_suffix(".partial"), kept)
    try:
        with np.load(kept) as content:
            rows = np.split(content["tokens"], np.cumsum(content["lengths"])[:-1])
            skipped = content["skipped"].tolist()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise EigentimeError(f"{kept} is damaged; delete it and try again.") from None
    say(f"{len(rows):,} folk tunes from the package {MUSIC21.name} {MUSIC21.version}, {len(skipped)} skipped")
    training = [row for k, row in enumerate(rows) if k % TEST_SHARE]
    return Tunes(training, rows[::TEST_SHARE], skipped)


def read_abc(text: str) -> Integer[np.ndarray, " steps"]:
    """The pitches of a tune in ABC notation; repeats are played."""
    return on_grid(symusic().Score.from_abc(text))


def on_grid(score: Any) -> Integer[np.ndarray, " steps"]:
    """What sounds at the beginning of each sixteenth; of notes that sound together the highest."""
    notes = [note for track in score.tracks for note in track.notes]
    sixteenth = score.ticks_per_quarter / 4
    if not notes:
        raise EigentimeError("it has no notes")
    row = np.full(max(round(note.end / sixteenth) for note in notes), REST, dtype=np.int64)
    for note in sorted(notes, key=lambda note: note.pitch):
        row[round(note.start / sixteenth) : round(note.end / sixteenth)] = note.pitch
    return row


def windows(rows: Sequence[Integer[np.ndarray, " steps"]], stride: int = STEPS) -> Integer[np.ndarray, "n 256"]:
    """Stretches of 256 steps that begin every `stride` steps."""
    cut = [row[k : k + STEPS] for row in rows for k in range(0, len(row) - STEPS + 1, stride)]
    return np.stack(cut) if cut else np.zeros((0, STEPS), dtype=np.int64)


def transposed(tokens: Integer[np.ndarray, "n steps"], by: int) -> Integer[np.ndarray, "n steps"]:
    """Up by so many semitones; rests stay."""
    moved = np.where(tokens == REST, REST, tokens + by)
    if moved.min() < 0 or (moved[tokens != REST] >= REST).any():
        raise EigentimeError(f"Transposing by {by} semitones leaves the range of pitches.")
    return moved


def read_folder(folder: str | Path) -> tuple[Integer[np.ndarray, "n 256"], Integer[np.ndarray, "m 256"]]:
    """`train.npy` and `test.npy` of shape (N, 256) with values 0 … 128, as tauLDR prepared the Lakh pianoroll.

    A `descramble_key.txt` beside them turns their scrambled tokens into pitches: line k says which note token k is.
    """
    folder = Path(folder)
    parts = [_read_array(folder / file) for file in ("train.npy", "test.npy")]
    key_file = folder / "descramble_key.txt"
    if key_file.exists():
        try:
            key = np.array(read_text(key_file).split(), dtype=np.int64)
        except (ValueError, OverflowError):
            raise EigentimeError(f"{key_file} must hold {SYMBOLS} integers, one for each token.") from None
        if len(key) != SYMBOLS or sorted(key.tolist()) != list(range(SYMBOLS)):
            raise EigentimeError(f"{key_file} must be a rearrangement of 0 … {SYMBOLS - 1}.")
        parts = [key[part] for part in parts]
    return parts[0], parts[1]


def _read_array(path: Path) -> Integer[np.ndarray, "n 256"]:
    try:
        array = read_npy(path)
    except FileNotFoundError:
        raise EigentimeError(f"{path} is missing: a folder of music holds train.npy and test.npy.") from None
    except Unreadable as error:
        raise EigentimeError(f"{path} is not a NumPy array file ({error}).") from None
    if array.ndim != 2 or array.shape[1] != STEPS or not len(array):
        raise EigentimeError(f"{path} must have the shape (N, {STEPS}), not {array.shape}.")
    numbers = np.issubdtype(array.dtype, np.number) and not np.iscomplexobj(array)
    if not numbers or not np.array_equal(array, array.astype(np.int64)) or array.min() < 0 or array.max() >= SYMBOLS:
        raise EigentimeError(f"{path} must hold integers from 0 to {SYMBOLS - 1}.")
    return np.asarray(array.astype(np.int64))


def _parse(wheel: Path, collections: Sequence[str]) -> tuple[list[str], list[Any], list[str]]:
    names, rows, skipped = [], [], []
    with zipfile.ZipFile(wheel) as archive, _silence():
        for file in sorted(archive.namelist()):
            parts = Path(file).parts
            if len(parts) != 4 or parts[2] not in collections or not file.endswith(".abc"):
                continue
            text = archive.read(file).decode("utf-8", "replace")
            for number, tune in enumerate(re.split(r"(?m)^(?=X:)", text)[1:]):
                name = f"{parts[2]}/{parts[3]}#{number}"
                try:
                    rows.append(read_abc(tune))
                    names.append(name)
                except (EigentimeError, RuntimeError, ValueError):
                    skipped.append(name)
    if not rows:
        raise EigentimeError(f"{wheel} holds no tunes of {', '.join(collections)}.")
    return names, rows, skipped


def symusic() -> Any:
    """The library that reads and writes scores, if it is there."""
    try:
        import symusic
    except ImportError:
        raise EigentimeError("Music needs symusic: pip install 'eigentime[music]'.") from None
    return symusic


@contextmanager
def _silence() -> Iterator[None]:
    """The ABC reader warns on the C level, past Python's own streams."""
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)
