"""Data as a measuring pass sees it, and the noise levels of an absorbing process."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from eigentime.arguments import optional, whole
from eigentime.code import package_version
from eigentime.errors import EigentimeError
from eigentime.ledger import Ledger, hashed
from eigentime.measure.masked import MASKED_SUMS, masked_sums
from eigentime.measure.profile import Profile
from eigentime.measure.seen import Seen, row_hashes
from eigentime.models.base import Model
from eigentime.models.batching import BatchSize
from eigentime.models.clean import clean_data
from eigentime.process.process import check_cond, expand_mask
from eigentime.process.randomness import Purpose, uniforms

FIRST_LEVELS = 9


@dataclass
class Source:
    """Data sequences with their conditioning and their random numbers; sequence i re-uses row i mod N of the data."""

    model: Model
    data: Int[Tensor, "n length"]
    fixed: Bool[Tensor, "n length"]
    cond: Tensor | None
    seed: int
    batch: BatchSize
    """Sequences that the network sees at a time."""
    most_rows: int | None = None
    """Masked tokens of a sequence that are looked at, at most; all if None."""
    ledger: Ledger = field(default_factory=Ledger)
    """Where what was measured is remembered, and shared out."""
    network: str | None = None
    """A fingerprint of the model, where one was made."""

    def rows(self, first: int, count: int) -> tuple[Int[Tensor, "count length"], Bool[Tensor, "count length"], Any]:
        """Clean tokens, which of them are given, and the condition, for a run of sequences."""
        index = torch.arange(first, first + count) % len(self.data)
        return self.data[index], self.fixed[index], None if self.cond is None else self.cond[index]

    def uniforms(self, purpose: Purpose, first: int, count: int, step: int = 0) -> Float[Tensor, "count length"]:
        """Uniforms of a run of sequences."""
        return uniforms(self.seed, purpose, count, self.data.shape[1], first=first, step=step)

    def remembered(self, ledger: Ledger) -> "Source":
        """The same, with what is measured written in a ledger."""
        ledger.settle(self.batch)
        return replace(self, ledger=ledger)

    def seen(self, first: int, count: int) -> Seen:
        """Sequences of a measurement that begins with the first of all."""
        return Seen.one(self.fingerprint, self.seed, len(self.data), first, count)

    def row_hashes(self, seen: Seen) -> Shaped[np.ndarray, " n"]:
        """Of every row of the data that was looked at."""
        (stretch,) = seen.stretches
        index = np.unique(np.arange(stretch.first, stretch.first + min(stretch.count, stretch.rows)) % stretch.rows)
        return np.unique(row_hashes(self.data.numpy()[index]))

    @cached_property
    def fingerprint(self) -> str:
        """Of the data and of which of their tokens are given."""
        return hashlib.sha256(self.data.numpy().tobytes() + self.fixed.numpy().tobytes()).hexdigest()[:16]

    def made_with(self) -> dict[str, Any]:
        """All that the numbers of a sequence depend on."""
        process = self.model.process
        return {
            "model": f"{self.model.name} {self.model.fingerprint}",
            "process": hashed(json.dumps(process.spec()), *process.kernel.arrays().values()),
            "data": self.fingerprint,
            "cond": None if self.cond is None else hashed(self.cond.cpu()),
            "seed": self.seed,
            "rows": self.most_rows,
            "version": package_version(),
        }

    @property
    def free(self) -> float:
        """Mean number of tokens that are not given."""
        return (~self.fixed).double().sum(1).mean().item()

    def chosen(self, masked: Bool[Tensor, "b length"], first: int) -> Bool[Tensor, "b length"] | None:
        """Which masked tokens are looked at: those of lowest random number, where there is a limit."""
        if self.most_rows is None:
            return None
        u = self.uniforms(Purpose.REPLACE, first, len(masked)).masked_fill(~masked, 2.0)
        return masked & (u.argsort(1).argsort(1) < self.most_rows)

    def batched(
        self, name: str, first: int, count: int, run: Callable[[int, int], Float[np.ndarray, "b n"]]
    ) -> Float[np.ndarray, "count n"]:
        """Run a function of (first, count) over micro-batches and stack what it returns; the name says what it is."""
        found = self.ledger.rows(name, first, count, self.batch, lambda start, many: {"sums": run(start, many)})
        return found["sums"]


def make_source(
    model: Model,
    data: Any,
    fixed: Any = None,
    cond: Tensor | None = None,
    seed: int = 0,
    batch_size: int | Literal["auto"] = "auto",
    rows: int | None = None,
) -> Source:
    """Check data and conditioning against a model."""
    data = clean_data(data, model)
    mask = expand_mask(fixed, data.shape)
    if mask.all(1).any():
        raise EigentimeError("`fixed` marks every token of a sequence as given: there is nothing to measure.")
    check_cond(cond, len(data), "data sequence")
    rows = optional(whole(1))(rows, "rows")
    if rows is not None and not model.process.absorbing:
        raise EigentimeError("`rows` is a whole number of masked tokens, at least 1, of a model whose kernel masks.")
    return Source(model, model.cut(data, cond), mask, cond, seed, BatchSize(model, batch_size), rows)


class Layout(ABC):
    """How noise levels of an absorbing process are laid out, and how one is evaluated."""

    source: Source

    @abstractmethod
    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        """The `MASKED_SUMS` of sequences first … first+count-1 at a level, and the evaluations that took."""

    @abstractmethod
    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"]) -> Profile:
        """Block sums at sorted levels as data of the clock."""


@dataclass
class CountLevels(Layout):
    """Absorbing kernel: exactly m of the free tokens revealed, the same nested choice at every level."""

    source: Source

    @property
    def free(self) -> int:
        """How many tokens of a sequence are free, as a whole number."""
        return round(self.source.free)

    def first(self) -> list[float]:
        """The levels to begin with."""
        grid = np.sin(np.pi / 2 * np.linspace(0, 1, FIRST_LEVELS)) ** 2 * self.free
        return sorted({float(m) for m in np.clip(np.round(grid), 0, self.free - 1)})

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        model = self.source.model
        nothing_known = level == 0 and self.source.cond is None and not self.source.fixed.any()
        t = model.process.noise.time_of_alpha(level / self.free).item()

        def run(start: int, number: int) -> Float[np.ndarray, "b n"]:
            x0, fixed, cond = self.source.rows(start, number)
            u = self.source.uniforms(Purpose.CORRUPT, start, number).masked_fill(fixed, -1.0)
            # reveal the tokens of lowest u: given ones first, then m of the free (in proportion where rows differ)
            share = (level / self.free * (~fixed).sum(1)).round().long() + fixed.sum(1)
            revealed = u.argsort(1).argsort(1) < share[:, None]
            x = torch.where(revealed, x0, model.process.mask)
            times = torch.full((number,), t, dtype=torch.float64)
            chosen = None if nothing_known else self.source.chosen(~revealed, start)
            return masked_sums(model, x, x0, times, cond, nothing_known, chosen)

        if nothing_known:  # all masks: one evaluation serves every sequence
            return self.source.ledger.everywhere(f"nothing known {first} {count}", lambda: run(first, count)), 1
        return self.source.batched(f"{level:g} known", first, count, run), count

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"]) -> Profile:
        named = {name: sums[..., k] for k, name in enumerate(MASKED_SUMS)}
        return Profile(levels=np.array(levels), counts=True, free=self.free, **named)

    def between(self, low: float, high: float) -> float | None:
        """A new level between two, or None where there is none."""
        return float((low + high) // 2) if high - low > 1 else None

    def roughness(self, measured: Profile) -> Float[np.ndarray, " gaps"]:
        """How uncertain the curve is between neighbouring levels: a decreasing one lies in the box that they span."""
        drop = np.maximum(-np.diff(measured.mean("entropy")), 0.0)
        width = np.diff(measured.levels)
        return np.where(width > 1, drop * width, 0.0)


@dataclass
class TimeLevels(Layout):
    """Absorbing kernel at given times: Bernoulli masks, as in the paper's own setting. Levels are times."""

    source: Source

    def evaluate(self, level: float, first: int, count: int) -> tuple[Float[np.ndarray, "count n"], int]:
        model = self.source.model

        def run(start: int, number: int) -> Float[np.ndarray, "b n"]:
            x0, fixed, cond = self.source.rows(start, number)
            u = self.source.uniforms(Purpose.CORRUPT, start, number)
            t = torch.full((number,), level, dtype=torch.float64)
            x = torch.where(fixed, x0, model.process.corrupt(x0, t, u, u))
            masked = x == model.process.mask
            return masked_sums(model, x, x0, t, cond, chosen=self.source.chosen(masked, start))

        return self.source.batched(f"at time {level!r}", first, count, run), count

    def collect(self, levels: Sequence[float], sums: Float[np.ndarray, "b g n"]) -> Profile:
        alphas = self.source.model.process.noise.alpha(np.array(levels)).numpy()[::-1]
        named = {name: sums[:, ::-1, k] for k, name in enumerate(MASKED_SUMS)}
        return Profile(levels=alphas, counts=False, free=round(self.source.free), **named)
