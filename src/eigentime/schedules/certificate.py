"""Certificates: the path error of a schedule in nats with an honest standard error."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.intervals import Difference, GroupValues, paired, student_interval
from eigentime.measure.clock import CLOCK, Clock
from eigentime.measure.costs import Estimator
from eigentime.measure.groups import GroupFit, cross_fit, fit, interpolation_gap
from eigentime.process.laws import Law
from eigentime.schedules.schedule import Schedule
from eigentime.schedules.strategies import MEASURED, measured_times

FOLDS = 8
LAW_NAMES: dict[str, Law] = {"ancestral": "exact", "euler": "euler", "tau-leaping": "poisson"}
"""Schedules of version 0.1 say which sampler they were planned for, later ones which law."""
NEGATIVE = {
    "entropy": "negative by {size:.3g} nats, which no true error is: the model's own entropies are not calibrated and "
    "miss by at least that much, see estimator='cross-entropy'",
    "cross-entropy": "negative by {size:.3g} nats, and rightly: infinitely many steps average over random orders, and "
    "the order of these steps suits the network better",
}
"""What a path error clearly below zero says, by the estimator."""
WEAK_NOISE = 0.1
"""Above this α(1) the divergence from the prior has not yet settled into its exponential decay."""
_parts: WeakKeyDictionary[Clock, dict[bytes, Clock]] = WeakKeyDictionary()
"""Parts of clocks that chose before, for as long as the clocks live: what was solved on a part serves all numbers of
steps."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """KL(true path ‖ sampled path) in nats, an upper bound on KL(data ‖ samples)."""

    mean: float
    stderr: float
    absolute: bool
    """True for an oracle; for a network the number is its excess over infinitely many steps."""
    note: str = ""
    """What the number does not cover."""
    degrees: float | None = None
    """How many groups of sequences the standard error rests on, less one; None where it is not known."""
    groups: GroupValues | None = field(default=None, repr=False)
    """What each group of sequences says; files of earlier versions do not hold it."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the true number lies, by the bootstrap of Student's t over groups of sequences."""
        if self.groups is None:
            return student_interval(self.mean, self.stderr, self.degrees, level)
        return self.groups.interval(self.mean, level)

    def __float__(self) -> float:
        return self.mean

    def __sub__(self, other: "Certificate") -> Difference:
        """How much more this costs than another that the same clock certified, paired by sequence."""
        return paired(self, other)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Certificate":
        """What `to_dict` made."""
        groups = content.get("groups")
        if groups is not None:
            groups = GroupValues(**{**groups, "values": tuple(groups["values"])})
        return cls(**{**content, "groups": groups})

    def __repr__(self) -> str:
        return f"Certificate({self})"

    def __str__(self) -> str:
        kind = "" if self.absolute else " above infinitely many steps"
        return f"{self.mean:.4g} ± {self.stderr:.2g} nats{kind}" + (f" ({self.note})" if self.note else "")


def certify(
    clock: Clock, schedule: Schedule, law: Law = "exact", estimator: Estimator = "entropy", notes: Sequence[str] = ()
) -> Certificate:
    """The path error of a schedule for a sampler with this token law; `notes` say what the number does not cover.

    Where this clock chose the schedule, it is cross-fitted: chosen again on 7/8 of the sequences, certified on the
    rest.
    """
    check_same_process(clock, schedule)
    notes = list(notes)
    alphas = np.append(schedule.alphas, 1.0) if schedule.times[-1] > 0 else schedule.alphas

    def error(part: Clock, alphas: Float[np.ndarray, " k"] = alphas) -> float:
        return part.costs(law, estimator, smooth=False).path(alphas)

    chosen = 0.0
    if _chosen_by(clock, schedule):
        folds = _folds(clock)
        found = cross_fit(clock, folds, lambda groups: _chosen_alphas(_part(clock, groups), schedule), error)
        degrees, chosen = len(folds) - 1, found.mean - error(clock)
    else:
        found, degrees = fit(error, clock), clock.groups - 1
    if np.isinf(found.mean):
        notes.append("the sampler gives probability 0 to what can happen; plan with the exact law")
    if not clock.absorbing and clock.noise.alpha(1.0).item() ** clock.gap > WEAK_NOISE:
        notes.append("the noise ends far from the prior, so that the error of starting there is only a rough guess")
    gap = interpolation_gap(error, clock)
    source, heavy = f"{clock.fingerprint} times", not clock.absorbing
    return certificate_of(found, gap, degrees, source, clock.exact, estimator, notes, chosen, heavy)


def certificate_of(
    found: GroupFit,
    gap: float,
    degrees: int,
    source: str,
    exact: bool,
    estimator: Estimator,
    notes: Sequence[str],
    chosen: float = 0.0,
    heavy: bool = False,
) -> Certificate:
    """What was found, with the interpolation's error in its error bar and a word on what a negative number means."""
    if math.isinf(found.mean):
        return Certificate(found.mean, 0.0, exact, "; ".join(notes), degrees)
    stderr = math.hypot(found.stderr, gap)
    if found.mean < -3 * stderr:
        notes = [*notes, NEGATIVE[estimator].format(size=-found.mean)]
    groups = GroupValues(tuple(found.values.tolist()), gap, source, chosen, heavy)
    return Certificate(found.mean, stderr, exact, "; ".join(notes), degrees, groups)


def extra_schedule_cost(clock: Clock, schedule: Schedule) -> Certificate:
    """How many nats more a schedule costs here than this clock's own of the same kind and as many steps, on the same
    sequences, which did not choose it."""
    check_same_process(clock, schedule)
    folds = _folds(clock)

    def extra(part: Clock, own: Float[np.ndarray, " k"]) -> float:
        costs = part.costs(*_planned_with(schedule), smooth=False)
        return costs.path(schedule.alphas) - costs.path(own)

    found = cross_fit(clock, folds, lambda groups: _chosen_alphas(_part(clock, groups), schedule), extra)
    groups = GroupValues(tuple(found.values.tolist()), 0.0, f"{clock.fingerprint} times")
    return Certificate(found.mean, found.stderr, clock.exact, degrees=len(folds) - 1, groups=groups)


def check_same_process(clock: Clock, schedule: Schedule) -> None:
    """Refuse a schedule that was laid out for another noise or another kind of kernel."""
    CLOCK(clock, "clock")
    if not isinstance(schedule, Schedule):
        raise EigentimeError("This needs a Schedule; make one of your times with et.schedule(clock, times).")
    if schedule.noise != clock.noise:
        raise EigentimeError(
            f"The schedule belongs to {schedule.noise}, the clock to {clock.noise}; use schedule.convert(clock.noise)."
        )
    if not np.allclose(schedule.alphas, clock.grid_process.grid_alphas(schedule.times), atol=1e-6):
        raise EigentimeError("The schedule was made for another kernel than the clock's: its α do not fit its times.")


def _chosen_by(clock: Clock, schedule: Schedule) -> bool:
    """Whether this clock chose these very times, so that certifying them on all of its data would flatter them."""
    if schedule.strategy not in MEASURED or schedule.provenance.get("clock") != clock.fingerprint:
        return False
    law, estimator = _planned_with(schedule)
    return np.allclose(schedule.times, measured_times(clock, schedule.strategy, schedule.steps, law, estimator))


def _planned_with(schedule: Schedule) -> tuple[Law, Estimator]:
    made = schedule.provenance
    law = made.get("law") or LAW_NAMES.get(made.get("sampler", "ancestral"), "exact")
    return law, made.get("estimator", "entropy")


def _folds(clock: Clock) -> list[Int[np.ndarray, " n"]]:
    if clock.groups < 2:
        raise EigentimeError("Certifying a schedule on its own clock needs at least two measured sequences.")
    return np.array_split(np.arange(clock.groups), min(FOLDS, clock.groups))


def _part(clock: Clock, groups: Int[np.ndarray, " n"]) -> Clock:
    """Only what these groups measured; the same object every time."""
    kept = _parts.setdefault(clock, {})
    return kept.setdefault(groups.tobytes(), clock.take(groups))


def _chosen_alphas(part: Clock, schedule: Schedule) -> Float[np.ndarray, " k"]:
    """The schedule that a part of a clock would have chosen in its place."""
    times = measured_times(part, schedule.strategy, schedule.steps, *_planned_with(schedule))
    return part.grid_process.grid_alphas(times)
