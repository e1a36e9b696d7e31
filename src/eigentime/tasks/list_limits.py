"""The best that any sampler can do on a list operation with so many evaluations, in closed form.

A sampler evaluates the exact posterior, chooses places by whatever it knows, and draws their tokens independently. Its
answer is right with probability

    V(C, K) = max_S Σ_{outcomes o at S that occur in C} Π_{i ∈ S} P(o_i | C) · V({answers of C that show o}, K - 1),

where C are the answers that agree with all that is known, all equally likely; V(C, 0) = 1 if C is one answer. Drawing
all at once is right with probability n!/nⁿ (shuffle) and (1 - 1/n)^(n-1) (replace). What an operation has not decided
yet is a smaller operation of its kind, so that C is known by its size and the maximum is found by trying all S.

No sampler is better that takes at most K evaluations of every answer; rules that adapt may take K only on average.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations

from eigentime.errors import EigentimeError
from eigentime.models.list_operations import CERTAIN, OPERATIONS

Shown = Callable[[int, int], int]
"""What place p of the answer shows where the operation acts at place j, up to the names of items."""
SHOWN: dict[str, Shown] = {
    "replace-random": lambda p, j: int(p == j),
    "insert-random": lambda p, j: (p > j) - (p < j),
    "remove-random": lambda p, j: int(p >= j),
}


def best_accuracy(operation: str, length: int, evaluations: int) -> float:
    """The largest chance of an answer that the operation allows, over all samplers with at most so many evaluations."""
    if operation not in OPERATIONS:
        raise EigentimeError(f"Unknown operation {operation!r}; known are {', '.join(OPERATIONS)}.")
    if evaluations < 1 or length < 1:
        raise EigentimeError(f"Lists and evaluations are at least 1, not {length} and {evaluations}.")
    if operation in CERTAIN:
        return 1.0
    if operation == "shuffle":
        return math.prod(_together(left, count) for left, count in _drawn(best_counts(length, evaluations)))
    return _edited(operation, OPERATIONS[operation].answers(length), evaluations)


def best_counts(length: int, evaluations: int) -> tuple[int, ...]:
    """Tokens of each evaluation with which a shuffle is right most often, wherever they are."""
    return _shuffled(length, min(evaluations, length))[1]


def _together(left: int, count: int) -> float:
    """That `count` draws from `left` items are all different: left!/((left - count)!·left^count)."""
    return math.perm(left, count) / left**count


def _drawn(counts: tuple[int, ...]) -> list[tuple[int, int]]:
    """How many are left before each evaluation, and how many it draws."""
    return [(sum(counts[k:]), count) for k, count in enumerate(counts)]


@cache
def _shuffled(left: int, evaluations: int) -> tuple[float, tuple[int, ...]]:
    """Accuracy and counts; of equal ones those that begin with fewer."""
    if not left:
        return 1.0, ()
    if evaluations == 1:
        return _together(left, left), (left,)
    found = []
    for count in range(1, left + 1):
        later, counts = _shuffled(left - count, evaluations - 1)
        found.append((_together(left, count) * later, (count, *counts)))
    return max(found, key=lambda each: each[0])


@cache
def _edited(operation: str, answers: int, evaluations: int) -> float:
    """V for `answers` neighbouring places where the operation may act."""
    if answers == 1:
        return 1.0
    shown = SHOWN[operation]
    open_places = [p for p in range(answers) if len({shown(p, j) for j in range(answers)}) > 1]
    chances = {p: Counter(shown(p, j) for j in range(answers)) for p in open_places}

    def value(chosen: tuple[int, ...]) -> float:
        groups = Counter(tuple(shown(p, j) for p in chosen) for j in range(answers))
        total = 0.0
        for outcome, size in groups.items():
            chance = math.prod(chances[p][seen] / answers for p, seen in zip(chosen, outcome, strict=True))
            total += chance * (_edited(operation, size, evaluations - 1) if size > 1 else 1.0)
        return total

    if evaluations == 1:
        return value(tuple(open_places))
    sizes = range(1, len(open_places) + 1)
    return max(value(chosen) for size in sizes for chosen in combinations(open_places, size))
