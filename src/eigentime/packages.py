"""Packages of other people: asked for in one sentence where they are missing, warned about where they are untested."""

import importlib
import warnings
from importlib.metadata import version
from types import ModuleType

from eigentime.errors import EigentimeError


def need(package: str, extra: str, tested: tuple[str, str]) -> ModuleType:
    """The package, imported; `tested` is the first version that was tried and the first that was not."""
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise EigentimeError(f"This needs {package}: pip install 'eigentime[{extra}]'.") from None
    found = version(package)
    if not _numbers(tested[0]) <= _numbers(found) < _numbers(tested[1]):
        warnings.warn(
            f"{package} {found} has not been tried; versions from {tested[0]} to below {tested[1]} have.", stacklevel=3
        )
    return module


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    numbers = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
