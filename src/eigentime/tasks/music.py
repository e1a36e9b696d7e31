"""Monophonic music: 256 sixteenth notes of 129 symbols; two bars are given and fourteen generated."""

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from eigentime.data.folk import STEPS, SYMBOLS, Tunes, folk_tunes, read_folder, transposed, windows
from eigentime.data.packages import own_folder
from eigentime.models.ddit import DDiTConfig
from eigentime.process import Linear, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole, over_sequences
from eigentime.tasks.task import DataTask, kernel_over
from eigentime.training import Recipe

GIVEN = 32
STRIDE, KEYS = 16, (-2, -1, 0, 1, 2)
"""Training windows begin at every bar and are played in these keys."""
NOISE_AT_END = 0.03 * SYMBOLS
"""tauLDR's rate: 0.03 to every other symbol, constant in time."""


def process(kernel: str) -> Process:
    """tauLDR's time-homogeneous noise, σ = 3.87·t."""
    return Process(kernel_over(SYMBOLS, kernel), Linear(0.0, NOISE_AT_END))


@cache
def _tunes() -> Tunes:
    return folk_tunes()


@cache
def training() -> Integer[Tensor, "n 256"]:
    """Windows of the training tunes in all keys, or $EIGENTIME_DATA/music."""
    folder = own_folder("music")
    if folder is not None:
        return torch.from_numpy(read_folder(folder)[0]).to(torch.int16)
    cut = windows(_tunes().training, STRIDE)
    return torch.from_numpy(np.concatenate([transposed(cut, by) for by in KEYS])).to(torch.int16)


@cache
def test() -> Integer[Tensor, "m 256"]:
    """The beginning of every held-out tune that is long enough, but for those also found among the training tunes; or
    $EIGENTIME_DATA/music."""
    folder = own_folder("music")
    if folder is not None:
        return torch.from_numpy(read_folder(folder)[1]).to(torch.int16)
    known = {row.tobytes() for row in windows(_tunes().training, 1)[:, GIVEN:]}
    cut = windows([row[:STEPS] for row in _tunes().test])
    return torch.from_numpy(np.stack([row for row in cut if row[GIVEN:].tobytes() not in known])).to(torch.int16)


def generated(x: Integer[Tensor, "n 256"]) -> Integer[Tensor, "n 224"]:
    """Without the two bars that were given."""
    return x[:, GIVEN:]


def note_histograms(x: Integer[Tensor, "n 256"]) -> Float[Tensor, "n 129"]:
    """Relative frequencies of the symbols that each song generated."""
    counts = torch.zeros(len(x), SYMBOLS, dtype=torch.float64)
    counts.scatter_add_(1, generated(x), torch.ones(generated(x).shape, dtype=torch.float64))
    return counts / counts.sum(1, keepdim=True)


def song_distances(x: Integer[Tensor, "n 256"], reference: Integer[Tensor, "n 256"]) -> dict[str, Float[Tensor, " n"]]:
    """Song by song: the Hellinger distance of the two note histograms, and the outlier score, the share of notes that
    the reference does not hold at all."""
    p, q = note_histograms(x), note_histograms(reference)
    return {
        "hellinger": ((p.sqrt() - q.sqrt()) ** 2).sum(1).div(2).sqrt(),
        "outlier": torch.where(q == 0, p, 0.0).sum(1),
    }


def transitions(x: Integer[Tensor, "n 256"]) -> Float[Tensor, " pairs"]:
    """How often one symbol follows another, over all songs; held notes do not count."""
    before, after = x[:, GIVEN - 1 : -1], generated(x)
    return histogram((before * SYMBOLS + after)[before != after], SYMBOLS**2)


def against(
    reference: Integer[Tensor, "n 256"], held_out: Integer[Tensor, "m 256"]
) -> Callable[[Integer[Tensor, "n 256"]], dict[str, Estimate]]:
    """Metrics of one continuation a song, beside the same songs' reference continuations and other held-out songs."""

    def metrics(x: Integer[Tensor, "n 256"]) -> dict[str, Estimate]:
        return {name: over_sequences(value) for name, value in song_distances(x, reference).items()} | judged(
            x, held_out
        )

    return metrics


def judged(x: Integer[Tensor, "n 256"], held_out: Integer[Tensor, "m 256"] | None = None) -> dict[str, Estimate]:
    """Distance of the transitions from those of held-out tunes, and of the share of bars that a song repeats."""
    real = test().long() if held_out is None else held_out
    truth, share = transitions(real), repeated_bars(real).mean()
    return {
        "transitions": of_the_whole(x, lambda part: hellinger(transitions(part), truth)),
        "repeats": of_the_whole(x, lambda part: (repeated_bars(part).mean() - share).abs().item()),
    }


def repeated_bars(x: Integer[Tensor, "n 256"]) -> Float[Tensor, " n"]:
    """Share of a song's generated bars that it has already played, note by note: folk tunes repeat, noise does not."""
    bars = x.view(len(x), -1, STRIDE)
    shares = []
    for song in bars:
        new = song[GIVEN // STRIDE :]
        same = (new[:, None] == song[None]).all(-1)
        earlier = torch.arange(len(song))[None] < torch.arange(GIVEN // STRIDE, len(song))[:, None]
        shares.append((same & earlier).any(1).double().mean())
    return torch.stack(shares)


NETWORK = DDiTConfig(size=SYMBOLS, width=128, blocks=4, heads=4, cond_width=64, head="cavity", time_conditioned=True)
UNIFORM = Recipe(
    "music", process("uniform"), STEPS, NETWORK, steps=5000, batch=16, learning_rate=2e-3, given=GIVEN, ema=0.998
)
TASK = DataTask(
    metrics=judged,
    fidelity="transitions",
    diversity="repeats",
    name="music",
    about="256 sixteenth notes of folk tunes, two bars given",
    recipes=(UNIFORM,),
    given=GIVEN,
    training=training,
    test=test,
)
