"""Files that appear whole or not at all, and contents that say whether they were changed since."""

import glob
import hashlib
import json
import os
import platform
import tempfile
import zlib
from pathlib import Path
from typing import Any

from eigentime.arguments import place, shown
from eigentime.errors import EigentimeError
from eigentime.ranks import silent

SEAL = "sha256"


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before any work is spent on what goes there."""
    path = Path(place(path, "The place to write"))
    if path.is_dir():
        raise EigentimeError(f"{path} is a folder; give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise EigentimeError(f"{path} is a device or a pipe, which writing would replace; give the name of a file.")
    path = _target(path)
    if not path.parent.is_dir():
        raise EigentimeError(f"The folder {path.parent} does not exist; make it first.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise EigentimeError(f"{path} cannot be written; choose another place.")


def make_folder(path: str | Path) -> Path:
    """A folder that is there afterwards, or a sentence that says why it cannot be."""
    folder = Path(place(path, "The folder"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EigentimeError(f"The folder {folder} cannot be made ({error.strerror}); choose another.") from None
    return folder


def write_atomically(path: str | Path, content: bytes | str) -> None:
    """Write beside the target and rename, so that an interruption never leaves half a file."""
    check_writable(path)
    if silent():  # the first process of the command writes
        return
    path = _target(Path(path))
    data = content.encode() if isinstance(content, str) else content
    try:
        _clear(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{_mark(path)}{os.getpid()}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise EigentimeError(f"{path} cannot be written ({error.strerror}); choose another place.") from None


def _mark(path: Path) -> str:
    """How temporary files begin that this machine writes for a file; the writer's process follows."""
    return f".{path.name}.{zlib.crc32(platform.node().encode()):08x}-"


def _clear(path: Path) -> None:
    """Take away what a process that was killed in the middle of writing this file has left."""
    for left in path.parent.glob(f"{glob.escape(_mark(path))}*.tmp"):
        writer = left.name.removeprefix(_mark(path)).partition(".")[0]
        if writer.isdigit() and not _alive(int(writer)):
            left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # where signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True


def check_made_with(path: str | Path, before: dict[str, Any], now: dict[str, Any], what: str) -> None:
    """Refuse to go on with what a file holds if that was made with other settings."""
    if before != now:
        other = next(key for key in {**now, **before} if before.get(key) != now.get(key))
        then, present = shown(before.get(other)), shown(now.get(other))
        raise EigentimeError(
            f"{path} holds {what} made with another {other} ({then}, now {present}); delete it or choose another file."
        )


def _target(path: Path) -> Path:
    """Where a link leads, so that what it points to is written and not the link."""
    return path.resolve() if path.is_symlink() else path


def _umask() -> int:
    """The mode bits that new files of this user do not get; there is no way to ask but to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """JSON content with a checksum of all of it."""
    return {**content, SEAL: _checksum(content)}


def check_seal(content: dict[str, Any], path: str | Path, remedy: str) -> None:
    """Refuse content that was changed after it was sealed; what version 0.1 wrote has no seal."""
    if not isinstance(content, dict):
        raise EigentimeError(f"{path} holds something else than expected; {remedy}.")
    if SEAL in content and content[SEAL] != _checksum({key: v for key, v in content.items() if key != SEAL}):
        raise EigentimeError(f"{path} was changed after it was written (its checksum differs); {remedy}.")


def _checksum(content: dict[str, Any]) -> str:
    """Of what a file will give back: keys are text then."""
    plain = json.loads(json.dumps(content))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
