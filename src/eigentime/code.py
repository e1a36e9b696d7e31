"""What a function is, as a short hash, and which version of eigentime this is: so that what an older one made is not
taken for what it makes now."""

import functools
import hashlib
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
from torch import Tensor

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def code_fingerprint(function: Any) -> str:
    """Of its code, its defaults, what it is bound to and what it closes over."""
    return hashlib.sha256("\n".join(_parts(function, set())).encode()).hexdigest()[:16]


def package_version() -> str:
    """The installed version of eigentime."""
    try:
        return version("eigentime")
    except PackageNotFoundError:
        return "unknown"


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """A value as text that changes when it does, and that another process writes the same way."""
    if isinstance(value, FunctionType):
        if id(value) in seen:  # it closes over itself
            return
        seen.add(id(value))
        yield f"{value.__module__}.{value.__qualname__}"
        yield from _of_code(value.__code__)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        for part in (value.__defaults__, value.__kwdefaults__, *cells):
            yield from _parts(part, seen)
    elif isinstance(value, MethodType):
        yield from _parts(value.__func__, seen)
        yield from _parts(value.__self__, seen)
    elif isinstance(value, functools.partial):
        yield from _parts([value.func, value.args, value.keywords], seen)
    elif isinstance(value, Tensor | np.ndarray):
        array = np.asarray(value.detach().cpu()) if isinstance(value, Tensor) else value
        yield f"{array.dtype} {array.shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield repr(key)
            yield from _parts(entry, seen)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _parts(entry, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(map(repr, value))
    elif isinstance(getattr(type(value), "__call__", None), FunctionType):  # noqa: B004 - an object of a class of its own
        yield type(value).__qualname__
        yield from _parts(type(value).__call__, seen)
        yield from _parts(getattr(value, "__dict__", {}), seen)
    else:
        yield ADDRESS.sub("", repr(value))


def _of_code(code: CodeType) -> Iterator[str]:
    """Without file and line, so that moving a function does not change it."""
    yield code.co_code.hex()
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
