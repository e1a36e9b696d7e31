"""Processes that share the work of one run, as `torchrun` and `accelerate launch` start them.

Every process runs the same program. Where there are sequences to look at, each takes its share of them, and all gather
what all have found: from there on every process knows the same and decides the same. What is gathered are sums of a few
numbers per sequence, on the CPU; networks that span processes talk among themselves.
"""

import os
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from torch import distributed

from eigentime.errors import EigentimeError, ProcessLost

Made = TypeVar("Made")
LOST = (
    "Another process of this run has ended, so that this one cannot go on. Finished work is kept where the run keeps "
    "any: the same command goes on from there, with any number of processes."
)


class Ranks(ABC):
    """The processes of a run, seen from one of them."""

    rank: int
    count: int

    def share(self, number: int) -> tuple[int, int]:
        """Which of the things 0 … number-1 are this process's: from the first to before the second."""
        return number * self.rank // self.count, number * (self.rank + 1) // self.count

    @abstractmethod
    def gather(self, what: str, mine: Callable[[], Made]) -> list[Made]:
        """What each process has made, in the order of their ranks. What one refuses, all refuse."""

    def from_first(self, what: str, make: Callable[[], Made]) -> Made:
        """What the first process makes: for files, which others may see at another moment."""
        return self.gather(what, make if self.rank == 0 else lambda: None)[0]  # type: ignore[return-value]


class Alone(Ranks):
    """One process."""

    rank, count = 0, 1

    def gather(self, what: str, mine: Callable[[], Made]) -> list[Made]:
        return [mine()]


class Together(Ranks):
    """Several, connected by gloo."""

    def __init__(self) -> None:
        self.rank, self.count = distributed.get_rank(), distributed.get_world_size()
        plain = "gloo" in str(distributed.get_backend_config())
        self.group = None if plain else distributed.new_group(backend="gloo")
        self.messages, self.sent = 0, 0
        """Collective calls so far, and bytes that this process has sent in them to each other one."""

    def gather(self, what: str, mine: Callable[[], Made]) -> list[Made]:
        made: Made | EigentimeError
        try:
            with apart():
                made = mine()
        except EigentimeError as error:
            made = error
        found = [pickle.loads(part) for part in self._exchanged(pickle.dumps((what, made)))]
        for _, each in found:
            if isinstance(each, EigentimeError):
                raise each
        other = next((name for name, _ in found if name != what), what)
        if other != what:
            raise EigentimeError(
                f"The processes of this run do not do the same ({what} here, {other} elsewhere): they need the same "
                "program, arguments, data and files."
            )
        return [each for _, each in found]

    def _exchanged(self, mine: bytes) -> list[bytes]:
        """Everyone's bytes: first how many each has, then they themselves, as many as the longest has."""
        lengths = [int(part) for part in self._gathered(torch.tensor([len(mine)]))]
        padded = np.zeros(max(lengths), dtype=np.uint8)
        padded[: len(mine)] = np.frombuffer(mine, dtype=np.uint8)
        parts = self._gathered(torch.from_numpy(padded))
        return [part[:length].numpy().tobytes() for part, length in zip(parts, lengths, strict=True)]

    def _gathered(self, mine: torch.Tensor) -> list[torch.Tensor]:
        parts = [torch.empty_like(mine) for _ in range(self.count)]
        try:
            distributed.all_gather(parts, mine, group=self.group)
        except RuntimeError:
            raise ProcessLost(LOST) from None
        self.messages, self.sent = self.messages + 1, self.sent + mine.nbytes
        return parts


ALONE = Alone()
_apart: ContextVar[bool] = ContextVar("apart", default=False)
_together = cache(Together)
_command = False
"""Whether this process runs the command line: it may then connect to the others, and leaves files to the first."""


def here() -> Ranks:
    """The processes of this run: those of `torch.distributed`, where the program, or the command line, has started
    it."""
    if _apart.get() or not distributed.is_available():
        return ALONE
    if not distributed.is_initialized():
        if not (_command and launched() > 1):
            return ALONE
        _connect()
    return _together() if distributed.get_world_size() > 1 else ALONE


@contextmanager
def apart() -> Iterator[None]:
    """Work of one's own, in which nothing is shared out again."""
    token = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(token)


def begin_command() -> None:
    """This process runs the command line, perhaps as one of several, of which only the first says anything."""
    global _command
    _command = True
    if silent():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


def silent() -> bool:
    """Whether another process of a command writes and speaks for this one."""
    return _command and launched() > 1 and os.environ.get("RANK", "0") != "0"


def watched() -> bool:
    """Whether this process is the one that shows how far a run is."""
    started = distributed.is_available() and distributed.is_initialized()
    return not silent() and not (started and distributed.get_rank())


def speaks() -> bool:
    """Whether this process is the first that has a last word to say: rank 0 always has, and another one has where that
    was silent."""
    if launched() == 1 or not distributed.is_initialized():
        return not silent()
    try:
        return distributed.distributed_c10d._get_default_store().add("eigentime said", 1) == 1
    except RuntimeError:
        return not silent()


def leave(code: int) -> None:
    """End this process at once: taking leave of processes that are lost takes minutes."""
    sys.stdout.flush()
    sys.stderr.flush()
    if distributed.is_available() and distributed.is_initialized():
        os._exit(code)
    sys.exit(code)


def own_device(wanted: str | None) -> str | None:
    """Of several CUDA devices the one that the launcher means for this process."""
    local = os.environ.get("LOCAL_RANK")
    if wanted == "cuda" and local is not None and launched() > 1:
        return f"cuda:{local}"
    return wanted


def launched() -> int:
    """How many processes the launcher has started."""
    known = "RANK" in os.environ and "MASTER_ADDR" in os.environ
    return int(os.environ.get("WORLD_SIZE", "1")) if known else 1


def _connect() -> None:
    """Sums go over gloo, networks that span processes over nccl."""
    try:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    except (RuntimeError, ValueError) as error:
        detail = (str(error).splitlines() or ["unknown"])[0]
        raise ProcessLost(f"The processes of this run cannot reach each other ({detail}).") from None
