"""Versions that adapters were tested with: others may work, and get a warning."""

import warnings
from importlib import import_module, metadata
from importlib.util import find_spec
from types import ModuleType

from eigentime.errors import EigentimeError


def warn_untested(package: str, versions: tuple[str, ...]) -> None:
    """Say so where an installed package has another version than those the adapter was tested with."""
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        return  # a checkout on the path has no version
    if found not in versions:
        warnings.warn(f"{package} {found} is installed; eigentime was tested with {', '.join(versions)}.", stacklevel=3)


def engine(module: str, repository: str, versions: tuple[str, ...]) -> ModuleType:
    """A module of an engine, imported now; where it is missing, a sentence that says where it comes from."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        raise EigentimeError(f"{package} is not installed; get it from github.com/{repository}.")
    warn_untested(package, versions)
    return import_module(module)
