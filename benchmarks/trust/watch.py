"""What a reader does with a strange file: whether it runs code, leaves its folder, hangs or fills the memory."""

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS, WAITING, MEGABYTES = 10, 300, 512
"""Of the processor's time and of waiting: more is a hang; and more memory a blow-up. Valid files of the campaign take
milliseconds and a few kilobytes."""
RUNS = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "subprocess.Popen",
    "pty.spawn",
)
TEMPORARY = str(Path(tempfile.gettempdir()).resolve() / "tmp")
"""How the names of temporary folders begin, which readers may make."""
SYSTEM = ("/proc", "/sys", "/dev")
NOWHERE = "/dev/null"
WRITERS = ("dataclasses.py", "collections/__init__.py", "attr/_make.py", "importlib._bootstrap>", "_external>")
"""Code of Python's and its libraries' own that is imported, or that writes classes."""
REACHES = ("socket.connect", "socket.getaddrinfo", "ctypes.dlopen", "urllib.Request")
CHANGES = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "shutil.rmtree",
    "os.truncate",
)


class Hang(BaseException):
    """Reading took too long."""


class Watch:
    """Listens to Python's audit events while it is armed."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.seen: list[str] = []
        self.libraries = tuple(
            str(Path(each).resolve()) for each in {sys.prefix, sys.base_prefix, *filter(None, sys.path)}
        )
        sys.addaudithook(self._heard)
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, self._too_long)

    @contextlib.contextmanager
    def over(self, folder: Path) -> Iterator[None]:
        """Watch over what happens to files of this folder, the only one that may be touched."""
        self.seen, self.folder = [], folder.resolve()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, WAITING)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.folder = None

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event.startswith(RUNS) and not _importing():
            self.seen.append(f"code: {event} {args!r:.80}")
        elif event == "exec" and not sys._getframe(1).f_code.co_filename.endswith(WRITERS) and not _importing():
            self.seen.append(f"code: exec by {sys._getframe(1).f_code.co_filename}")
        elif event in REACHES and not _importing():
            self.seen.append(f"escape: {event} {args!r:.80}")
        elif event == "open" and isinstance(args[0], str | bytes | os.PathLike):
            self._touched(event, args[0], reads=not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)))
        elif event in CHANGES and args and isinstance(args[0], str | bytes | os.PathLike):
            self._touched(event, args[0], reads=False)

    def _touched(self, event: str, path: Any, reads: bool) -> None:
        try:
            name = str(Path(os.fsdecode(path)).resolve())
        except (OSError, ValueError):
            return  # no path at all
        if (
            name == NOWHERE
            or name.startswith((str(self.folder), TEMPORARY))
            or (reads and name.startswith((*self.libraries, *SYSTEM)))
        ):
            return
        self.seen.append(f"escape: {event} {name}")

    def _too_long(self, *_: Any) -> None:
        raise Hang


def _importing() -> bool:
    """Whether a part of a library is imported for the first time, whose own code runs then; files name no modules, and
    their folder is not among those that modules come from."""
    frame = sys._getframe(2)
    while frame is not None:
        if "importlib._bootstrap" in frame.f_code.co_filename:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def peak(anew: bool = False) -> int:
    """The most memory that this process has had since it was last asked anew, in megabytes."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
