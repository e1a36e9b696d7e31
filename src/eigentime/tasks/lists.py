"""Lists: ten operations on a waiting line of eight people, after ParallelBench, with exact posteriors.

Nothing here is hard but drawing several tokens at once: what the best sampler can reach is known (`list_limits`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models import Model
from eigentime.models.ddit import DDiTConfig
from eigentime.models.list_operations import OPERATIONS
from eigentime.models.lists import ListOperations, values_of
from eigentime.process import LogLinear, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole, over_sequences
from eigentime.tasks.task import ExactTask, kernel_over
from eigentime.training import Recipe

LENGTH = 8
NAMES = (
    *("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gwen", "Hugo", "Ines", "Jack"),
    *("Kim", "Leo", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tara", "Viktor"),
)
VALUES = values_of(len(NAMES), LENGTH)


def process(kernel: str) -> Process:
    """Log-linear noise over names, a blank, places and operations."""
    return Process(kernel_over(VALUES, kernel), LogLinear())


def exact(kernel: str = "absorbing", operations: Sequence[str] = tuple(OPERATIONS)) -> ListOperations:
    """The exact model, with prompts of some operations."""
    every = tuple(operations) == tuple(OPERATIONS)
    name = "lists-exact" if every else f"lists-exact, {', '.join(operations)}"
    return ListOperations(process(kernel), len(NAMES), LENGTH, operations, name)


def metrics(x: Int[Tensor, "n 20"]) -> dict[str, Estimate]:
    """Answers that the operation does not allow; and among allowed ones, how far what was chosen is from uniform."""
    model = exact()
    allowed = model.allowed(x).double()

    def distance(part: Int[Tensor, "m 20"]) -> float:
        """Mean over operations of Hellinger distances, by how many answers each has."""
        total, count = 0.0, 0
        for name, chosen in model.choices(part).items():
            size = OPERATIONS[name].choices(LENGTH)
            if size > 1 and len(chosen):
                total += len(chosen) * hellinger(histogram(chosen, size), torch.full((size,), 1 / size).double())
                count += len(chosen)
        return total / max(count, 1)

    return {
        "wrong": over_sequences(1 - allowed),
        "accuracy": over_sequences(allowed),
        "choices": of_the_whole(x, distance),
    }


@dataclass(frozen=True)
class Words:
    """A tokenizer: one word per token."""

    name_or_path = "lists"

    @property
    def words(self) -> list[str]:
        """By token."""
        return [*NAMES, "-", *(f"#{place}" for place in range(LENGTH + 1)), *OPERATIONS]

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """Words as tokens."""
        words = self.words
        try:
            return [words.index(word) for word in text.split()]
        except ValueError:
            unknown = next(word for word in text.split() if word not in words)
            raise EigentimeError(f"The lists know names, places and operations, not {unknown!r}.") from None

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Tokens as words."""
        return " ".join(self.words[int(token)] for token in tokens)


@dataclass(frozen=True, kw_only=True)
class ListsTask(ExactTask):
    """A task that is also asked in words."""

    tokenizer: Words = Words()


MASKED = DDiTConfig(size=VALUES + 1, width=64, blocks=4, heads=4, cond_width=16)
MDLM = Recipe(
    "lists", process("absorbing"), 4 + 2 * LENGTH, MASKED, steps=7000, batch=64, learning_rate=3e-3, given=4 + LENGTH
)


def exact_model(kernel: str) -> Model:
    """The exact model of all operations."""
    return exact(kernel)


TASK = ListsTask(
    metrics=metrics,
    fidelity="wrong",
    diversity="choices",
    name="lists",
    about="ten operations on lists of eight names",
    exact=exact_model,
    kernels=("absorbing",),
    recipes=(MDLM,),
    given=4 + LENGTH,
    training_sequences=2**18,
)
