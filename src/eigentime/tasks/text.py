"""Text: 256 characters of Wikipedia, a … z and space, judged by a 6-gram model, its words and its variety."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from eigentime.data.text import SYMBOLS, Part, characters, part_of, spelled
from eigentime.models.ddit import DDiTConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.metrics import Estimate, distinct_grams, of_the_whole, over_sequences, sequence_entropy
from eigentime.tasks.ngrams import CharacterModel
from eigentime.tasks.task import DataTask, kernel_over
from eigentime.training import Recipe

LENGTH = 256
JUDGED_ON = 20_000_000
"""Training characters that the judge and the list of words are made from."""
KNOWN_AFTER = 5
"""A word is real when it occurs so often there."""
GRAM = 4
"""Length of the strings that are counted for variety."""


@cache
def sequences(part: Part) -> Integer[Tensor, "n length"]:
    """A part of the text, cut into sequences."""
    text = part_of(characters(), part)
    return torch.from_numpy(np.array(text[: len(text) // LENGTH * LENGTH]).reshape(-1, LENGTH))


@cache
def judge() -> CharacterModel:
    """A 6-gram model of training text."""
    return CharacterModel(part_of(characters(), "training")[:JUDGED_ON], len(SYMBOLS))


@cache
def known_words() -> frozenset[str]:
    """The words that training text holds several times."""
    words, counts = np.unique(spelled(part_of(characters(), "training")[:JUDGED_ON]).split(), return_counts=True)
    return frozenset(words[counts >= KNOWN_AFTER].tolist())


@cache
def real_entropy() -> float:
    """Nats of the characters of one held-out sequence, on average."""
    return sequence_entropy(sequences("test")).mean().item()


def word_shares(x: Integer[Tensor, "n length"]) -> Float[Tensor, " n"]:
    """Share of each sequence's words that are real; the first and the last may be cut and do not count."""
    shares = []
    for row in x:
        words = [word for word in spelled(row.numpy()).split(" ")[1:-1] if word]
        shares.append(sum(word in known_words() for word in words) / max(1, len(words)))
    return torch.tensor(shares, dtype=torch.float64)


def judged(x: Integer[Tensor, "n length"]) -> dict[str, Estimate]:
    """Bits a character under the 6-gram judge, and beside them what repetition would give away."""
    entropy = sequence_entropy(x)
    return {
        "bits": over_sequences(torch.from_numpy(judge().bits(x.numpy()))),
        "entropy_gap": of_the_whole(entropy, lambda part: abs(part.mean().item() - real_entropy())),
        "entropy": over_sequences(entropy),
        "distinct": distinct_grams(x, GRAM),
        "real_words": over_sequences(word_shares(x)),
    }


def process(kernel: str) -> Process:
    """27 symbols, and MDLM's log-linear noise."""
    return Process(kernel_over(len(SYMBOLS), kernel), LogLinear())


MASKED = DDiTConfig(size=len(SYMBOLS) + 1, width=128, blocks=4, heads=4, cond_width=32)
MDLM = Recipe("text", process("absorbing"), LENGTH, MASKED, steps=6000, batch=16, learning_rate=3e-3)
SEDD = replace(
    MDLM,
    name="text-sedd",
    network=replace(MASKED, head="score", time_conditioned=True),
    start_from="text",
    steps=1000,
    learning_rate=1e-3,
)
UDLM = replace(
    MDLM,
    name="text-uniform",
    process=process("uniform"),
    network=replace(MASKED, size=len(SYMBOLS), head="cavity", time_conditioned=True),
    start_from="text",
    steps=1600,
    learning_rate=2e-3,
)
TASK = DataTask(
    metrics=judged,
    fidelity="bits",
    diversity="entropy_gap",
    name="text",
    about="256 characters of Wikipedia, a … z and space",
    recipes=(MDLM, SEDD, UDLM),
    training=lambda: sequences("training"),
    test=lambda: sequences("test"),
)
