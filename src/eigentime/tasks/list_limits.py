"""The best that any sampler can do on a list operation with so many evaluations, in closed form.

A sampler evaluates the exact posterior, chooses places by whatever it knows, and draws their tokens independently. Its
answer is right with probability

    V(C, K) = max_S Σ_{outcomes o at S that occur in C} Π_{i ∈ S} P(o_i | C) · V({answers of C that show o}, K - 1),

where C are the answers that agree with all that is known, all equally likely; V(C, 0) = 1 if C is one answer. Drawing
all at once is right with probability n!/nⁿ (shuffle) and (1 - 1/n)^(n-1) (replace). What an operation has not decided
yet is a smaller operation of its kind, so that C is known by its size and the maximum is found by trying all S.

No sampler is better that takes at most K evaluations of every answer. Rules that adapt may take K only on average: they
are bounded by `best_trade`, the largest accuracy less a price per evaluation.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, combinations

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


def best_trade(operation: str, length: int, price: float) -> tuple[float, float]:
    """Mean evaluations and accuracy of the rule with the largest accuracy - price·evaluations. What is certain comes
    along with any evaluation, and a contradiction is finished with one more. Over prices these are the corners of what
    any rule can reach with so many evaluations on average."""
    if operation not in OPERATIONS or not price > 0:
        raise EigentimeError(f"A trade needs a known operation and a positive price, not {operation!r} and {price}.")
    if operation in CERTAIN:
        return 1.0, 1.0
    if operation == "shuffle":
        return _traded_shuffle(length, price)[1:]
    return _traded_edit(operation, OPERATIONS[operation].answers(length), price)[1:]


Trade = tuple[float, float, float]
"""Accuracy - price·evaluations, evaluations, accuracy."""


@cache
def _traded_shuffle(left: int, price: float) -> Trade:
    found = []
    for count in range(1, left + 1):
        right, more = _together(left, count), float(count < left)
        later = _traded_shuffle(left - count, price) if more else (1.0, 0.0, 1.0)
        evaluations = 1 + right * later[1] + (1 - right) * more
        found.append((right * later[2] - price * evaluations, evaluations, right * later[2]))
    return max(found)


@cache
def _traded_edit(operation: str, answers: int, price: float) -> Trade:
    open_places, outcomes = _outcomes(operation, answers)
    found = []
    for chosen in _sets(open_places):
        more = float(len(chosen) < len(open_places))
        evaluations, accuracy, wrong = 1.0, 0.0, 1.0
        for size, chance in outcomes(chosen):
            later = _traded_edit(operation, size, price) if size > 1 else (0.0, more, 1.0)
            evaluations, accuracy, wrong = evaluations + chance * later[1], accuracy + chance * later[2], wrong - chance
        evaluations += wrong * more
        found.append((accuracy - price * evaluations, evaluations, accuracy))
    return max(found)


def _together(left: int, count: int) -> float:
    """That `count` draws from `left` items are all different: left!/((left - count)!·left^count)."""
    return float(math.perm(left, count) / left**count)


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
    open_places, outcomes = _outcomes(operation, answers)
    tried = [tuple(open_places)] if evaluations == 1 else _sets(open_places)
    return max(
        sum(chance * _edited(operation, size, evaluations - 1) for size, chance in outcomes(chosen)) for chosen in tried
    )


def _sets(places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All but the empty one."""
    return chain.from_iterable(combinations(places, size) for size in range(1, len(places) + 1))


def _outcomes(operation: str, answers: int) -> tuple[list[int], Callable[[tuple[int, ...]], list[tuple[int, float]]]]:
    """The places that are not certain; and for a set of them what may be shown there together: how many answers show
    it, and how likely it is drawn place by place."""
    shown = SHOWN[operation]
    chances = [Counter(shown(p, j) for j in range(answers)) for p in range(answers)]

    def outcomes(chosen: tuple[int, ...]) -> list[tuple[int, float]]:
        groups = Counter(tuple(shown(p, j) for p in chosen) for j in range(answers))
        drawn = (zip(chosen, outcome, strict=True) for outcome in groups)
        likely = [math.prod(chances[p][seen] / answers for p, seen in each) for each in drawn]
        return list(zip(groups.values(), likely, strict=True))

    return [p for p, counted in enumerate(chances) if len(counted) > 1], outcomes
