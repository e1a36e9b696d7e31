"""How many sequences a network sees at a time: chosen from sizes and free memory, halved where memory runs out."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

from eigentime.arguments import shown, whole
from eigentime.errors import EigentimeError
from eigentime.models.base import Model

MOST, MOST_EXACT = 32, 512
"""Beyond so many sequences nothing becomes faster."""
SHARE = 0.25
"""Of the free memory."""
MOST_BYTES = 2**29
"""On a CPU, whose caches larger batches leave."""
COPIES = 3
"""Outputs over the vocabulary that exist at once: a network's, and what they are turned into."""
TEMPORARIES = 24
"""Activations of a network at one token, in units of its width."""
UNKNOWN_MEMORY = 4 * 2**30
Result = TypeVar("Result")
OUT_OF_MEMORY = (torch.OutOfMemoryError, MemoryError, RuntimeError)
"""What an allocation that fails may raise; `BatchSize.shrink` tells other errors from it."""


class BatchSize:
    """Sequences per call of a network. The choice depends on sizes and on the memory that is free at the start only."""

    def __init__(self, model: Model, wanted: int | Literal["auto"] | None = "auto") -> None:
        wanted = "auto" if wanted is None else wanted
        self.model = model
        self.automatic = isinstance(wanted, str) and wanted == "auto"
        self.value: int = automatic(model) if self.automatic else _number(wanted)

    def over(self, count: int, work: Callable[[int, int], Result], most: int | None = None) -> list[Result]:
        """work(first, number) for runs of the numbers 0 … count-1, at most this many at a time. Where memory runs out,
        the run that failed and what is left are done in smaller ones."""
        found, done = [], 0
        while done < count:
            number = min(self.value, most or self.value, count - done)
            try:
                found.append(work(done, number))
                done += number
            except OUT_OF_MEMORY as error:
                self.shrink(error, number)
        return found

    def shrink(self, error: BaseException, tried: int) -> None:
        """Half of the sequences for which an allocation has failed; any other error, and a single sequence, go on."""
        if not is_out_of_memory(error):
            raise error
        if tried == 1:
            raise EigentimeError(
                f"Memory ran out with a single sequence of {self.model.name}; use a shorter length, a smaller dtype or "
                "another device."
            ) from None
        self.value = tried // 2
        release = getattr(getattr(torch, self.model.device.type, None), "empty_cache", None)
        if release is not None:
            release()


def _number(wanted: Any) -> int:
    try:
        return int(whole(1)(wanted, "batch_size"))
    except EigentimeError:
        raise EigentimeError(
            f'batch_size must be "auto" or a whole number of at least 1, not {shown(wanted)}.'
        ) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed; on the CPU torch says so in words only."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in ("out of memory", "allocate memory", "not enough memory")
    )


def automatic(model: Model) -> int:
    """As many sequences as fit into a quarter of the free memory, and not more than helps."""
    room = SHARE * free_memory(model.device)
    if model.device.type == "cpu":
        room = min(room, MOST_BYTES)
    return max(1, min(MOST_EXACT if model.exact else MOST, int(room / sequence_bytes(model))))


def sequence_bytes(model: Model) -> int:
    """Roughly what one sequence needs: activations in proportion to the width of the weights, and outputs over the
    vocabulary, unless a head makes them row by row."""
    outputs = 0 if model.splits else COPIES * model.process.kernel.size
    return 4 * model.length * (outputs + TEMPORARIES * max(model.width, 1))


def free_memory(device: torch.device) -> int:
    """Bytes that are free on a device now."""
    if device.type != "cpu":
        ask = getattr(getattr(torch, device.type, None), "mem_get_info", None)
        return ask(device)[0] if ask is not None else UNKNOWN_MEMORY
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY
