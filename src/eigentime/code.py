"""What a function is, as a short hash: so that what an older version of it made is not taken for what it makes now."""

import hashlib
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def code_fingerprint(function: Any) -> str:
    """Of its name, its code, its defaults and the values it closes over, as they print themselves."""
    return hashlib.sha256("\n".join(_parts(function)).encode()).hexdigest()[:16]


def _parts(function: Any) -> Iterator[str]:
    code = getattr(function, "__code__", None)
    if code is None:  # an object that can be called
        yield ADDRESS.sub("", repr(function))
        yield ADDRESS.sub("", repr(getattr(function, "__dict__", {})))
        function = type(function).__call__
        code = getattr(function, "__code__", None)
    if code is not None:
        yield f"{function.__module__}.{function.__qualname__}"
        yield from _of_code(code)
        yield ADDRESS.sub("", repr((function.__defaults__, function.__kwdefaults__)))
        for cell in function.__closure__ or ():
            inner = cell.cell_contents
            yield from _parts(inner) if hasattr(inner, "__code__") else [ADDRESS.sub("", repr(inner))]


def _of_code(code: CodeType) -> Iterator[str]:
    """Without file and line, so that moving a function does not change it."""
    yield code.co_code.hex()
    yield from code.co_names
    for constant in code.co_consts:
        yield from _of_code(constant) if isinstance(constant, CodeType) else [repr(constant)]
