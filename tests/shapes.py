"""Checks the tensor shapes and types that annotations promise, and nothing else: wrong values are for the code itself
to refuse, with a sentence. `conftest.py` puts this around every function of the package. A function that was right for
its first calls in a test is trusted for the rest of it, or checking would take longer than testing."""

import functools
import inspect
import sys
import types
import typing
from collections import Counter

import numpy as np
from jaxtyping import AbstractArray

CALLS = 24
_calls, _trusted = Counter(), []


def checked(function):
    """The function, its array arguments and its array result checked."""
    signature = inspect.signature(function)
    arrays = {name: hint for name, hint in function.__annotations__.items() if _mentions_arrays(hint)}
    if not arrays:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        _calls[function.__module__, function.__qualname__] += 1
        if _calls[function.__module__, function.__qualname__] == CALLS:
            _trust(function.__module__, function.__qualname__)
        bound = signature.bind(*args, **kwargs).arguments
        for name, hint in arrays.items():
            several = name in bound and signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            given = bound[name] if several else [bound[name]] if name in bound else []
            if not all(_fits(value, hint) for value in given):
                raise TypeError(f"{function.__qualname__}: {name} is {_shown(bound[name])}, annotated {hint}")
        result = function(*args, **kwargs)
        if "return" in arrays and not _fits(result, arrays["return"]):
            raise TypeError(f"{function.__qualname__} returns {_shown(result)}, annotated {arrays['return']}")
        return result

    return call


def forget():
    """Check everything again."""
    _calls.clear()
    while _trusted:
        _trusted.pop().__no_type_check__ = False


def _trust(module, name):
    """Tell jaxtyping not to check a function of this name; what is not to be found by its name is checked for ever."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if inspect.isfunction(found):
        found.__no_type_check__ = True
        _trusted.append(found)


def _mentions_arrays(hint):
    return _is_array(hint) or any(_mentions_arrays(part) for part in typing.get_args(hint))


def _is_array(hint):
    return inspect.isclass(hint) and issubclass(hint, AbstractArray)


def _fits(value, hint):
    """Whether a value is what a hint says, as far as arrays are concerned."""
    if _is_array(hint):
        return isinstance(np.asarray(value) if isinstance(value, np.generic) else value, hint)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        plain = [part for part in parts if not _mentions_arrays(part)]
        loose = any(not inspect.isclass(part) or isinstance(value, part) for part in plain)
        return loose or any(_fits(value, part) for part in parts if _mentions_arrays(part))
    if origin is tuple and isinstance(value, tuple) and Ellipsis not in parts:
        return len(value) == len(parts) and all(map(_fits, value, parts))
    return True


def _shown(value):
    return f"{getattr(value, 'dtype', type(value).__name__)}{list(getattr(value, 'shape', []))}"
