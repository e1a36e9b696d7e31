"""Every strategy at every number of steps: judged by samples, certified by the clock."""

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from eigentime import api
from eigentime.certificates import path_error
from eigentime.code import code_fingerprint
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.measure.costs import Estimator
from eigentime.models import Model
from eigentime.report.kept import KeptRows
from eigentime.report.progress import progress_bar
from eigentime.samplers import make_sampler, run
from eigentime.schedules import Plan, Schedule, check_steps, check_strategy, plan, plan_order
from eigentime.schedules.jys import MOST_STEPS
from eigentime.tasks import metrics_of
from eigentime.tasks.metrics import as_estimates


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
    metrics: Callable[[Tensor], dict[str, Any]] | None = None,
    keep: str | Path | None = None,
    made_with: dict[str, Any] | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Sample with every strategy and number of steps, judge the samples, certify the schedules.

    Cells that a strategy cannot make are left out: JYS beyond 256 steps, plans with more steps than tokens. Returns
    rows {strategy, steps, nfe, seconds, sampler, clipped, metrics: {name: {mean, stderr}}, path_error: {mean,
    stderr}}, and with them the `schedule` that was used.

    strategies  names as for `schedule`, and for a clock measured with orders `plan` (the best) and `plan-ORDER`
    samples     sequences a cell, or a function of the number of steps
    given,fixed tokens of every sample that are given, as in `sample`
    jys         JYS schedules by their number of steps, where they are known already
    metrics     judges the tokens (N, L) of a cell: returns a dictionary whose entries are numbers, pairs (mean,
                standard error), one value for every sequence, or `et.Estimate`
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
    if data is None:
        data = api.own_data(model, max(jys_samples, 256), seed)
    if given is None and fixed is None:
        most = max(map(samples, steps)) if callable(samples) else samples
        given, fixed = api.own_prompts(model, most, seed)
    if clock is None:
        clock = api.measure(model, data, fixed=fixed, seed=seed, progress=progress)
    if clock.process != model.process.spec():
        raise EigentimeError(f"The clock was measured on another process than {model.name} has; measure this model.")
    judge = metrics or metrics_of(model)
    count_for = samples if callable(samples) else lambda steps: samples
    most_steps = {"jys": MOST_STEPS, "plan": round(clock.free)}
    cells = [
        (strategy, count, count_for(count))
        for strategy in strategies
        for count in steps
        if count <= most_steps.get(strategy.split("-")[0], count)
    ]
    kept = KeptRows(
        keep,
        model=model.name,
        seed=seed,
        network=model.fingerprint if keep else None,
        clock=clock.fingerprint,
        orders=list(clock.orders),
        sampler=sampler,
        estimator=estimator,
        jys_samples=jys_samples,
        data=_fingerprint(data) if keep else None,
        given=_fingerprint(given) if keep else None,
        fixed=_fingerprint(fixed) if keep else None,
        metrics=code_fingerprint(judge) if keep else None,
        **(made_with or {}),
    )
    missing = [cell for cell in cells if kept.row(*cell) is None]

    def cost(cell: tuple[str, int, int]) -> int:
        return cell[1] * cell[2]

    if jys is None and any(strategy == "jys" for strategy, _, _ in missing):
        most = max(count for strategy, count, _ in missing if strategy == "jys")
        jys = api.jys_schedules(model, None if data is None else data[:jys_samples], most, fixed, 42, progress)
    with progress_bar("Sampling", progress) as advance:
        for done, (strategy, count, number) in enumerate(missing):
            advance(sum(cost(cell) for cell in missing[:done]), sum(map(cost, missing)), f"{strategy}, {count} steps")
            planned = (
                jys[count] if jys and strategy == "jys" else planned_for(clock, strategy, count, sampler, estimator)
            )
            began = time.perf_counter()
            used = "ancestral" if isinstance(planned, Plan) else sampler
            shown, held = (part[:number] if np.ndim(part) == 2 else part for part in (given, fixed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # clipping is in the row
                tokens, info = run(model, planned, num_samples=number, sampler=used, seed=seed, given=shown, fixed=held)
            seconds = time.perf_counter() - began
            error = (
                planned.predicted_error
                if isinstance(planned, Plan)
                else path_error(clock, planned, sampler=sampler, estimator=estimator)
            )
            assert error is not None
            kept.add(
                {
                    "strategy": strategy,
                    "steps": count,
                    "nfe": info.nfe,
                    "seconds": seconds,
                    "sampler": used,
                    "samples": number,
                    "clipped": info.clipped,
                    "metrics": {name: vars(value) for name, value in as_estimates(judge(tokens)).items()},
                    "path_error": {"mean": error.mean, "stderr": error.stderr},
                    "schedule": planned.to_dict(),
                }
            )
    return [kept.row(*cell) for cell in cells]  # type: ignore[misc]


def _fingerprint(tokens: Any) -> str | None:
    """A short hash of an array of tokens or booleans."""
    return None if tokens is None else hashlib.sha256(np.ascontiguousarray(tokens).tobytes()).hexdigest()[:16]


def planned_for(clock: Clock, strategy: str, steps: int, sampler: str, estimator: Estimator) -> Schedule | Plan:
    """A plan, or a schedule for this sampler, or where its own law cannot follow any, one for the exact law."""
    order = plan_order(strategy)
    if order is not None:
        return plan(clock, steps, order=order or None)
    if strategy == "ods" and sampler in ("euler", "tau-leaping"):
        try:
            return api.schedule(clock, strategy, steps=steps, sampler=sampler, estimator=estimator)
        except EigentimeError:
            pass
    return api.schedule(clock, strategy, steps=steps, estimator=estimator)
