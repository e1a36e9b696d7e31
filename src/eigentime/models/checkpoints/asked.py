"""What a user asked for, before any weights are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A checkpoint with its configuration, and how it is to be loaded."""

    source: str
    """What the user wrote: a hub id, a folder or a file."""
    path: Path
    config: dict[str, Any]
    length: int | None
    block_length: int | None
    trust_remote_code: bool
    handed: dict[str, Any]
    """What goes on to the library that loads it."""
