"""List operations as an exact model: the prompt says what to do with which list, the posterior of the answer is known.

operation, place, new item, list (length + 1 places, blanks where it is shorter)  |  answer (length places)
"""

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.models.list_operations import OPERATIONS, Operation, Prompt, places
from eigentime.models.oracle import Oracle
from eigentime.process import Process
from eigentime.process.randomness import Purpose, uniforms

HEADER = 3
"""Tokens of a prompt before its list."""


class ListOperations(Oracle):
    """The exact model of operations on lists of `items` different values, for the absorbing kernel.

    Values: the items, a blank, the places 0 … length, the operations. Prompts are drawn as often with each of
    `operations`; posteriors are known for every one of them, and only where the prompt is given.
    """

    def __init__(
        self,
        process: Process,
        items: int,
        length: int,
        operations: Sequence[str] = tuple(OPERATIONS),
        name: str = "lists",
    ) -> None:
        unknown = [each for each in operations if each not in OPERATIONS]
        if unknown or not operations:
            raise EigentimeError(f"Unknown operation {[*unknown, ''][0]!r}; known are {', '.join(OPERATIONS)}.")
        if not process.absorbing:
            raise EigentimeError("The posteriors of list operations are known for the absorbing kernel only.")
        if length < 2 or items < length + 2:
            raise EigentimeError(f"Lists need at least 2 places and 2 items more than that, not {length} and {items}.")
        self.items, self.places, self.operations = items, length, tuple(operations)
        self.blank = items
        self.first_place, self.first_operation = items + 1, items + 1 + length + 1
        self.given = HEADER + length + 1
        super().__init__(name, process, self.given + length, values_of(items, length))

    @property
    def entropy(self) -> float:
        """Of a prompt with its answer."""
        of_prompts = sum(self._prompt_entropy(OPERATIONS[name]) for name in self.operations) / len(self.operations)
        return math.log(len(self.operations)) + of_prompts + self.answer_entropy

    @property
    def answer_entropy(self) -> float:
        """Of the answer, given the prompt."""
        logs = [math.log(OPERATIONS[name].answers(self.places)) for name in self.operations]
        return sum(logs) / len(logs)

    def _prompt_entropy(self, operation: Operation) -> float:
        """Of the list, the new item and the place."""
        count = self.places + operation.extra
        total = math.lgamma(self.items + 1) - math.lgamma(self.items - count + 1)
        total += math.log(self.items - count) if operation.new else 0.0
        return total + (math.log(places(self.places, operation.extra)) if operation.indexed else 0.0)

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p of well-formed prompts with their answers; -∞ where the operation does not allow the answer."""
        result = torch.full((len(x),), -torch.inf, dtype=torch.float64)
        allowed = self.allowed(x)
        for operation, rows, _ in self._parts(x):
            if operation.name in self.operations:
                nats = math.log(len(self.operations) * operation.answers(self.places))
                result[rows[allowed[rows]]] = -nats - self._prompt_entropy(operation)
        return result

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        u = uniforms(seed, Purpose.DATA, count, 2 + self.items + self.places)
        names = [*OPERATIONS]
        known = torch.tensor([names.index(name) for name in self.operations])
        which = known[(u[:, 0] * len(known)).long()]
        order = u[:, 2 : 2 + self.items].argsort(1)
        x = torch.full((count, self.length), self.blank)
        x[:, 0] = self.first_operation + which
        for index, name in enumerate(names):
            rows, operation = (which == index).nonzero().squeeze(1), OPERATIONS[name]
            taken = self.places + operation.extra
            x[rows, HEADER : HEADER + taken] = order[rows, :taken]
            if operation.new:
                x[rows, 2] = order[rows, taken]
            if operation.indexed:
                x[rows, 1] = self.first_place + (u[rows, 1] * places(self.places, operation.extra)).long()
            if len(rows):
                x[rows, self.given :] = operation.draw(self._prompt(x[rows], operation), u[rows, 2 + self.items :])
        return x

    def allowed(self, x: Int[Tensor, "n length"]) -> Bool[Tensor, " n"]:
        """Whether the operation allows the answer."""
        result = torch.zeros(len(x), dtype=torch.bool)
        for operation, rows, prompt in self._parts(x):
            result[rows] = operation.allows(prompt, x[rows][:, self.given :])
        return result

    def choices(self, x: Int[Tensor, "n length"]) -> dict[str, Int[Tensor, " m"]]:
        """By operation, what was chosen where an answer is allowed: equally likely to be any of its `choices`."""
        allowed, found = self.allowed(x), {}
        for operation, rows, prompt in self._parts(x):
            found[operation.name] = operation.choice(prompt, x[rows][:, self.given :])[allowed[rows]]
        return found

    def marginals(self, emissions: Float[Tensor, "b length n"]) -> Float[Tensor, "b length n"]:
        if emissions.shape[1] != self.given + self.places:
            raise EigentimeError(f"{self.name} takes prompts and answers of {self.given + self.places} tokens in all.")
        known = (emissions > 0).sum(-1) == 1
        if not known[:, : self.given].all():
            raise EigentimeError(
                f"{self.name} answers prompts: say with `fixed` that the first {self.given} tokens are given."
            )
        x, result = emissions.argmax(-1), emissions.clone()
        for operation, rows, prompt in self._parts(x):
            shown = known[rows][:, self.given :]
            law = operation.posterior(prompt, x[rows][:, self.given :], shown, emissions.shape[-1])
            result[rows, self.given :] = torch.where(shown[..., None], result[rows, self.given :], law)
        return result

    def _prompt(self, x: Int[Tensor, "n length"], operation: Operation) -> Prompt:
        taken = self.places + operation.extra
        return Prompt(x[:, HEADER : HEADER + taken], x[:, 2], x[:, 1] - self.first_place)

    def _parts(self, x: Int[Tensor, "n length"]) -> Iterator[tuple[Operation, Int[Tensor, " m"], Prompt]]:
        """The sequences of every operation."""
        which = x[:, 0] - self.first_operation
        if ((which < 0) | (which >= len(OPERATIONS))).any():
            raise EigentimeError(f"A prompt of {self.name} begins with the token of an operation.")
        for index, operation in enumerate(OPERATIONS.values()):
            rows = (which == index).nonzero().squeeze(1)
            if len(rows):
                yield operation, rows, self._prompt(x[rows], operation)


def values_of(items: int, length: int) -> int:
    """How many values the tokens have."""
    return items + 1 + length + 1 + len(OPERATIONS)
