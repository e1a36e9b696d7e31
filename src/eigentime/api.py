"""The few verbs a user writes; they only wire the rooms together."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from eigentime.arguments import (
    SEED,
    checked,
    flag,
    flag_or_function,
    function,
    kind,
    listed,
    number,
    numbers,
    one_of,
    optional,
    place,
    whole,
)
from eigentime.data.streams import taken
from eigentime.errors import EigentimeError
from eigentime.ledger import Ledger
from eigentime.loading import load as load
from eigentime.measure import Clock, monte_carlo
from eigentime.measure.checks import check_network, warn_uncalibrated
from eigentime.measure.clock import CLOCK
from eigentime.measure.costs import ESTIMATORS, Estimator
from eigentime.measure.curves import default_times
from eigentime.measure.levels import make_source
from eigentime.measure.merging import merge as merge_clocks
from eigentime.measure.montecarlo import monte_carlo_share
from eigentime.measure.order_pass import with_orders, with_orders_share
from eigentime.measure.share import Share
from eigentime.models import Model, Oracle
from eigentime.models.base import MODEL
from eigentime.orders import make_order
from eigentime.process import Process
from eigentime.process.process import expand_mask
from eigentime.ranks import here
from eigentime.report.progress import Advance, progress_bar
from eigentime.samplers import Condition, Sampler, Samples, Shaping, Snapshot, make_sampler
from eigentime.samplers.portions import Drawing
from eigentime.schedules import (
    UNMEASURED,
    Plan,
    Schedule,
    check_steps,
    check_strategy,
    jys_levels,
    measured_times,
    reference_alphas,
    unmeasured_times,
)

SELF_STEPS = 256
"""Steps in which a model draws the samples that it is measured on."""
MOST_OWN = 2**16
"""Sequences that a model or its task draws at most, however large a budget is."""
JYS_SEQUENCES = 64
"""How many sequences JYS looks at; its paper takes 1,024 for count data and 64 otherwise."""


def own_data(model: Model, count: int, seed: int = 0) -> Tensor:
    """Data that a model brings along: an exact one draws its own, a named one's task knows some."""
    if isinstance(model, Oracle):
        return model.draw(count, seed)
    if model.task is not None:
        drawn: Tensor = model.task.draw(count, seed)
        return drawn
    raise EigentimeError(f"{model.name} needs data: clean sequences of shape (N, {model.length}).")


def own_prompts(model: Model, count: int, seed: int = 0) -> tuple[Tensor | None, Tensor | None]:
    """`given` and `fixed` for a named model that only continues what it is given; nothing for any other."""
    task = model.task
    if task is None or not task.given:
        return None, None
    return task.draw(count, seed), torch.arange(model.length) < task.given


def _times(value: Any, name: str) -> Any:
    """How many times, or which."""
    if not np.ndim(value) and not isinstance(value, str | bytes | None):
        return whole(2, 2**20)(value, name)
    return None if value is None else numbers(0, 1)(value, f"{name}, two different times in (0, 1],").tolist()


def _shard(value: Any, name: str) -> Any:
    """Which part, and of how many."""
    found = listed(whole(0), 2)(value, name)
    if len(found) != 2:
        raise EigentimeError(f"{name} must be two numbers, which part and of how many: (0, 4).")
    return found


@checked(
    model=MODEL,
    budget=whole(16),
    tolerance=number(0),
    times=_times,
    samples=optional(whole(1)),
    shape=optional(listed(whole(1), 1)),
    seed=SEED,
    like=optional(CLOCK),
    shard=optional(_shard),
    keep=optional(place),
    progress=flag_or_function,
)
def measure(
    model: Model,
    data: Any = None,
    *,
    given: Any = None,
    fixed: Any = None,
    cond: Tensor | None = None,
    budget: int = 512,
    tolerance: float = 0.03,
    times: int | Sequence[float] | None = None,
    samples: int | None = None,
    orders: Sequence[Any] = (),
    shape: Sequence[int] | None = None,
    rows: int | None = None,
    batch_size: int | Literal["auto"] = "auto",
    seed: int = 0,
    like: Clock | None = None,
    shard: Sequence[int] | None = None,
    keep: str | Path | None = None,
    progress: bool | Advance = False,
) -> Clock:
    """Measure how a model generates information along its reverse process. One pass serves every schedule.

    model      a model: `load`, `wrap`, or one of the exact ones
    data       clean sequences (N, L) of integer tokens, or a stream of them (a `datasets` one, or any iterable of
               sequences or batches), of which a quarter of `budget` or `samples` are taken; an exact model can draw
               its own; "self" for samples that the model draws in many steps, where there are no others (those
               evaluations count as well)
    given      with "self": the tokens that are given, as in `sample`
    fixed      (L,) or (N, L) booleans: tokens that are given, in measuring as in sampling
    cond       classes (N,), for networks that know some
    budget     the most network evaluations to spend, counted in sequences
    tolerance  stop earlier when a 16-step schedule's path error is known to this relative accuracy
    times      instead: measure at these times in (0, 1], or at this many uniform ones, as the paper does
    samples    with `times`: how many sequences at each (the paper: 64 or 1,024 at 1,024 times); with "self": how many
               the model draws
    orders     for plans, masked models only: also measure what tokens cost when revealed in these orders (names,
               permutations or functions; `random` comes along), each with `budget` evaluations of its own
    shape      of the grid whose cells the tokens are, for orders that run over one
    rows       look at so many masked tokens of a sequence at most, drawn at random (orders look at all): with a large
               vocabulary most of what measuring adds to the network is saved; no bias, a little more noise
    batch_size sequences that the network sees at a time; "auto" fits them into the free memory, and memory that runs
               out all the same halves it; the result does not depend on it
    seed       of the noise, and of the sequences where the model or its task draws them
    like       a pilot clock: measure its levels and orders, on sequences that it has not seen, as many as it has or so
               many `samples`; nothing stops by itself
    shard      (i, n): with `like`, the i-th (from 0) of n parts of these sequences only, which `merge` adds up
    keep       a file that finished work goes to at once: the same call goes on from there and finds the same, and one
               with a larger budget or a smaller tolerance goes on too (its own samples go to one beside it)
    progress   show a bar in the terminal; or a function that is told (done, total, note)

    A network is looked at before, with one evaluation that is not counted: it is refused if it answers the same
    question differently, knows what it was not shown, or contradicts its process. Afterwards a warning says where its
    entropy and its cross-entropy on the data disagree.
    """
    if samples is not None and times is None and like is None and not isinstance(data, str):
        raise EigentimeError(
            "`samples` goes with `times`, with `like` or with data='self'; else the number of sequences follows from "
            "`budget`."
        )
    if shard is not None and like is None:
        raise EigentimeError("A shard takes its levels and orders from a pilot: like=et.measure(model, data, …).")
    if like is not None and (times is not None or len(orders)):
        raise EigentimeError("With `like` the times and orders are those of the pilot; leave `times` and `orders` out.")
    part, parts = shard or (0, 1)
    share = None if like is None else Share(like, part, parts, samples)
    if data is None:
        data = own_data(model, samples or min(max(64, budget // 4), MOST_OWN), seed)
        fixed = own_prompts(model, 1)[1] if fixed is None else fixed
    if given is not None and not isinstance(data, str):
        raise EigentimeError("`given` goes with data='self'; data of your own hold the given tokens already.")
    spent = 0
    if isinstance(data, str):
        if data != "self" or (given is None) != (fixed is None):
            raise EigentimeError(
                "`data` is an array of tokens, or 'self' for the model's own samples, with both `given` and `fixed` or "
                "with neither."
            )
        many = schedule("uniform", steps=min(model.length, SELF_STEPS), model=model)
        count = samples or min(max(64, budget // 4), MOST_OWN)
        if given is None:
            given, fixed = own_prompts(model, count, seed)
        data = sample(
            model,
            many,
            count,
            seed=seed,
            given=given,
            fixed=fixed,
            cond=cond,
            batch_size=batch_size,
            keep=None if keep is None else f"{keep}.samples",
            progress=progress,
        )
        spent = data.evaluations
    orders = [orders] if isinstance(orders, str) else listed(lambda order, name: order)(orders, "orders")
    if shape is not None and math.prod(shape) != model.length:
        raise EigentimeError(
            f"A grid of shape {tuple(shape)} does not have the {model.length} cells that {model.name} needs."
        )
    for order in orders:  # refused before anything is spent
        make_order(order, shape or (model.length,), np.zeros((0, 0)))
    grid = default_times(times).tolist() if isinstance(times, int) else times
    data = taken(data, samples or min(max(64, budget // 4), MOST_OWN))
    source = make_source(model, data, fixed, cond, seed, batch_size, rows)
    check_network(source)
    made_with = source.made_with() if keep or share else None
    with Ledger(keep, made_with, source.fingerprint) as ledger:
        source = replace(source.remembered(ledger), network=made_with["model"] if made_with and share else None)
        if share is not None:
            with progress_bar("Measuring a part", progress) as advance:
                clock = monte_carlo_share(source, share, advance)
                return with_orders_share(clock, source, share, advance) if share.pilot.orders else clock
        with progress_bar("Measuring", progress) as advance:
            clock = monte_carlo(
                source,
                times=grid,
                samples=samples if times is not None else None,
                budget=budget,
                tolerance=tolerance,
                reference=reference_alphas,
                advance=advance,
            )
        warn_uncalibrated(clock)
        clock = replace(clock, evaluations=clock.evaluations + spent)
        if not orders:
            return clock
        with progress_bar("Measuring orders", progress) as advance:
            return with_orders(clock, source, orders, shape=shape, budget=budget, advance=advance)


@checked(clocks=listed(CLOCK, 2))
def merge(clocks: Sequence[Clock]) -> Clock:
    """Add up clocks of one model that have seen different sequences, such as the shards of one measurement.

    Sums are added, so that any split merges to the whole. What does not belong together is refused: another model,
    process, levels or orders, and sequences that two of the clocks have both seen.
    """
    return merge_clocks(clocks)


@checked(
    estimator=one_of(*ESTIMATORS),
    process=optional(kind(Process, "a Process(kernel, noise)")),
    model=optional(MODEL),
    seed=SEED,
    progress=flag,
)
def schedule(
    source: Clock | str | Sequence[float],
    strategy: str | Sequence[float] | None = None,
    *,
    steps: int | None = None,
    sampler: str | Sampler = "ancestral",
    estimator: Estimator = "entropy",
    process: Process | None = None,
    model: Model | None = None,
    data: Any = None,
    fixed: Any = None,
    seed: int = 42,
    progress: bool = False,
) -> Schedule:
    """Make a schedule.

    schedule(clock, "ods", steps=16)                     any strategy that a clock chooses, and the fixed ones
    schedule("cosine", steps=16, process=process)        fixed ones need only a process (or a model, or a clock)
    schedule("jys", steps=16, model=model, data=data)    JYS asks the network at pairs of times of its own
    schedule(clock, [1.0, 0.4, 0.1, 0.0])                your own times, checked and never altered

    sampler        makes ODS aware of the token law it plans for
    estimator      "entropy": the model's own; "cross-entropy": of the data under the model, its errors included
    process,model  what the grid is for, where there is no clock to say it
    data,fixed     for JYS: clean sequences (N, L), and which of their tokens are given
    """
    clock = source if isinstance(source, Clock) else None
    if clock is None and strategy is not None:
        raise EigentimeError(
            "A strategy after the first argument needs a clock there: et.schedule(clock, 'ods', steps=16)."
        )
    if clock is not None and process is not None:
        raise EigentimeError(
            "A schedule from a clock is for the clock's own process; use schedule.convert for another."
        )
    wanted = strategy if clock is not None else source
    process = process or (model.process if model is not None else None)
    if wanted is None:
        raise EigentimeError("Say which strategy, for example et.schedule(clock, 'ods', steps=16).")
    if not isinstance(wanted, str):
        if steps is not None:
            raise EigentimeError("Your own times say how many steps there are; leave `steps` out.")
        return Schedule.from_times(wanted, _process(process, clock))
    check_strategy(wanted)
    stepper = make_sampler(sampler)
    law = stepper.law or "exact"
    steps = check_steps(steps)
    if wanted == "jys":
        return jys_schedules(model, data, steps, fixed, seed, progress)[steps]
    if wanted in UNMEASURED:
        known = _process(process, clock)
        return Schedule.from_times(unmeasured_times(wanted, steps, known.noise), known, wanted)
    if clock is None:
        raise EigentimeError(f"{wanted!r} is chosen by a clock: et.schedule(et.measure(model, data), {wanted!r}, …).")
    times = measured_times(clock, wanted, steps, law, estimator)
    provenance = {
        "clock": clock.fingerprint,
        "model": clock.model,
        "evaluations": clock.evaluations,
        "sampler": stepper.name,
        "law": law,
        "estimator": estimator,
        "package": clock.package,
        "free": clock.free,
    }
    return Schedule.from_times(times, _process(None, clock), wanted, provenance)


def _process(process: Process | None, clock: Clock | None) -> Process:
    """The process a schedule is for. A clock only knows its kernel's kind and noise, which is all a grid needs."""
    if process is not None:
        return process
    if clock is None:
        raise EigentimeError("A schedule belongs to a process: pass process=…, model=… or a clock.")
    return clock.grid_process


def _warn_of_given(model: Model, planned: Any, fixed: Any, count: int) -> None:
    """Say where tokens are given in sampling that were not in measuring, or the reverse."""
    measured = planned.provenance.get("free") if isinstance(planned, Schedule | Plan) else None
    if not isinstance(measured, int | float):
        return
    given = bool(expand_mask(fixed, torch.Size((count, model.length))).any())
    if given == (measured == model.length):
        was, now = ("with all tokens free", "with some given") if given else ("with some tokens given", "with all free")
        warnings.warn(
            f"The schedule or plan was measured {was} and is used {now}: it is right to use, but neither the best one "
            "nor certified for this. Measure with the same `fixed`.",
            stacklevel=4,
        )


def jys_schedules(
    model: Model | None, data: Any, steps: int, fixed: Any, seed: int, progress: bool
) -> dict[int, Schedule]:
    """JYS schedules of 1, 2, 4, … `steps` steps: it doubles them, so that all come with the largest."""
    if model is None or data is None:
        raise EigentimeError("JYS asks the network itself: et.schedule('jys', steps=…, model=model, data=data).")
    with progress_bar("JYS", progress) as advance:
        levels = jys_levels(model, data, steps, seed, fixed, lambda spent: advance(spent, None))
    return {
        k: Schedule.from_times(times, model.process, "jys", {"model": model.name, "evaluations": spent, "seed": seed})
        for k, (times, spent) in levels.items()
    }


@checked(
    model=MODEL,
    num_samples=whole(1),
    seed=SEED,
    guidance=optional(number()),
    shaping=optional(kind(Shaping, "a Shaping(temperature, …)")),
    callback=optional(function),
    keep=optional(place),
    progress=flag_or_function,
)
def sample(
    model: Model,
    schedule: Schedule | Plan | None,
    num_samples: int,
    *,
    sampler: str | Sampler = "ancestral",
    seed: int = 0,
    given: Any = None,
    fixed: Any = None,
    cond: Tensor | None = None,
    guidance: float | None = None,
    shaping: Shaping | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    normalise: bool = False,
    batch_size: int | Literal["auto"] = "auto",
    callback: Callable[[Snapshot], bool | None] | None = None,
    keep: str | Path | None = None,
    progress: bool | Advance = False,
) -> Samples:
    """Draw sequences (num_samples, L) along a schedule, or as a plan says.

    sampler      ancestral (the exact token law), euler, tau-leaping, trapezoidal (two evaluations per step),
                 predictor-corrector, confidence, margin or entropy (the schedule's numbers of tokens, the network's
                 choice of which), remasking; without a schedule entropy-bounded, threshold, klass, first-hitting.
                 Or with settings of your own: TauLeaping(ordinal=True), Trapezoidal(0.3), EntropyBounded(0.5), …
    given,fixed  tokens (L,) or (N, L) and booleans saying which of them are given: a prefix, or anything to fill in (a
                 bundled model that needs some takes held-out ones of its task)
    cond         classes (N,), for networks that know some
    guidance     classifier-free guidance of this weight γ (1: none), towards `cond` or the given tokens; twice the NFE
    shaping      Shaping(temperature, top_p, top_k), or these three by themselves, sharpen the posteriors; certificates
                 then speak of the untempered law
    normalise    divide out a score network's mass, so that its head runs only where tokens are revealed
    batch_size   sequences at a time, as in `measure`; the result does not depend on it
    callback     called after every step with a `Snapshot`; return True to stop there
    keep         a file that finished portions of the samples go to: the same call goes on from there, and one with more
                 samples goes on too

    What comes back is a tensor of tokens that knows what it cost: its `nfe`, `evaluations`, `seconds` and `info`.
    The same seed gives the same random numbers whatever the batch size or device.
    """
    if given is None and fixed is None:
        given, fixed = own_prompts(model, num_samples, seed)
    _warn_of_given(model, schedule, fixed, num_samples)
    drawing = Drawing(
        model,
        schedule,
        sampler,
        seed,
        Condition(given, fixed, cond, guidance),
        shaping or Shaping(temperature, top_p, top_k, normalise),
    )
    if callback is not None and keep is not None:
        raise EigentimeError("A callback sees all samples at once, `keep` draws them in portions: leave one out.")
    with progress_bar("Sampling", progress) as advance:

        def watch(state: Snapshot) -> bool | None:
            advance(state.step, state.steps)
            return callback(state) if callback else None

        if keep is None and (callback is not None or here().count == 1):
            return Samples.of(*drawing.at_once(num_samples, batch_size, watch))
        with Ledger(keep, drawing.made_with() if keep else None, drawing.given) as ledger:
            return Samples.of(*drawing.drawn(ledger, num_samples, batch_size, watch))
