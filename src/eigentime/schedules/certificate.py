"""Certificates: the path error of a schedule in nats with an honest standard error, and how many steps one needs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.excess import excess, interpolation_error
from eigentime.measure.profile import Estimator
from eigentime.process.laws import SAMPLER_LAWS, Law
from eigentime.schedules.schedule import Schedule
from eigentime.schedules.strategies import FIXED, MEASURED, fixed_times, measured_times

FOLDS = 8


@dataclass(frozen=True)
class Certificate:
    """KL(true path ‖ sampled path) in nats, an upper bound on KL(data ‖ samples)."""

    mean: float
    stderr: float
    absolute: bool
    """True for an oracle; for a network the number is its excess over infinitely many steps."""
    note: str = ""
    """What the number does not cover."""

    def __str__(self) -> str:
        kind = "" if self.absolute else " above infinitely many steps"
        return f"{self.mean:.4g} ± {self.stderr:.2g} nats{kind}" + (f" ({self.note})" if self.note else "")


def path_error(
    clock: Clock,
    schedule: Schedule,
    *,
    sampler: str = "ancestral",
    estimator: Estimator = "entropy",
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
) -> Certificate:
    """The certificate of a schedule.

    Where this clock chose the schedule, it is cross-fitted: chosen again on 7/8 of the sequences, certified on the
    rest.
    """
    changed = [
        text
        for text, present in (
            (f"temperature {temperature:g}", temperature != 1.0),
            (f"top-p {top_p:g}", top_p < 1.0),
            (f"top-k {top_k}", top_k is not None),
        )
        if present
    ]
    note = f"for the untempered law; not covered: {', '.join(changed)}" if changed else ""
    if sampler == "first-hitting":
        return Certificate(0.0, 0.0, clock.exact, note or "one token at a time is exact")
    if sampler not in SAMPLER_LAWS:
        return Certificate(float("nan"), float("nan"), clock.exact, f"no certificate covers the {sampler} sampler")
    if schedule.noise != clock.noise:
        raise EigentimeError(
            f"The schedule belongs to {schedule.noise}, the clock to {clock.noise}; use schedule.convert(clock.noise)."
        )
    law = SAMPLER_LAWS[sampler]
    alphas = np.append(schedule.alphas, 1.0) if schedule.times[-1] > 0 else schedule.alphas
    chosen_here = schedule.strategy in MEASURED and schedule.provenance.get("clock") == clock.fingerprint
    if not chosen_here:
        mean, stderr = _jackknife(clock, alphas, law, estimator)
    else:
        planned = SAMPLER_LAWS.get(schedule.provenance.get("sampler", "ancestral"), "exact")
        mean, stderr = _cross_fitted(clock, schedule, law, planned, estimator)
    gap = interpolation_error(clock, alphas, law=law, estimator=estimator)
    stderr = float(np.hypot(stderr, gap)) if np.isfinite(mean) else 0.0
    if np.isinf(mean) and not note:
        note = f"the {sampler} sampler gives probability 0 to what can happen; plan with the exact law"
    return Certificate(mean, stderr, clock.exact, note)


def _jackknife(clock: Clock, alphas: Float[np.ndarray, " k"], law: Law, estimator: Estimator) -> tuple[float, float]:
    everything = np.arange(clock.measured.blocks)

    def error(blocks: Int[np.ndarray, " n"] | None) -> float:
        return excess(clock, law=law, estimator=estimator, blocks=blocks, smooth=False).path(alphas)

    mean = error(None)
    if np.isinf(mean) or len(everything) < 2:
        return mean, float("inf")
    left_out = [error(np.delete(everything, b)) for b in everything]
    return mean, float(np.sqrt((len(everything) - 1) * np.var(left_out)))


def _cross_fitted(
    clock: Clock, schedule: Schedule, law: Law, planned: Law, estimator: Estimator
) -> tuple[float, float]:
    blocks = clock.measured.blocks
    folds = np.array_split(np.arange(blocks), min(FOLDS, blocks))
    if len(folds) < 2:
        raise EigentimeError("Certifying a schedule on its own clock needs at least two measured sequences.")
    errors = []
    for fold in folds:
        others = np.setdiff1d(np.arange(blocks), fold)
        times = measured_times(clock, schedule.strategy, schedule.steps, planned, estimator, others)
        errors.append(
            excess(clock, law=law, estimator=estimator, blocks=fold, smooth=False).path(_alphas(clock, times))
        )
    if np.isinf(errors).any():
        return float("inf"), 0.0
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(len(errors)))


def _alphas(clock: Clock, times: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """α along a schedule, with the ends where generation starts and ends."""
    alphas = clock.noise.alpha(times).numpy().copy()
    alphas[0] = 0.0 if clock.absorbing else alphas[0]
    alphas[-1] = 1.0
    return alphas


def steps_for(
    clock: Clock, error: float, *, strategy: str = "ods", sampler: str = "ancestral", most: int = 1024
) -> int:
    """The fewest steps whose predicted path error is at most `error` nats."""
    if not error > 0:
        raise EigentimeError(f"error must be a positive number of nats, not {error}.")
    if strategy not in (*FIXED, *MEASURED):
        raise EigentimeError(f"steps_for answers for {', '.join((*FIXED, *MEASURED))}, not {strategy!r}.")
    law = SAMPLER_LAWS[sampler]
    costs = excess(clock, law=law, smooth=True)

    def predicted(steps: int) -> float:
        if strategy in FIXED:
            return costs.path(_alphas(clock, fixed_times(strategy, steps, clock.noise)))
        return costs.path(_alphas(clock, measured_times(clock, strategy, steps, law)))

    low, high = 0, 1
    while predicted(high) > error:
        if high >= most:
            raise EigentimeError(f"Even {most} steps of {strategy} stay above {error:g} nats; allow more error.")
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if predicted(middle) <= error else (middle, high)
    return high
