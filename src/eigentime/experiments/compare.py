"""Every strategy at every number of steps: judged by samples, certified by the clock."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from eigentime import api
from eigentime.arguments import SEED, checked, flag, function, kind, listed, one_of, optional, place, whole, words
from eigentime.errors import EigentimeError
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.trial import Cell, Trial, fingerprint
from eigentime.measure import Clock
from eigentime.measure.clock import CLOCK
from eigentime.measure.costs import ESTIMATORS, Estimator
from eigentime.models import Model
from eigentime.models.base import MODEL
from eigentime.models.clean import clean_data
from eigentime.process.process import as_tokens
from eigentime.report.rows import Row
from eigentime.samplers import make_sampler
from eigentime.schedules import Schedule, check_steps, check_strategy, plan_order
from eigentime.schedules.jys import MOST_STEPS
from eigentime.tasks import metrics_of


def _samples(value: Any, name: str) -> Any:
    """How many, or a function that says it."""
    if callable(value) and not isinstance(value, type):
        return lambda steps: whole(1)(value(steps), f"What {name} says for {steps} steps")
    return whole(1)(value, name)


@checked(
    model=MODEL,
    strategies=listed(words, 1),
    steps=listed(whole(1), 1),
    samples=_samples,
    clock=optional(CLOCK),
    jys=optional(kind(dict, "JYS schedules by their number of steps")),
    jys_samples=whole(1),
    estimator=one_of(*ESTIMATORS),
    seed=SEED,
    metrics=optional(function),
    keep=optional(place),
    made_with=optional(kind(dict, "a dictionary")),
    progress=flag,
)
def compare(
    model: Model,
    strategies: Sequence[str],
    steps: Sequence[int],
    *,
    samples: int | Callable[[int], int] = 256,
    sampler: str = "ancestral",
    clock: Clock | None = None,
    data: Any = None,
    given: Any = None,
    fixed: Any = None,
    jys: dict[int, Schedule] | None = None,
    jys_samples: int = api.JYS_SEQUENCES,
    estimator: Estimator = "entropy",
    seed: int = 0,
    metrics: Callable[[Tensor], Any] | None = None,
    keep: str | Path | None = None,
    made_with: dict[str, Any] | None = None,
    progress: bool = False,
) -> list[Row]:
    """Sample with every strategy and number of steps, judge the samples, certify the schedules.

    Cells that a strategy cannot make are left out: JYS beyond 256 steps, plans with more steps than tokens. Returns
    rows {strategy, steps, nfe, seconds, sampler, clipped, metrics: {name: {mean, stderr}}, path_error: {mean,
    stderr}}, and with them the `schedule` that was used.

    strategies  names as for `schedule`, and for a clock measured with orders `plan` (the best) and `plan-ORDER`
    samples     sequences per cell, or a function of the number of steps
    given,fixed tokens of every sample that are given, as in `sample`
    jys         JYS schedules by their number of steps, where they are known already
    metrics     judges the tokens (N, L) of a cell: returns a number, a pair (mean, standard error), one value for every
                sequence or an `et.Estimate`, which is called "metric", or a dictionary of these with names of yours
    keep        a file that every finished row goes to at once: a call that was interrupted goes on from there, if
                nothing that rows depend on has changed (network, clock, data, metrics, …); `made_with` names what else
                of your own they do, such as the model that a judge asks
    """
    for strategy in strategies:
        if plan_order(strategy) is None:
            check_strategy(strategy)
    for count in steps:
        check_steps(count)
    odd = [count for count in steps if count & (count - 1)]
    if "jys" in strategies and odd:
        raise EigentimeError(f"JYS makes powers of two only; leave out {odd[0]} steps.")
    if not make_sampler(sampler).scheduled:
        raise EigentimeError(f"{sampler} takes no schedule, so there is nothing to compare; use `sample`.")
    data = None if data is None else clean_data(data, model)
    given = None if given is None else as_tokens(given, "`given`")
    if data is None and (clock is None or ("jys" in strategies and jys is None)):
        data = api.own_data(model, max(jys_samples, 256), seed)
    if given is None and fixed is None:
        most = max(map(samples, steps)) if callable(samples) else samples
        given, fixed = api.own_prompts(model, most, seed)
    if clock is None:
        clock = api.measure(model, data, fixed=fixed, seed=seed, progress=progress)
    if clock.process != model.process.spec():
        raise EigentimeError(f"The clock was measured on another process than {model.name} has; measure this model.")
    count_for = samples if callable(samples) else lambda steps: samples
    most_steps = {"jys": MOST_STEPS, "plan": round(clock.free)}
    cells = [
        Cell(strategy, count, count_for(count), sampler if plan_order(strategy) is None else "ancestral")
        for strategy in strategies
        for count in steps
        if count <= most_steps.get(strategy.split("-")[0], count)
    ]
    searched = [cell.steps for cell in cells if cell.strategy == "jys" and cell.steps is not None]
    if jys is None and searched:
        jys = kept_jys(model, clock, data[:jys_samples], fixed, searched, _beside(keep), progress)
    trial = Trial(model, clock, metrics or metrics_of(model), seed, given, fixed, estimator, jys or {})
    made_of = {"data": fingerprint(data), "jys_samples": jys_samples} if keep else {}
    return trial.rows(cells, keep, progress, **made_of, **(made_with or {}))


def _beside(keep: str | Path | None) -> Path | None:
    """Where JYS schedules are kept, that a search of hours is not lost with the run."""
    return None if keep is None else Path(keep).with_suffix(".jys.json")
