"""A file that a run appends what it has finished to, record by record, so that nothing finished is done again.

One line per record, which begins with its own checksum: a line that was torn by the end of a process, or changed since,
is not there. The first line says what the records were made with.
"""

import base64
import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from eigentime.errors import EigentimeError, Unfinished
from eigentime.files import check_made_with, check_writable, write_atomically
from eigentime.reading import DAMAGED

try:
    import fcntl
except ImportError:  # Windows: two runs on one file are not told apart there
    fcntl = None  # type: ignore[assignment]

FORMAT, VERSION = "eigentime-progress", 1
DIGITS = 16
"""Of a line's checksum."""
KINDS = ("<f8", "<f4", "<i8", "<i4", "|b1")
"""What arrays are made of."""
Content = dict[str, Any]


class Journal:
    """The records of one run. The file is made with the first of them, and locked while it is open."""

    def __init__(self, path: str | Path, made_with: Content) -> None:
        check_writable(path)
        self.path, self.made_with = Path(path), made_with
        self._file: BinaryIO | None = None

    def read(self) -> list[Content]:
        """All whole records."""
        if not self.path.exists():
            return []
        head, *lines = self._open().read().split(b"\n")[:-1] or [b""]
        about = _unpacked(head)
        if about is None or about.get("format") != FORMAT or about.get("version") != VERSION:
            raise EigentimeError(f"{self.path} holds no progress of a run; choose another file.")
        check_made_with(self.path, about.get("made_with") or {}, self.made_with, "progress")
        records = [record for record in map(_unpacked, lines) if record is not None]
        self._cut()
        return records

    def add(self, record: Content) -> None:
        """Append one."""
        if self._file is None:
            about = {"format": FORMAT, "version": VERSION, "made_with": self.made_with}
            write_atomically(self.path, _packed(about))
            self._open()
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(_packed(record))
            self._file.flush()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise Unfinished(
                f"{self.path} cannot be written ({error.strerror}). What was finished before is in it: make room, and "
                "the same call goes on."
            ) from None

    def close(self) -> None:
        """Let others have the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Everything is done: nothing needs to be remembered."""
        self.path.unlink(missing_ok=True)
        self.close()

    def _open(self) -> BinaryIO:
        try:
            self._file = open(self.path, "r+b", buffering=0)  # noqa: SIM115 - it stays open for the lock
        except OSError as error:
            raise EigentimeError(f"{self.path} cannot be opened ({error.strerror}); choose another file.") from None
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.close()
                raise EigentimeError(
                    f"{self.path} is in use by another run; wait for it, or choose another file."
                ) from None
        return self._file

    def _cut(self) -> None:
        """Take away a last line without an end, so that the next record stands on a line of its own."""
        assert self._file is not None
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)
        self._file.seek(0, os.SEEK_END)
        assert size >= self._file.tell()


def _packed(record: Content) -> bytes:
    text = json.dumps(record, default=_array_text).encode()
    return hashlib.sha256(text).hexdigest()[:DIGITS].encode() + b" " + text + b"\n"


def _unpacked(line: bytes) -> Content | None:
    """A record, or None where a line is not what was written."""
    digest, _, text = line.partition(b" ")
    if hashlib.sha256(text).hexdigest()[:DIGITS].encode() != digest:
        return None
    try:
        record = json.loads(text, object_hook=_array)
    except DAMAGED:
        return None
    return record if isinstance(record, dict) else None


def _array_text(values: Any) -> Content:
    array = np.ascontiguousarray(values)
    if array.dtype.str not in KINDS:
        raise TypeError(f"no record holds {array.dtype}")
    return {"kind": array.dtype.str, "shape": array.shape, "base64": base64.b64encode(array.tobytes()).decode()}


def _array(content: Content) -> Any:
    if content.keys() != {"kind", "shape", "base64"} or content["kind"] not in KINDS:
        return content
    return np.frombuffer(base64.b64decode(content["base64"]), dtype=content["kind"]).reshape(content["shape"])
