"""One run at a time on one output: the second says so. The lock goes with the process that holds it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eigentime.errors import EigentimeError
from eigentime.ranks import watched

try:
    import fcntl
except ImportError:  # Windows: two runs on one output are not told apart there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def alone(path: str | Path | None) -> Iterator[None]:
    """Nobody else works on this file or folder meanwhile, as far as they ask; None is nobody's."""
    if path is None or fcntl is None or not watched():  # the first process of a run holds it for all
        yield
        return
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    file = _locked(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        file.close()


def _locked(lock: Path, path: str | Path) -> IO[bytes]:
    while True:
        try:
            file = lock.open("ab")
        except OSError as error:
            raise EigentimeError(f"{path} cannot be worked on ({error.strerror}); choose another place.") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise EigentimeError(f"Another run works on {path}; wait for it, or choose another place.") from None
        except OSError:
            return file  # a file system without locks
        if _same(file, lock):
            return file
        file.close()  # whoever had it before took it away in between


def _same(file: IO[bytes], lock: Path) -> bool:
    try:
        return os.fstat(file.fileno()).st_ino == lock.stat().st_ino
    except FileNotFoundError:
        return False
