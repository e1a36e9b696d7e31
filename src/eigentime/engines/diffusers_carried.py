"""What a scheduler's configuration carries, as JSON values: counts and order, α, or a whole clock."""

import base64
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.measure.masked import MASKED_SUMS
from eigentime.measure.pairs import PAIR_SUMS
from eigentime.orders import order_from_spec
from eigentime.reading import inflated
from eigentime.schedules import Plan, Schedule

HALVES = 2
"""Groups that a carried clock keeps: what cross-fitting plans needs, and nothing that schedules miss."""
ORDER_SUMS = ("sequences", "entropy", "cross")
FILE = "clock.safetensors"
MOST_CLOCK = 256 * 2**20
"""Bytes of a carried clock."""


def carried(source: Clock | Schedule | Plan) -> dict[str, Any]:
    """The settings from which a scheduler can do the same again, in another process too."""
    if isinstance(source, Plan):
        spec = source.order.spec()
        order_from_spec(spec)  # an order that no file can hold is refused here
        return {"counts": [int(count) for count in source.counts], "order": spec, "block_length": source.length}
    if isinstance(source, Schedule):
        return {"alphas": whole_alphas(source).tolist(), "strategy": source.strategy}
    length = {"block_length": source.length} if source.absorbing else {}
    return {"clock": packed(source), "strategy": "plan" if source.orders else "ods", **length}


def whole_alphas(schedule: Schedule) -> Float[np.ndarray, " k"]:
    """α before the first evaluation and after each, 1 after the last."""
    return np.append(schedule.alphas, 1.0) if schedule.times[-1] > 0 else schedule.alphas


def packed(clock: Clock) -> str:
    """A clock with few groups as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        _pooled(clock).save(path)
        return base64.b85encode(zlib.compress(path.read_bytes(), 9)).decode()


def unpacked(text: str) -> Clock:
    """The clock again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        try:
            path.write_bytes(inflated(base64.b85decode(text), MOST_CLOCK))
        except (ValueError, TypeError, AttributeError) as error:
            raise EigentimeError(f"The clock of this scheduler is damaged ({error}); make it again.") from None
        return Clock.load(path)


def _pooled(clock: Clock) -> Clock:
    """Sums over the even and over the odd groups."""
    names = MASKED_SUMS if clock.absorbing else PAIR_SUMS
    orders = {name: _halved(profile, ORDER_SUMS) for name, profile in clock.orders.items()}
    return replace(clock, measured=_halved(clock.measured, names), orders=orders, dependence=None)


def _halved(measured: Any, names: tuple[str, ...]) -> Any:
    sums = {name: getattr(measured, name) for name in names}
    halves = {
        name: np.stack([table[start::HALVES].sum(0) for start in range(min(HALVES, len(table)))])
        for name, table in sums.items()
    }
    return replace(measured, **halves)
