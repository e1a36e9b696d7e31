"""Clocks of other sequences, added up: sums are added group by group, and nothing else has to be done again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.dependence import pairs_of
from eigentime.measure.masked import MASKED_SUMS
from eigentime.measure.ordered import OrderProfile, dependence_of
from eigentime.measure.pairs import PAIR_SUMS, Pairs
from eigentime.measure.profile import Profile
from eigentime.measure.seen import SeenRun, added, common

FEW_GROUPS = 8
"""Fewer say too little of how much sequences differ."""
ALIKE: dict[str, Callable[[Clock], Any]] = {
    "model": lambda clock: clock.model,
    "length": lambda clock: clock.length,
    "process": lambda clock: (clock.process, {name: each.tolist() for name, each in clock.kernel_arrays.items()}),
    "number of free tokens": lambda clock: clock.free,
    "times": lambda clock: clock.times,
    "kind of sums": lambda clock: type(clock.measured).__name__,
    "orders": lambda clock: [(name, each.order, each.levels.tolist()) for name, each in clock.orders.items()],
    "grid": lambda clock: {name: each.shape for name, each in clock.sums.items()},
}
"""What clocks that are added up have in common."""


def merge(clocks: Sequence[Clock]) -> Clock:
    """One clock of all sequences that some clocks have seen, none of them twice."""
    if len(clocks) < 2:
        raise EigentimeError("Give at least two clocks to merge.")
    first = clocks[0]
    for other in clocks[1:]:
        _check_alike(first, other)
    for one, other in combinations(clocks, 2):
        _check_apart(one, other)
    orders = {
        name: _added(OrderProfile, "orders", clocks, [clock.orders[name] for clock in clocks]) for name in first.orders
    }
    kind = type(first.measured)
    sums = {name: np.sum([clock.sums[name] for clock in clocks], axis=0) for name in first.sums}
    data = sorted({clock.data_fingerprint for clock in clocks})
    return replace(
        first,
        evaluations=sum(clock.evaluations for clock in clocks),
        data_fingerprint=data[0] if len(data) == 1 else "+".join(data)[:64],
        measured=_added(kind, "levels", clocks, [clock.measured for clock in clocks]),
        orders=orders,
        dependence=dependence_of(sums["dependence"][None]) if "dependence" in sums else None,
        pairs=pairs_of(sums["pairs"], sums["dependence"].shape[1:]) if "pairs" in sums else None,
        seen={name: added([clock.seen[name] for clock in clocks]) for name in first.seen},
        sums=sums,
        rows=np.unique(np.concatenate([clock.rows for clock in clocks if clock.rows is not None])),
    )


SUMS: dict[type, tuple[str, ...]] = {
    Profile: MASKED_SUMS,
    Pairs: PAIR_SUMS,
    OrderProfile: ("sequences", "entropy", "cross"),
}
"""What is added; all else is alike."""


def _added(kind: type, what: str, clocks: Sequence[Clock], parts: Sequence[Any]) -> Any:
    seen = [clock.seen[what] for clock in clocks]
    of, ids = common(seen), list(added(seen).ids)
    total = {
        name: np.sum([each.dealt(getattr(part, name), of) for each, part in zip(seen, parts, strict=True)], axis=0)[ids]
        for name in SUMS[kind]
    }
    return replace(parts[0], **total)


def _check_alike(first: Clock, other: Clock) -> None:
    for clock in (first, other):
        if clock.rows is None or not _knows_its_groups(clock):
            raise EigentimeError(
                f"A clock of {clock.model} does not say which sequences it has seen (an older version made it, or only "
                "some of its groups are left): it cannot be added to others."
            )
    different = next((name for name, part in ALIKE.items() if part(first) != part(other)), None)
    if None not in (first.network, other.network) and first.network != other.network:
        different = "network"
    if different is None and not _same_levels(first, other):
        different = "noise levels"
    if different is not None:
        raise EigentimeError(
            f"Clocks of {first.model} and {other.model} differ in their {different}: only parts of one measurement can "
            "be added up. Measure them with --like the same pilot."
        )
    of = common([first.seen["levels"], other.seen["levels"]])
    if of < min(FEW_GROUPS, first.seen["levels"].of, other.seen["levels"].of):
        raise EigentimeError(
            f"One clock has dealt its sequences to {first.seen['levels'].of} groups, another to "
            f"{other.seen['levels'].of}, which do not fit into each other: measure each on at least 32 sequences."
        )


def _knows_its_groups(clock: Clock) -> bool:
    """Whether all its sums are those of the sequences that it says it has seen."""
    groups = {"levels": {clock.groups}, "orders": {each.groups for each in clock.orders.values()}}
    return all(name in clock.seen and found == {len(clock.seen[name].ids)} for name, found in groups.items() if found)


def _same_levels(first: Clock, other: Clock) -> bool:
    names = ("angles", "nodes") if isinstance(first.measured, Pairs) else ("levels",)
    pairs = [(getattr(first.measured, name), getattr(other.measured, name)) for name in names]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-9) for a, b in pairs)


def _check_apart(one: Clock, other: Clock) -> None:
    """Refuse what would count a sequence twice, or pretend that the same row is another."""
    for name, seen in one.seen.items():
        for mine in seen.stretches:
            for theirs in other.seen[name].stretches:
                _check_stretches(mine, theirs)
    different = {s.data for s in one.seen["levels"].stretches}.isdisjoint(
        s.data for s in other.seen["levels"].stretches
    )
    if different and one.rows is not None and other.rows is not None:
        shared = len(np.intersect1d(one.rows, other.rows))
        if shared:
            raise EigentimeError(
                f"Two clocks have {shared} sequence{'s' if shared > 1 else ''} of their data in common: counted twice "
                "they would look like more than they are."
            )


def _check_stretches(mine: SeenRun, theirs: SeenRun) -> None:
    if mine.overlaps(theirs):
        raise EigentimeError(
            f"Two clocks have seen sequences {max(mine.first, theirs.first)} to {min(mine.end, theirs.end) - 1} of "
            f"seed {mine.seed}: each may be counted once. Parts have numbers of their own: --shard 0/2, --shard 1/2."
        )
    if mine.data == theirs.data and mine.seed != theirs.seed:
        raise EigentimeError(
            f"Two clocks of the same data have seeds {mine.seed} and {theirs.seed}: other parts of the data have one "
            "seed and other --shard numbers."
        )
