"""Certificates: the path error of a schedule in nats with an honest standard error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.intervals import student_interval
from eigentime.measure.clock import Clock
from eigentime.measure.costs import Estimator
from eigentime.measure.groups import cross_fit, interpolation_gap, jackknife
from eigentime.process.laws import Law
from eigentime.schedules.schedule import Schedule
from eigentime.schedules.strategies import MEASURED, measured_times

FOLDS = 8
LAW_NAMES: dict[str, Law] = {"ancestral": "exact", "euler": "euler", "tau-leaping": "poisson"}
"""Schedules of version 0.1 say which sampler they were planned for, later ones which law."""
WEAK_NOISE = 0.1
"""Above this α(1) the divergence from the prior has not yet settled into its exponential decay."""


@dataclass(frozen=True)
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

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Where the true number lies, by Student's t."""
        return student_interval(self.mean, self.stderr, self.degrees, level)

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

    if _chosen_by(clock, schedule):
        folds = _folds(clock)
        mean, stderr = cross_fit(clock, folds, lambda part: _chosen_alphas(part, schedule), error)
        degrees = len(folds) - 1
    else:
        mean, stderr, degrees = error(clock), jackknife(error, clock), clock.groups - 1
    stderr = float(np.hypot(stderr, interpolation_gap(error, clock)))
    if np.isinf(mean):
        stderr = 0.0
        notes.append("the sampler gives probability 0 to what can happen; plan with the exact law")
    if mean < -3 * stderr:
        notes.append("negative: the model's own entropies are not calibrated, see estimator='cross-entropy'")
    if not clock.absorbing and clock.noise.alpha(1.0).item() ** clock.gap > WEAK_NOISE:
        notes.append("the noise ends far from the prior, so that the error of starting there is only a rough guess")
    return Certificate(mean, stderr, clock.exact, "; ".join(notes), degrees)


def extra_schedule_cost(clock: Clock, schedule: Schedule) -> Certificate:
    """How many nats more a schedule costs here than this clock's own of the same kind and as many steps, on the same
    sequences, which did not choose it."""
    check_same_process(clock, schedule)
    folds = _folds(clock)

    def extra(part: Clock, own: Float[np.ndarray, " k"]) -> float:
        costs = part.costs(*_planned_with(schedule), smooth=False)
        return costs.path(schedule.alphas) - costs.path(own)

    mean, stderr = cross_fit(clock, folds, lambda part: _chosen_alphas(part, schedule), extra)
    return Certificate(mean, stderr, clock.exact, degrees=len(folds) - 1)


def check_same_process(clock: Clock, schedule: Schedule) -> None:
    """Refuse a schedule that was laid out for another noise or another kind of kernel."""
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


def _chosen_alphas(part: Clock, schedule: Schedule) -> Float[np.ndarray, " k"]:
    """The schedule that a part of a clock would have chosen in its place."""
    times = measured_times(part, schedule.strategy, schedule.steps, *_planned_with(schedule))
    return part.grid_process.grid_alphas(times)
