"""Groups of sequences: what was measured is summed up in a few of them, from which standard errors and cross-fits are
made later."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
from jaxtyping import Float, Int, Real

GROUPS = 32
"""Sequences are dealt to at most this many groups."""
FEW_FOLDS = 4
"""The spread of fewer folds says too little: the groups within each are looked at instead."""


class Grouped(Protocol):
    """Something measured whose groups can be taken apart."""

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""

    @property
    def complete(self) -> bool:
        """Whether every level that exists was measured, so that nothing is interpolated."""

    def take(self, groups: Int[np.ndarray, " n"]) -> Self:
        """Only what these groups measured."""

    def thinned(self) -> Self:
        """Without every second inner level: how much that matters tells how good the interpolation is."""


G = TypeVar("G", bound=Grouped)
Choice = TypeVar("Choice")


def in_groups(table: Float[np.ndarray, "n ..."], rows: int) -> Float[np.ndarray, "b ..."]:
    """Sums over the sequences of each group; what comes from the same row of data stays together."""
    different = rows if rows > 1 else len(table)
    count = min(GROUPS, len(table), different)
    groups = np.zeros((count, *table.shape[1:]))
    np.add.at(groups, np.arange(len(table)) % different % count, table)
    return groups


def check_levels(levels: Real[np.ndarray, " g"], highest: float) -> None:
    """Levels as measured ones are: increasing, from 0 to `highest`."""
    if not (len(levels) and levels[0] >= 0 and levels[-1] <= highest and np.all(np.diff(levels) > 0)):
        raise ValueError("levels out of order or range")


def check_sums(
    what: object, finite: Sequence[str] = (), positive: Sequence[str] = (), numbers: Sequence[str] = ()
) -> None:
    """Sums that a measurement can give: `finite` ones, those that are also never negative, and `numbers` that may
    be infinite but are not NaN."""
    for name in (*finite, *positive, *numbers):
        values = getattr(what, name)
        wrong = np.isnan(values) if name in numbers else ~np.isfinite(values)
        if name in positive:
            wrong = wrong | (values < -1e-3)  # sums of roundings of zero
        if wrong.any():
            raise ValueError(f"{name} holds {values[wrong].flat[0]}")


def jackknife(value: Callable[[G], float], whole: G) -> float:
    """The standard error of a number: √((b-1)·variance of what is found without each group).

    One group says nothing about how much groups differ.
    """
    return float(jackknife_curve(lambda part: np.array(value(part)), whole))


def jackknife_curve(value: Callable[[G], Float[np.ndarray, "..."]], whole: G) -> Float[np.ndarray, "..."]:
    """The same for many numbers at once."""
    everything = np.arange(whole.groups)
    if len(everything) < 2:
        return np.full_like(value(whole), np.inf)
    without = np.stack([value(whole.take(np.delete(everything, k))) for k in everything])
    with np.errstate(invalid="ignore"):  # what is infinite without every group has no spread
        return np.asarray(np.sqrt((len(everything) - 1) * without.var(0)))


def group_values(value: Callable[[G], float], whole: G) -> Float[np.ndarray, " b"]:
    """What each group says of a number by itself: b·v - (b-1)·(v without the group), moved so that their mean is v.

    For a mean over sequences that is the group's own mean, and the standard error of their mean is the jackknife's.
    """
    everything, mean = np.arange(whole.groups), value(whole)
    if len(everything) < 2 or not np.isfinite(mean):
        return np.full(len(everything), mean)
    without = np.array([value(whole.take(np.delete(everything, k))) for k in everything])
    return np.asarray(mean + (len(everything) - 1) * (without.mean() - without))


@dataclass(frozen=True)
class GroupFit:
    """A number with its standard error, and what it rests on."""

    mean: float
    stderr: float
    values: Float[np.ndarray, " b"]
    """What each group says of it."""


def fit(value: Callable[[G], float], whole: G) -> GroupFit:
    """A number with its jackknife standard error; one group says nothing about how much groups differ."""
    values = group_values(value, whole)
    if len(values) < 2 or not np.isfinite(values).all():
        return GroupFit(float(values.mean()), float("inf") if len(values) < 2 else 0.0, values)
    return GroupFit(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), values)


def cross_fit(
    whole: G,
    folds: Sequence[Int[np.ndarray, " n"]],
    choose: Callable[[Int[np.ndarray, " m"]], Choice],
    judge: Callable[[G, Choice], float],
) -> GroupFit:
    """The mean over folds of how what the groups of the other folds choose is judged on the fold, with its standard
    error."""
    everything, values = np.arange(whole.groups), np.empty(whole.groups)
    judged = []
    for fold in folds:
        choice = choose(np.setdiff1d(everything, fold))
        values[fold] = group_values(partial(_swapped, judge, choice), whole.take(fold))
        judged.append(float(values[fold].mean()))
    if np.isinf(judged).any():
        return GroupFit(float("inf"), 0.0, np.full(len(values), np.inf))
    if len(folds) >= FEW_FOLDS:
        stderr = np.std(judged, ddof=1) / np.sqrt(len(folds))
    else:
        within = [values[fold].std(ddof=1) / np.sqrt(len(fold)) if len(fold) > 1 else np.inf for fold in folds]
        stderr = np.linalg.norm(within) / len(folds)
    return GroupFit(float(np.mean(judged)), float(stderr), values)


def _swapped(judge: Callable[[G, Choice], float], choice: Choice, part: G) -> float:
    return judge(part, choice)


def interpolation_gap(value: Callable[[G], float], whole: G) -> float:
    """About how far interpolating between the measured levels moves a number.

    With half of the levels it moves it some 2² times as far, so the truth lies about a third of the change away.
    """
    if whole.complete:
        return 0.0
    fine, coarse = value(whole), value(whole.thinned())
    return abs(fine - coarse) / 3 if np.isfinite([fine, coarse]).all() else 0.0


def thinned(count: int) -> Int[np.ndarray, " n"]:
    """Indices of every second of `count` levels, always with the first and the last."""
    return np.union1d(np.arange(0, count, 2), [count - 1])
