"""A Clock: everything one measuring pass learned about a model, as plain data in one file."""

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64
from safetensors.numpy import save as safetensors_bytes

from eigentime.arguments import checked, kind, number, numbers, optional, place, shown, whole
from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.measure.costs import Estimator, Setting, StepCosts, Times, check_estimator
from eigentime.measure.ordered import ORDER_ARRAYS, OrderProfile, Orders
from eigentime.measure.pairs import Pairs
from eigentime.measure.profile import Profile
from eigentime.measure.seen import Seen
from eigentime.orders import order_from_spec
from eigentime.pictured import Pictured
from eigentime.process import Noise, Process, noise_from_spec, process_from_spec
from eigentime.process.laws import Law
from eigentime.reading import DAMAGED, Unreadable, first_line, parse_json, read_tensors
from eigentime.sharing import Shareable

FORMAT = "eigentime-clock"
VERSION = 1
SEPARATE = (
    "measured",
    "orders",
    "dependence",
    "pairs",
    "batch_size",
    "kernel_arrays",
    "seen",
    "sums",
    "rows",
    "network",
)
"""Fields that are stored as arrays of their own."""
FELT = ("dependence", "pairs")
"""How much tokens tell of each other, where it was measured."""
OPTIONAL = (*FELT, "rows")
"""Arrays that not every clock has."""
ORDER, KERNEL, SUM = "order.", "kernel.", "sum."
LONGEST_VERSION = 20
HEAD = {
    "model": str,
    "exact": bool,
    "length": int,
    "evaluations": int,
    "seed": int,
    "data_fingerprint": str,
    "package": str,
}
"""What is written as plain values, and of which kind."""


@dataclass(frozen=True, eq=False, repr=False)
class Clock(Pictured, Shareable):
    """Sums of what was measured over groups of sequences, and where they come from.

    Standard errors and cross-fitting work for schedules invented later, because the sums are kept group by group. A
    masked process has a `Profile`, any other kernel has `Pairs`.
    """

    shared_as = "clock.safetensors"

    model: str
    exact: bool
    """Whether the model is an oracle, so that certificates are absolute; a network's are its excess over ∞ steps."""
    length: int
    free: float
    """Tokens of a sequence that are not given (their mean, where sequences differ)."""
    process: dict[str, Any]
    evaluations: int
    """Network evaluations spent, counted in sequences."""
    seed: int
    data_fingerprint: str
    package: str
    """Version of eigentime that measured."""
    times: tuple[float, ...] | None
    """The times asked for, or None where levels were chosen adaptively."""
    measured: Profile | Pairs
    entropy: float | None = None
    """H(p_0) in nats, where the model is an oracle and knows it."""
    orders: dict[str, OrderProfile] = field(default_factory=dict)
    """What tokens cost in each order that was measured: what plans are made of."""
    dependence: Float[np.ndarray, "..."] | None = None
    """How many nats a known token takes from another's entropy, by their offset."""
    pairs: Float[np.ndarray, "length length"] | None = None
    """The same for every two places, where an order asked for it."""
    kernel_arrays: dict[str, Float[np.ndarray, "..."]] = field(default_factory=dict)
    """What the description of the kernel is too short for, such as a rate matrix."""
    batch_size: int | None = None
    """Sequences that the network saw at a time in the end; it decides nothing but rounding."""
    seen: dict[str, Seen] = field(default_factory=dict)
    """Which sequences were seen for levels, orders and pairs; nothing where version 0.1 measured."""
    sums: dict[str, Float[np.ndarray, "..."]] = field(default_factory=dict)
    """What `dependence` and `pairs` are made of, as sums over sequences."""
    rows: UInt64[np.ndarray, " n"] | None = None
    """A hash of every sequence of the data that was seen."""
    network: str | None = None
    """A fingerprint of the weights, where one was made."""

    def __repr__(self) -> str:
        orders = f", orders {', '.join(self.orders)}" if self.orders else ""
        kernel = self.process["kernel"]["name"]
        return f"Clock({self.model}, {kernel}, {self.length} tokens, {self.evaluations:,} evaluations{orders})"

    @property
    def groups(self) -> int:
        """How many groups of sequences there are."""
        return self.measured.groups

    @property
    def complete(self) -> bool:
        """Whether every level that exists was measured, so that nothing is interpolated."""
        return self.measured.complete

    def take(self, groups: Int[np.ndarray, " n"]) -> "Clock":
        """Only what these groups measured."""
        return replace(self, measured=self.measured.take(groups))

    def thinned(self) -> "Clock":
        """Without every second inner level."""
        return replace(self, measured=self.measured.thinned())

    def costs(self, law: Law = "exact", estimator: Estimator = "entropy", smooth: bool = True) -> StepCosts:
        """What steps of a sampler with this token law cost; `smooth` makes curves decrease that do so in truth."""
        check_estimator(estimator)
        return self.measured.costs(self._setting, law, estimator, smooth)

    def rates(self, times: Times) -> dict[str, Times]:
        """The rates of `RATES` at any times in (0, 1)."""
        return self.measured.rates_at(self._setting, np.asarray(times, dtype=np.float64))

    @property
    def ordered(self) -> Orders:
        """What was measured in orders, as one thing to take groups of."""
        if not self.orders:
            raise EigentimeError("This clock knows no orders: measure it with orders=['low-discrepancy', …].")
        return Orders(self.orders, self.entropy, self.exact)

    def at_random(self) -> Profile:
        """Sums over masked tokens by how many others are known, wherever they are."""
        if not isinstance(self.measured, Profile):
            raise EigentimeError("Likelihood bounds are for masked models: this clock's kernel has no mask.")
        return self.measured

    @property
    def _setting(self) -> Setting:
        return Setting(self.noise, self.free, self.gap)

    @property
    def absorbing(self) -> bool:
        """Whether the kernel masks tokens."""
        return isinstance(self.measured, Profile)

    @property
    def noise(self) -> Noise:
        """The noise curve of the process."""
        return noise_from_spec(self.process["noise"])

    @property
    def gap(self) -> float:
        """The slowest rate at which the kernel forgets; nothing to wait for where it has none."""
        gap = self.process["kernel"].get("gap")
        return float("inf") if gap is None else gap

    @property
    def grid_process(self) -> Process:
        """The process that was measured."""
        return process_from_spec(self.process, self.kernel_arrays, for_grids=True)

    @property
    def fingerprint(self) -> str:
        """A short hash of everything measured: schedules carry it to say which clock made them."""
        digest = hashlib.sha256(json.dumps(self._head(), sort_keys=True).encode())
        for part in fields(self.measured):
            digest.update(np.ascontiguousarray(getattr(self.measured, part.name)).tobytes())
        for name, profile in self.orders.items():
            digest.update(json.dumps([name, profile.order], sort_keys=True).encode())
            for part_name in ORDER_ARRAYS:
                digest.update(np.ascontiguousarray(getattr(profile, part_name)).tobytes())
        for name in FELT:
            if getattr(self, name) is not None:
                digest.update(f"{name} {getattr(self, name).shape}".encode())
                digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return digest.hexdigest()[:16]

    def _head(self) -> dict[str, Any]:
        head = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in SEPARATE}
        scalars = {
            part.name: getattr(self.measured, part.name)
            for part in fields(self.measured)
            if part.name in ("counts", "free")
        }
        return {**head, "measured": type(self.measured).__name__, "scalars": scalars}

    def _check(self) -> None:
        """Refuse numbers that no measurement gives, for files that were changed."""
        for name, right in HEAD.items():
            if type(getattr(self, name)) is not right:
                raise ValueError(f"{name} is {shown(getattr(self, name))}")
        if self.length < 1 or not 0 < self.free <= self.length or self.evaluations < 0:
            raise ValueError(f"{self.free} free tokens of {self.length}, {self.evaluations} evaluations")
        optional(number())(self.entropy, "entropy")
        optional(whole(1))(self.batch_size, "batch_size")
        if self.times is not None:
            numbers(0, 1)(self.times, "times")
        if self.groups < 1 or self.grid_process.absorbing != self.absorbing:
            raise ValueError(f"{self.groups} groups, a kernel {self.process['kernel']['name']}")
        for part in (self.measured, *self.orders.values()):
            part.check()
        for profile in self.orders.values():
            order_from_spec(profile.order)

    @checked(path=place)
    def save(self, path: str | Path) -> None:
        """Write one safetensors file with a JSON head; the file appears whole or not at all."""
        arrays = {
            part.name: np.ascontiguousarray(getattr(self.measured, part.name), dtype=np.float64)
            for part in fields(self.measured)
            if part.name not in ("counts", "free")
        }
        for place_of, profile in enumerate(self.orders.values()):
            arrays |= {
                f"{ORDER}{place_of}.{name}": np.ascontiguousarray(getattr(profile, name)) for name in ORDER_ARRAYS
            }
        for name in OPTIONAL:
            if getattr(self, name) is not None:
                arrays[name] = np.ascontiguousarray(getattr(self, name))
        arrays |= {f"{KERNEL}{name}": np.ascontiguousarray(array) for name, array in self.kernel_arrays.items()}
        arrays |= {f"{SUM}{name}": np.ascontiguousarray(array) for name, array in self.sums.items()}
        head = {
            **self._head(),
            "batch_size": self.batch_size,
            "orders": [[name, profile.order] for name, profile in self.orders.items()],
            "seen": {name: seen.plain() for name, seen in self.seen.items()},
            "network": self.network,
        }
        text = json.dumps(head)
        metadata = {"format": FORMAT, "version": str(VERSION), "head": text, "sha256": _checksum(text, arrays)}
        write_atomically(path, _in_order(safetensors_bytes(arrays, metadata)))

    @classmethod
    @checked(path=place)
    def load(cls, path: str | Path) -> "Clock":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise EigentimeError(f"There is no clock file {path}; make one with `eigentime measure`.")
        try:
            arrays, metadata = read_tensors(path)
        except Unreadable as error:
            raise EigentimeError(f"{path} is not a whole clock file ({error}); measure again.") from None
        if metadata.get("format") != FORMAT:
            raise EigentimeError(f"{path} is a safetensors file, but not a clock; make one with `eigentime measure`.")
        if metadata.get("version") != str(VERSION):
            version = metadata.get("version", "")[:LONGEST_VERSION]
            raise EigentimeError(f"{path} has clock version {version}, this eigentime reads {VERSION}; measure again.")
        if "sha256" in metadata and metadata["sha256"] != _checksum(metadata.get("head", ""), arrays):  # 0.1 had none
            raise EigentimeError(f"{path} was damaged after it was written (its checksum differs); measure again.")
        try:
            head = parse_json(metadata["head"])
            kind = {"Profile": Profile, "Pairs": Pairs}[head.pop("measured")]
            orders = {
                name: OrderProfile(order=order, **{key: arrays.pop(f"{ORDER}{k}.{key}") for key in ORDER_ARRAYS})
                for k, (name, order) in enumerate(head.pop("orders", []))
            }
            felt = {name: arrays.pop(name, None) for name in OPTIONAL}
            kernel = {name.removeprefix(KERNEL): arrays.pop(name) for name in list(arrays) if name.startswith(KERNEL)}
            sums = {name.removeprefix(SUM): arrays.pop(name) for name in list(arrays) if name.startswith(SUM)}
            head["seen"] = {name: Seen.from_plain(each) for name, each in head.get("seen", {}).items()}
            measured = kind(**arrays, **head.pop("scalars"))
            head["times"] = None if head["times"] is None else tuple(head["times"])
            clock = cls(**head, measured=measured, orders=orders, kernel_arrays=kernel, sums=sums, **felt)
            clock._check()
            return clock
        except (EigentimeError, *DAMAGED) as error:
            raise EigentimeError(f"{path} is a damaged clock file ({first_line(error)}); measure again.") from None


CLOCK = kind(Clock, "a clock: et.measure(model, data), or et.Clock.load(path)")
"""What every verb that reads a measurement asks for."""


def _in_order(file: bytes) -> bytes:
    """The same file with its metadata in order, so that equal clocks are equal files."""
    end = 8 + int.from_bytes(file[:8], "little")
    head = json.loads(file[8:end])
    head["__metadata__"] = dict(sorted(head["__metadata__"].items()))
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + file[end:]


def _checksum(head: str, arrays: dict[str, Float[np.ndarray, "..."]]) -> str:
    """Of everything that a file holds."""
    digest = hashlib.sha256(head.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
