"""Samples drawn in portions: shared out over processes, and remembered in a file on the way.

Sequence i draws from its own streams of random numbers, so that portions put together are what one run draws, to the
rounding of a network that sees other sequences beside it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from eigentime.code import code_fingerprint, package_version
from eigentime.ledger import Ledger, Result, Rows, hashed
from eigentime.models.base import Model
from eigentime.models.batching import BatchSize
from eigentime.orders import Order
from eigentime.samplers.base import Sampler
from eigentime.samplers.condition import Condition
from eigentime.samplers.loop import Snapshot, run
from eigentime.samplers.record import Record
from eigentime.samplers.registry import label, make_sampler
from eigentime.samplers.samples import SampleInfo
from eigentime.samplers.shaping import Shaping
from eigentime.schedules import Plan, Schedule

PORTION = 4
"""Micro-batches that are drawn together: samplers that ask for some sequences only fill theirs from all of them."""


@dataclass
class Portions:
    """Work cut to so many sequences at a time."""

    value: int
    automatic: bool = False

    def over(self, count: int, work: Callable[[int, int], Result], most: int | None = None) -> list[Result]:
        """work(first, number) for runs of the numbers 0 … count-1."""
        return [work(first, min(self.value, count - first)) for first in range(0, count, self.value)]


@dataclass(frozen=True)
class Drawing:
    """All that samples are drawn with, but how many."""

    model: Model
    schedule: Schedule | Plan | None
    sampler: str | Sampler
    seed: int
    condition: Condition
    shaping: Shaping

    @property
    def given(self) -> str:
        """A hash of what is given."""
        cond = self.condition.cond
        parts = (self.condition.given, self.condition.fixed, None if cond is None else cond.cpu())
        return hashed(*(None if part is None else np.asarray(part) for part in parts), repr(self.condition.guidance))

    def made_with(self) -> dict[str, Any]:
        """All that a sequence depends on."""
        process, made = self.model.process, make_sampler(self.sampler)
        settings = {name: each.spec() if isinstance(each, Order) else each for name, each in vars(made).items()}
        return {
            "model": f"{self.model.name} {self.model.fingerprint}",
            "process": hashed(json.dumps(process.spec()), *process.kernel.arrays().values()),
            "schedule": None if self.schedule is None else hashed(str(self.schedule.to_dict())),
            "sampler": f"{label(self.sampler)} {code_fingerprint([made.name, settings])}",
            "shaping": repr(self.shaping),
            "given": self.given,
            "seed": self.seed,
            "version": package_version(),
        }

    def at_once(
        self, count: int, batch_size: int | Literal["auto"], watch: Callable[[Snapshot], bool | None]
    ) -> tuple[Tensor, SampleInfo]:
        """Sequences 0 … count-1 together, by this process alone."""
        return run(
            self.model,
            self.schedule,
            count,
            sampler=self.sampler,
            seed=self.seed,
            condition=self.condition,
            shaping=self.shaping,
            batch_size=batch_size,
            callback=watch,
        )

    def drawn(
        self,
        ledger: Ledger,
        count: int,
        batch_size: int | Literal["auto"],
        watch: Callable[[Snapshot], bool | None],
    ) -> tuple[Tensor, SampleInfo]:
        """Sequences 0 … count-1, and what they cost."""
        batch = BatchSize(self.model, batch_size)
        ledger.settle(batch)

        def portion(first: int, number: int) -> Rows:
            tokens, info = run(
                self.model,
                self.schedule,
                number,
                sampler=self.sampler,
                seed=self.seed,
                condition=self._part(first, number),
                shaping=self.shaping,
                batch_size=batch.value,
                callback=watch,
            )
            return _as_rows(tokens, info)

        # fails here, before anything is shared out, where the whole condition does not fit the samples
        free = self.condition.start(self.model, count, self.seed).free
        found = ledger.rows("samples", 0, count, Portions(PORTION * batch.value), portion)
        exact = make_sampler(self.sampler).likelihood_of(self.schedule) == "exact"
        return torch.from_numpy(found["tokens"]), _as_info(found, free, exact, batch.value)

    def _part(self, first: int, number: int) -> Condition:
        asked = self.condition
        given, fixed = (part[first : first + number] if _each(part) else part for part in (asked.given, asked.fixed))
        cond = None if asked.cond is None else asked.cond[first : first + number]
        return Condition(given, fixed, cond, asked.guidance, first=first)


def _each(part: Any) -> bool:
    """Whether every sequence has a row of its own."""
    return np.ndim(part) == 2 and len(part) > 1


def _as_rows(tokens: Tensor, info: SampleInfo) -> Rows:
    """What is added over sequences stands in the row of the first."""
    count = len(tokens)
    first = np.arange(count) == 0
    rows = {
        "tokens": tokens.numpy(),
        "spent": info.spent.numpy(),
        "nfe": np.full(count, info.nfe),
        "clipped": np.full(count, info.clipped),
        "evaluations": first * info.evaluations,
        "seconds": first * info.seconds,
    }
    if info.record is not None:
        rows |= {"logs": info.record.logs.numpy(), "asked": info.record.asked.numpy()}
    return rows


def _as_info(found: Rows, free: Tensor, exact: bool, batch_size: int) -> SampleInfo:
    record = None
    if "logs" in found:
        record = Record.of(free, torch.from_numpy(found["asked"]), torch.from_numpy(found["logs"]))
    return SampleInfo(
        nfe=float(found["nfe"].mean()),
        evaluations=int(found["evaluations"].sum()),
        seconds=float(found["seconds"].sum()),
        clipped=float(found["clipped"].mean()),
        stopped=False,
        batch_size=batch_size,
        spent=torch.from_numpy(found["spent"]),
        record=record,
        exact=exact and record is not None,
    )
