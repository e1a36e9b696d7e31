"""Oracle text: the character trigrams of Wikipedia as a Markov chain, so that posteriors and likelihoods are exact.

It has no words and no memory beyond two characters, but its errors are those of the schedule alone.
"""

from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Integer
from safetensors.numpy import load_file
from torch import Tensor

from eigentime.data.text import SYMBOLS
from eigentime.models import MarkovChain, Model
from eigentime.models.zoo import FOLDER
from eigentime.process import LogLinear, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole, surprise
from eigentime.tasks.task import ExactTask, kernel_over

COUNTS = FOLDER / "trigram" / "counts.safetensors"
LENGTH, SIZE, ADDED = 256, len(SYMBOLS), 0.01


def count(text: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, "27 27 27"]:
    """How often each string of three characters occurs."""
    text = text.astype(np.int64)
    codes = (text[:-2] * SIZE + text[1:-1]) * SIZE + text[2:]
    return np.bincount(codes, minlength=SIZE**3).reshape(SIZE, SIZE, SIZE)


@cache
def law() -> tuple[Float[np.ndarray, "27 27"], Float[np.ndarray, "27 27 27"]]:
    """The law of pairs and of a character after a pair, with a little added to every count."""
    counts = load_file(COUNTS)["counts"].astype(np.float64) + ADDED
    pairs = counts.sum(2)
    return pairs / pairs.sum(), counts / pairs[..., None]


def exact(kernel: str, length: int = LENGTH) -> Model:
    """The exact model."""
    return MarkovChain(*law(), length, Process(kernel_over(SIZE, kernel), LogLinear()), name="trigram-exact")


@cache
def chain() -> MarkovChain:
    """The one that judges."""
    model = exact("absorbing")
    assert isinstance(model, MarkovChain)
    return model


def trigram_distance(x: Integer[Tensor, "n length"]) -> Estimate:
    """Hellinger distance of the samples' trigrams from the chain's (its floor shrinks with the number of samples)."""
    pairs, transition = law()
    truth = torch.from_numpy((pairs[..., None] * transition).ravel())

    def distance(part: Tensor) -> float:
        return hellinger(histogram((part[:, :-2] * SIZE + part[:, 1:-1]) * SIZE + part[:, 2:], SIZE**3), truth)

    return of_the_whole(x, distance)


def judged(x: Integer[Tensor, "n length"]) -> dict[str, Estimate]:
    """How much unlikelier than data the samples are, and how far their trigrams are from the chain's."""
    return {"surprise": surprise(chain(), x), "trigrams": trigram_distance(x)}


TASK = ExactTask(
    metrics=judged,
    fidelity="surprise",
    diversity="trigrams",
    name="trigram",
    about="256 characters of a trigram chain of Wikipedia",
    recipes=(),
    exact=exact,
)
