"""Arguments, checked where they enter: a right value comes back as the code uses it, a wrong one gets a sentence.

A check is a function of a value and the argument's name. `checked` puts checks around a function by the names of its
arguments, `settle` around the fields of a dataclass:

    @checked(budget=whole(16), tolerance=number(0), seed=SEED)
    def measure(model, data, budget=512, tolerance=0.03, seed=0): …
"""

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from eigentime.errors import EigentimeError

Check = Callable[[Any, str], Any]
Function = TypeVar("Function", bound=Callable[..., Any])
MANY = 10**9
"""More sequences, tokens or evaluations than any machine holds: a slip, refused before anything is allocated."""
LONGEST_NAME = 255
"""Bytes of a file's name that file systems take."""
LONGEST = 60
"""Characters of a wrong value that a sentence shows."""


def checked(**checks: Check) -> Callable[[Function], Function]:
    """Check arguments by name before a function sees them; those that are left out keep their defaults."""

    def around(function: Function) -> Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python says itself what is missing
            for name, check in checks.items():
                if name in bound.arguments:
                    bound.arguments[name] = check(bound.arguments[name], name)
            return function(*bound.args, **bound.kwargs)

        return call  # type: ignore[return-value]

    return around


def settle(record: Any, **checks: Check) -> None:
    """Check the fields of a dataclass, frozen or not, by name."""
    for name, check in checks.items():
        object.__setattr__(record, name, check(getattr(record, name), name))


def whole(least: int | None = None, most: int | None = MANY) -> Check:
    """A whole number, of any kind that Python, numpy or torch has, as an int."""
    span = _span("of at least", least, "and at most", most if most != MANY or least is None else None)

    def check(value: Any, name: str) -> int:
        plain = _plain(value)
        right = isinstance(plain, int) and not isinstance(plain, bool)
        if not right or (least is not None and plain < least) or (most is not None and plain > most):
            raise EigentimeError(f"{name} must be a whole number{span}, not {shown(value)}.")
        return int(plain)

    return check


def number(
    least: float | None = None, most: float | None = None, *, above: float | None = None, below: float | None = None
) -> Check:
    """A finite number, of any kind that Python, numpy or torch has, as a float."""
    span = _span("of at least", least, "and at most", most) + _span("above", above, "and below", below)

    def check(value: Any, name: str) -> float:
        plain = _plain(value)
        right = isinstance(plain, int | float) and not isinstance(plain, bool) and _finite(plain)
        if not right or not (
            (least is None or plain >= least)
            and (most is None or plain <= most)
            and (above is None or plain > above)
            and (below is None or plain < below)
        ):
            raise EigentimeError(f"{name} must be a finite number{span}, not {shown(value)}.")
        return float(plain)

    return check


def numbers(least: float, most: float) -> Check:
    """A flat list of finite numbers in a range, as an array."""

    def check(values: Any, name: str) -> Any:
        try:
            found = np.atleast_1d(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError, RuntimeError):
            found = np.zeros((0, 0))
        strange = isinstance(values, str | bytes | bool) or getattr(values, "dtype", None) == np.bool_
        if strange or found.ndim != 1 or not found.size or not ((found >= least) & (found <= most)).all():
            raise EigentimeError(f"{name} must be a list of numbers from {least:g} to {most:g}, not {shown(values)}.")
        return found

    return check


def flag(value: Any, name: str) -> bool:
    """True or False."""
    plain = _plain(value)
    if not isinstance(plain, bool):
        raise EigentimeError(f"{name} must be True or False, not {shown(value)}.")
    return plain


def words(value: Any, name: str) -> str:
    """Text."""
    if not isinstance(value, str):
        raise EigentimeError(f"{name} must be text, not {shown(value)}.")
    return value


def place(value: Any, name: str) -> Any:
    """The path of a file or a folder."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    long = any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(os.fsdecode(text)).parts)
    if long or not text or "\0" in os.fsdecode(text):
        raise EigentimeError(f"{name} must be the path of a file or a folder, not {shown(value)}.")
    return value


def function(value: Any, name: str) -> Any:
    """Something to call."""
    if not callable(value):
        raise EigentimeError(f"{name} must be a function, not {shown(value)}.")
    return value


def flag_or_function(value: Any, name: str) -> Any:
    """True, False, or something to call instead."""
    if callable(value):
        return value
    plain = _plain(value)
    if not isinstance(plain, bool):
        raise EigentimeError(f"{name} must be True, False or a function, not {shown(value)}.")
    return plain


def one_of(*choices: Any) -> Check:
    """One of a few words."""

    def check(value: Any, name: str) -> Any:
        if not isinstance(value, str | None) or value not in choices:
            raise EigentimeError(f"{name} must be one of {choices}, not {shown(value)}.")
        return value

    return check


def kind(what: type | tuple[type, ...], words: str) -> Check:
    """An object of some class; `words` say which, and how it is made."""

    def check(value: Any, name: str) -> Any:
        if not isinstance(value, what):
            raise EigentimeError(f"{name} must be {words}, not {shown(value)}.")
        return value

    return check


def optional(check: Check) -> Check:
    """None, or what another check lets through."""
    return lambda value, name: None if value is None else check(value, name)


def listed(check: Check, least: int = 0) -> Check:
    """A list of what another check lets through; text and dictionaries are no lists."""

    def every(values: Any, name: str) -> list[Any]:
        if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) < 1:
            raise EigentimeError(f"{name} must be a list, not {shown(values)}.")
        found = [check(value, f"Every entry of {name}") for value in values]
        if len(found) < least:
            raise EigentimeError(f"{name} must hold at least {least} {'entry' if least == 1 else 'entries'}.")
        return found

    return every


def shown(value: Any) -> str:
    """A wrong value in short."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0:
        return f"an array of shape {tuple(value.shape)}"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever a stranger's repr does
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _plain(value: Any) -> Any:
    """A numpy or torch scalar as Python's."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not getattr(value, "is_meta", False):
        return value.item()
    return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


def _span(low: str, least: float | None, high: str, most: float | None) -> str:
    parts = [f"{low} {least:g}" if isinstance(least, float) else f"{low} {least}"] if least is not None else []
    if most is not None:
        text = f"{most:g}" if isinstance(most, float) else f"{most}"
        parts.append(f"{high if parts else high.removeprefix('and ')} {text}")
    return "".join(f" {part}" for part in parts)


SEED = whole(-(2**63), 2**64 - 1)
"""What random numbers are keyed by."""
