"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from eigentime.errors import EigentimeError


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before any work is spent on what goes there."""
    path = Path(path)
    if path.is_dir():
        raise EigentimeError(f"{path} is a folder; give the name of a file to write.")
    if not path.parent.is_dir():
        raise EigentimeError(f"The folder {path.parent} does not exist; make it first.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise EigentimeError(f"{path} cannot be written; choose another place.")


def write_atomically(path: str | Path, content: bytes | str) -> None:
    """Write beside the target and rename, so that an interruption never leaves half a file."""
    path = Path(path)
    check_writable(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise EigentimeError(f"{path} cannot be written ({error.strerror}); choose another place.") from None
