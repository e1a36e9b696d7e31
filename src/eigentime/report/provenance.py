"""Results with where they come from: settings, versions, parent commit and machine in every file."""

import json
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.reading import MOST_ROWS, read_json


def save_results(
    path: str | Path, content: dict[str, Any], took: dict[str, float] | None = None, **settings: Any
) -> None:
    """Write a JSON file with the settings, the parent commit, the machine and, if known, the seconds it took."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    provenance = {
        "settings": settings,
        "parent_commit": _commit(),
        "eigentime": version("eigentime"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    } | ({} if took is None else {"took": took})
    write_atomically(path, json.dumps(jsonable({"provenance": provenance, **content}), indent=1) + "\n")


def load_results(path: str | Path) -> dict[str, Any]:
    """Read what `save_results` wrote."""
    try:
        content: dict[str, Any] = unjsonable(read_json(path, MOST_ROWS))
    except (OSError, ValueError) as error:
        raise EigentimeError(f"{path} holds no results ({error}).") from None
    return content


def jsonable(value: Any) -> Any:
    """Plain JSON values: arrays as lists, non-finite numbers as strings."""
    if isinstance(value, dict):
        return {key: jsonable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def unjsonable(value: Any) -> Any:
    """The inverse of `jsonable` for numbers: strings that stand for non-finite ones become numbers again."""
    if isinstance(value, dict):
        return {key: unjsonable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [unjsonable(entry) for entry in value]
    return float(value) if value in ("inf", "-inf", "nan") else value


def _commit() -> str | None:
    """The commit this code was run from, where it runs from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
