"""Calls of every public verb and object: good arguments, of which one at a time is replaced by a wrong value or by a
right one of another kind (a numpy scalar for a number, a list for an array)."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

import eigentime as et

NAN, INF = float("nan"), float("inf")


class Stranger:
    """An object of no class that anything knows."""


STRANGERS = [Stranger(), 1j, b"4", {}, Stranger]


@dataclass(frozen=True)
class Argument:
    """A good value, values that must be refused, and values that mean the same as the good one."""

    good: Any
    wrong: tuple[Any, ...]
    same: tuple[Any, ...] = ()

    def __or__(self, none: None) -> "Argument":
        """The same where None is right."""
        return Argument(self.good, tuple(value for value in self.wrong if value is not None), self.same)


def whole(good: int, least: int | None = 1) -> Argument:
    """A whole number."""
    below = () if least is None else (least - 1, np.int64(least - 1), -(10**9))
    numbers = (2.5, NAN, INF, -INF, np.float64(2.5), 10**30, np.nan, True)
    others = (None, str(good), [], [good], np.array([good, good]), torch.tensor([good, good]), *STRANGERS)
    return Argument(
        good, (*numbers, *below, *others), (np.int64(good), np.int32(good), np.array(good), torch.tensor(good))
    )


def number(good: float, *outside: float) -> Argument:
    """A finite number."""
    others = (None, "0.5", [], [good], np.array([good, good]), True, 10**400, *STRANGERS)
    wrong = (NAN, INF, -INF, np.float32("nan"), np.float64("inf"), *outside, *others)
    return Argument(good, wrong, (np.float64(good), np.array(good), torch.tensor(good, dtype=torch.float64)))


def flag(good: bool) -> Argument:
    """True or False."""
    return Argument(good, (None, "yes", 1, 0, 2.5, NAN, [], *STRANGERS), (np.bool_(good),))


def text(good: Any, *more: Any) -> Argument:
    """A name that is known."""
    return Argument(good, (None, 5, NAN, [], ["x"], True, np.int64(3), "no such thing", "", *more, *STRANGERS))


def words(good: str) -> Argument:
    """Any text will do."""
    return Argument(good, (None, 5, NAN, [], ["x"], True, np.int64(3), *STRANGERS), (np.str_(good),))


def thing(good: Any) -> Argument:
    """An object of some class."""
    return Argument(good, (None, 5, NAN, "no such thing", [], True, np.zeros(3), type(good), *STRANGERS))


def function(good: Any) -> Argument:
    """Something to call."""
    return Argument(good, (None, 5, NAN, "x", [], True, np.zeros(3), Stranger(), {}, b"4", 1j))


def path(good: str) -> Argument:
    """A file to write."""
    return Argument(
        good, (None, 5, NAN, "", [], True, "no/such/folder/file", "a\0b", "x" * 300, Stranger(), 1j, {}, ["a"])
    )


def listed(good: list[Any], *wrong: Any) -> Argument:
    """A list."""
    others = (5, NAN, "no such thing", [Stranger()], [None], [NAN], Stranger(), 1j, {"a": 1}, b"4", *wrong)
    return Argument(good, (None, *others), (tuple(good),))


def tokens(good: torch.Tensor, size: int, *wrong: Any) -> Argument:
    """Clean sequences of ids below `size`."""
    other = good.clone()
    other[0, 0] = size
    negative = good.clone()
    negative[0, 0] = -5
    shapes = (good[:, :-1], good[None], good[:0], torch.cat([good, good], 1), good[0, 0])
    kinds = (
        good.double(),
        good > 0,
        good + 0j,
        good.numpy().astype(str),
        good.numpy().astype("datetime64[s]"),
        [[0], [1, 2]],
    )
    strange = ("no such thing", 5, NAN, [], np.full(good.shape, NAN), *STRANGERS)
    same = (good.numpy(), good.tolist(), good.int(), good.numpy().astype(np.uint8))
    return Argument(good, (other, negative, *shapes, *kinds, *strange, *wrong), same)


def given(good: torch.Tensor) -> Argument:
    """Booleans that say which tokens are given."""
    wrong = ("x", 5, NAN, [], good.long(), good.double(), good[:-1], [2.5, "a"], torch.ones(3, 3, 3) > 0, *STRANGERS)
    return Argument(good, wrong, (good.numpy(), good.tolist()))


def times(good: list[float], *wrong: Any) -> Argument:
    """Times in [0, 1]."""
    broken = ([NAN] * len(good), [INF, *good[1:]], [*good[:-1], -1.0], [2.0, *good[1:]], [good], ["a", "b"])
    strange = ("no such thing", [], True, Stranger(), {}, b"4", {"a": 1}, Stranger)
    return Argument(
        good, (*broken, *strange, *wrong), (tuple(good), np.array(good), torch.tensor(good, dtype=torch.float64))
    )


@dataclass(frozen=True)
class Verb:
    """Something to call with good arguments; those named in `positional` are handed over by place."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Argument]

    def good(self) -> dict[str, Any]:
        return {name: argument.good for name, argument in self.arguments.items()}


class World:
    """Small exact models and what is made of them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.masked = et.Process(et.Absorbing(4), et.LogLinear())
        self.uniform = et.Process(et.Uniform(3), et.LogLinear())
        self.p0 = rng.dirichlet(np.ones(81)).reshape(3, 3, 3, 3)
        self.model = et.Table(self.p0, self.masked)
        self.dense = et.Table(self.p0, self.uniform)
        self.data = self.model.draw(24, 1)
        self.clock = et.measure(self.model, self.data, budget=64, orders=["raster"])
        self.grid = et.schedule(self.clock, "ods", steps=2)
        self.plan = et.plan(self.clock, steps=2)
        self.fixed = torch.tensor([True, False, False, False])
        self.network = torch.nn.Sequential(torch.nn.Embedding(4, 8), torch.nn.Linear(8, 4))
        self.rates = {name: np.ones(3) for name in ("total", "activity", "nonadiabatic", "mobility")}
        self.transition = rng.dirichlet(np.ones(3), 3)


def law(good: Any) -> Argument:
    """Probabilities."""
    good = np.asarray(good)
    wrong = (
        good * 2,
        -good,
        good * NAN,
        good * INF,
        good.astype(str),
        [],
        "x",
        None,
        5,
        NAN,
        [["a"]],
        True,
        *STRANGERS,
    )
    return Argument(good, wrong, (good.tolist(), torch.from_numpy(good)))


@cache
def verbs() -> tuple[Verb, ...]:
    """Every public verb, constructor and method that takes arguments."""
    w = World()
    model, clock, grid, schedule_or_plan = thing(w.model), thing(w.clock), thing(w.grid), thing(w.grid)
    data, seed, progress = tokens(w.data, 3), whole(3, None), flag(False)
    batch = Argument("auto", (0, -1, 2.5, NAN, "many", [], True, *STRANGERS))
    fixed, none = given(w.fixed), None
    shaping = {
        "temperature": number(0.5, -1.0),
        "top_p": number(0.5, 0.0, 1.5, -1.0),
        "top_k": whole(2) | none,
        "normalise": flag(True),
    }
    sampler = text("euler", et.Euler)
    estimator = text("cross-entropy")
    process, noise = thing(w.masked), thing(et.LogLinear())
    found: list[Verb] = []

    def add(name: str, call: Callable[..., Any], /, **arguments: Argument) -> None:
        found.append(Verb(name, call, arguments))

    # kernels and noise
    add("Absorbing", et.Absorbing, size=whole(5, 2), mask=whole(2, 0) | none, never=listed([1], [9], [-1]))
    add("Uniform", et.Uniform, size=whole(5, 2))
    add("Mixture", et.Mixture, size=whole(5, 3), uniform=number(0.5, 0.0, 1.0, -1.0, 2.0))
    rates = np.array([[-1.0, 1.0], [2.0, -2.0]])
    wrong = (rates * NAN, rates + 1, -rates, rates[:1], "x", None, 5, [], [["a", "b"]], np.zeros((2, 2)), *STRANGERS)
    pi = Argument(
        np.array([2 / 3, 1 / 3]),
        ([0.5, 0.5], [NAN, 1.0], [1.0], "x", 5, [], [2.0, -1.0], *STRANGERS),
        ([2 / 3, 1 / 3],),
    )
    add("RateMatrix", et.RateMatrix, Q=Argument(rates, wrong, (rates.tolist(),)), pi=pi)
    add("LogLinear", et.LogLinear, eps=number(0.5, 0.0, 1.0, -1.0))
    add("DuoCosine", et.DuoCosine, eps=number(0.5, 0.0, 1.0, -1.0))
    add("Cosine", et.Cosine, eps=number(0.5, 0.0, 1.0, -1.0), power=whole(2))
    add("Geometric", et.Geometric, sigma_min=number(0.5, 0.0, -1.0, 99.0), sigma_max=number(2.0, 0.0, 0.1, 1e300))
    add("Linear", et.Linear, sigma_min=number(0.5, -1.0, 99.0), sigma_max=number(2.0, 0.0, 0.1, 1e300))
    add("Exponential", et.Exponential, base=number(0.5, 0.0, -1.0), growth=number(2.0, 1.0, 0.5, 1e300))
    add("Process", et.Process, kernel=thing(et.Absorbing(4)), noise=noise)
    # models
    name = words("mine")
    add("Table", et.Table, p0=law(w.p0), process=process, name=name)
    add("Independent", et.Independent, p=law(w.p0[0, 0, 0] / w.p0[0, 0, 0].sum()), process=process, name=name)
    chain = {"initial": law(w.transition[0]), "transition": law(w.transition), "length": whole(4)}
    add("MarkovChain", et.MarkovChain, **chain, process=process, name=name)
    spins = thing(et.Process(et.Absorbing(3), et.LogLinear()))
    add("Ising", et.Ising, rows=whole(2), columns=whole(2), coupling=number(0.5, 1e300), process=spins, name=name)
    add("Block", et.Block, model=model, start=whole(0, 0), stop=whole(2))
    add("Ending", et.Ending, model=model, end=whole(1, 0), start=whole(0, 0))
    described = {"length": whole(4), "predicts": text("logits"), "time": text("t") | none, "name": name}
    net = torch.nn.Linear(2, 2)
    add("wrap", et.wrap, function=function(net), process=process, **described, head=function(net) | none)
    add("load", et.load, name=text("countdown-exact"), kernel=text("uniform") | none)
    loading = {"revision": words("main") | none, "trust_remote_code": flag(False)}
    lengths = {
        "length": Argument(None, (*whole(4).wrong[:-5], 32)),
        "block_length": Argument(None, (0, -1, 2.5, "x", 8)),
    }
    lengths["length"] = lengths["length"] | none
    places = {"device": text("cpu") | none, "dtype": text("float32") | none}
    add("load", et.load, name=text("countdown"), **loading, **lengths, **places)
    # measuring
    options = {"budget": whole(16, 16), "seed": seed, "batch_size": batch, "progress": progress}
    orders = listed(["raster"], ["no such order"], [[0, 0, 0, 0]], [2.5], [[0.0, 1.0]])
    orders = Argument(orders.good, (*(v for v in orders.wrong if v != {"a": 1}), {"a": 1}), orders.same)
    add(
        "measure",
        et.measure,
        **{"model": model, "data": data, "fixed": fixed, "tolerance": number(0.5, -1.0), **options},
        orders=orders,
        shape=listed([2, 2], [3], [0, 4], [2.5], ["a"]) | none,
        rows=whole(2) | none,
    )
    at = times([0.5, 1.0], [0.5], [0.0, 0.5], -1, 0, 1, 2.5)
    add("measure", et.measure, model=model, data=data, times=at, samples=whole(2) | none, **options)
    cond = Argument(torch.zeros(24), (torch.zeros(3), [0] * 24, np.zeros(24), 5, "x", torch.tensor(1), *STRANGERS))
    add("measure", et.measure, model=model, data=data, cond=cond, budget=options["budget"])
    self_drawn = {"data": text("self"), "samples": whole(2) | none, "budget": options["budget"]}
    add("measure", et.measure, model=model, **self_drawn)
    add(
        "measure_blocks",
        et.measure_blocks,
        model=model,
        data=data,
        block_length=whole(2),
        fixed=given(w.fixed & False),
        end=whole(1, 0) | none,
        **options,
    )
    rate = text("activity")
    grid_times = times([0.25, 0.5, 0.75])
    grid_times = Argument(grid_times.good, tuple(v for v in grid_times.wrong), grid_times.same)
    add("curve", et.curve, clock=clock, name=rate, times=grid_times)
    add("cumulative", et.cumulative, clock=clock, name=rate, times=grid_times)
    add("wasserstein", et.wasserstein, clock=clock, bound=text("practical"), times=grid_times)
    bad_rates = Argument(
        w.rates, (None, 5, "x", [], NAN, {}, {"total": 1}, {**w.rates, "total": np.ones(2)}, Stranger(), 1j)
    )
    add("wasserstein_bounds", et.wasserstein_bounds, times=grid_times, rates=bad_rates)
    add("exact_rates", et.exact_rates, model=model, times=grid_times)
    down = times([1.0, 0.5, 0.0], [0.5, 0.5], [0.5], [0.0, 1.0])
    exact = {"model": model, "times": down, "law": text("euler")}
    add("exact_costs", et.exact_costs, **exact)
    add("exact_path_error", et.exact_path_error, **exact)
    places_of = listed([0, 1, 2, 3], [0, 0, 1, 2], [0, 1], [2.5] * 4, [])
    counts = listed([2, 2], [0, 4], [5], [-1, 5], [2.5, 1.5], [])
    add("exact_plan_error", et.exact_plan_error, model=model, permutation=places_of, counts=counts)
    # schedules and plans
    steps = whole(2)
    add(
        "schedule",
        lambda clock, strategy, **rest: et.schedule(clock, strategy, **rest),
        clock=clock,
        strategy=text("ods"),
        steps=steps,
        sampler=sampler,
        estimator=estimator,
        seed=seed,
        progress=progress,
    )
    add(
        "schedule",
        lambda source, **rest: et.schedule(source, **rest),
        source=text("uniform"),
        steps=steps,
        process=process,
    )
    add("schedule", lambda **rest: et.schedule("uniform", **rest), steps=steps, model=model)
    add(
        "schedule",
        lambda **rest: et.schedule("jys", **rest),
        steps=whole(2),
        model=model,
        data=data,
        fixed=fixed,
        seed=seed,
    )
    add(
        "schedule",
        lambda times, **rest: et.schedule(times, **rest),
        times=times([1.0, 0.5, 0.0], [0.5, 0.0], [1.0, 0.5, 0.5], [1.0], None, 5),
        process=process,
    )
    add("plan", et.plan, clock=clock, steps=whole(2), order=text("raster", [0, 0], 2.5) | none)
    add(
        "plan",
        et.plan,
        clock=clock,
        order=Argument("raster", (None, "no such thing", 5, NAN, [0, 0], Stranger(), {})),
        counts=counts,
    )
    parts = [et.measure(w.model, w.data, like=w.clock, shard=(i, 2)) for i in range(2)]
    add("merge", et.merge, clocks=listed(parts, [], parts[:1], [parts[0], parts[0]], [parts[0], w.model]))
    along = {"clock": clock, "planned": schedule_or_plan}
    add(
        "path_error",
        et.path_error,
        **along,
        sampler=sampler,
        estimator=estimator,
        **{k: v for k, v in shaping.items() if k != "normalise"},
    )
    add("path_error", et.path_error, **along, shaping=thing(et.Shaping()) | none)
    add(
        "steps_for",
        et.steps_for,
        clock=clock,
        error=number(0.5, 0.0, -1.0),
        strategy=text("uniform"),
        sampler=sampler,
        most=whole(64),
    )
    add("steps_for", et.steps_for, clock=clock, error=number(5.0), strategy=text("plan"), order=text("raster") | none)
    add("nll_bound", et.nll_bound, **along)
    add("diffusers_timesteps", et.diffusers_timesteps, schedule=grid, train_steps=whole(1000))
    add("flow_matching_grid", et.flow_matching_grid, schedule=grid, exponent=number(2.0, 0.0, -1.0, 1e300))
    add("published_grid", et.published_grid, schedule=grid)
    add("block_counts", et.block_counts, schedules=listed([w.grid], []), block_length=whole(4))
    schedule_times = times([1.0, 0.5, 0.0], [0.5, 0.0], [1.0, 0.5, 0.5], None, 5)
    alphas = times([0.0, 0.5, 1.0], [1.0, 0.5, 0.0], None, 5, [0.0, 1.0])
    more = {"noise": noise, "strategy": words("mine"), "provenance": Argument({}, (None, 5, "x", [], NAN))}
    add("Schedule", et.Schedule, times=schedule_times, alphas=alphas, **more)
    add("Schedule.counts", w.grid.counts, length=whole(4))
    add("Schedule.convert", w.grid.convert, noise=noise)
    add("Schedule.from_times", et.Schedule.from_times, times=schedule_times, process=process)
    add("Schedule.save", w.grid.save, path=path("grid.json"))
    plan_counts = Argument(
        (2, 2), (None, 5, "x", (), (0, 4), (5,), (2.5, 1.5), (NAN,), Stranger(), ("a",)), ([2, 2], np.array([2, 2]))
    )
    add("Plan", et.Plan, counts=plan_counts, order=thing(w.plan.order), length=whole(4))
    add("Plan.stops", w.plan.stops, free=whole(4, 0))
    add("Plan.step_of", w.plan.step_of, num_samples=whole(2), seed=seed, fixed=fixed)
    add("Plan.positions", w.plan.positions, num_samples=whole(2), seed=seed, fixed=fixed)
    add("Plan.save", w.plan.save, path=path("plan.json"))
    add("Clock.save", w.clock.save, path=path("clock.safetensors"))
    for shared in (et.Schedule, et.Plan, et.Clock, et.Candidate):
        add(f"{shared.__name__}.load", shared.load, path=Argument(NOT_GOOD, (*path("x").wrong, ".", "missing")))
    certificate = et.path_error(w.clock, w.grid)
    add("Certificate.interval", certificate.interval, level=number(0.5, 0.0, 1.0, -1.0, 2.0))
    add("LikelihoodBound.interval", et.nll_bound(w.clock, w.grid).interval, level=number(0.5, 0.0, 1.0, 2.0))
    blocks = et.measure_blocks(w.model, w.data, block_length=2, budget=16, orders=["raster"])
    add("BlockClocks.plans", blocks.plans, steps=whole(2))
    add("BlockClocks.schedules", blocks.schedules, strategy=text("ods"), steps=whole(2))
    add("BlockClocks.sharing", blocks.sharing, steps=whole(2), strategy=text("plan"), tolerance=number(0.5, -1.0))
    # samplers
    nats = number(0.5, -1.0)
    positive = number(0.5, 0.0, -1.0)
    add("Shaping", et.Shaping, **shaping)
    add("TauLeaping", et.TauLeaping, ordinal=flag(True))
    add("Trapezoidal", et.Trapezoidal, theta=number(0.5, 0.0, 1.0, -1.0))
    add(
        "PredictorCorrector",
        et.PredictorCorrector,
        correctors=whole(1, 0),
        scale=positive,
        entry=number(0.5),
        ordinal=flag(True),
    )
    for chosen in (et.Confidence, et.Margin, et.LowestEntropy):
        add(chosen.__name__, chosen, noise=nats, ties=text("first"))
    add("Confidence", et.Confidence, drawn=flag(True))
    add("EntropyBounded", et.EntropyBounded, bound=nats)
    add("Threshold", et.Threshold, confidence=positive, drawn=flag(True))
    add("Klass", et.Klass, confidence=positive, divergence=positive, history=whole(2), drawn=flag(True))
    add("Prefix", et.Prefix, factor=positive)
    add("OrderBounded", et.OrderBounded, order=text("raster", [0, 0], 2.5), bound=nats)
    felt = Argument(
        np.ones((4, 4)), ("x", NAN, [], [NAN], np.full((4, 4), INF), [["a"]], *STRANGERS), (np.ones((4, 4)).tolist(),)
    )
    add("Apart", et.Apart, dependence=felt, bound=nats)
    add("Remasking", et.Remasking, eta=number(0.5, -1.0, 2.0))
    add("Candidate", et.Candidate, sampler=sampler, planned=thing(w.grid) | none, block_length=whole(2) | none)
    add("Candidate.save", et.Candidate("euler", w.grid).save, path=path("way.json"))
    add(
        "Estimate",
        et.Estimate,
        mean=Argument(0.5, (None, "x", [], 1j, [0.5], True, {}, Stranger())),
        stderr=Argument(0.5, (None, "x", [], 1j, {})),
    )
    # sampling
    drawing = {"num_samples": whole(2), "sampler": sampler, "seed": seed, "batch_size": batch, "progress": progress}
    add(
        "sample",
        et.sample,
        model=model,
        schedule=thing(w.grid),
        **drawing,
        **shaping,
        callback=function(lambda state: None) | none,
    )
    prompt = {"given": tokens(w.data[:2], 3), "fixed": fixed}
    add(
        "sample",
        et.sample,
        model=model,
        schedule=thing(w.grid),
        num_samples=whole(2),
        **prompt,
        guidance=number(1.5, 1e308) | none,
    )
    two = Argument(
        torch.zeros(2), (torch.zeros(5), torch.zeros(1), [0, 0], np.zeros(2), 5, "x", torch.tensor(1), *STRANGERS)
    )
    add(
        "sample",
        et.sample,
        model=model,
        schedule=thing(w.grid),
        num_samples=whole(2),
        cond=two,
        shaping=thing(et.Shaping()) | none,
    )
    for free in ("first-hitting", "threshold"):
        no_grid = Argument(None, (w.grid, 5, "x", [1.0, 0.0], NAN, Stranger()))
        add("sample", et.sample, model=model, schedule=no_grid, num_samples=whole(2), sampler=Argument(free, ()))
    every = listed([w.grid], [], w.grid, [5])
    beginning = tokens(w.data[:2, :2], 3, [], None)
    beginning = Argument(beginning.good, tuple(v for v in beginning.wrong if not _fits(v)), beginning.same)
    more = {"seed": seed, "sampler": sampler, "batch_size": batch, "temperature": shaping["temperature"]}
    add(
        "generate_blocks",
        et.generate_blocks,
        model=model,
        schedules=every,
        prompt=beginning,
        end=whole(1, 0) | none,
        **more,
    )
    pairs = Argument(
        w.data[:2, :2], (None, 5, "x", NAN, [], w.data[:2, :2].double(), w.data[0], w.data[:2] + 7, *STRANGERS)
    )
    after = et.Block(w.model, 2, 4)
    add(
        "generate_canvases",
        et.generate_canvases,
        model=thing(after),
        schedules=every,
        prompt=pairs,
        end=whole(1, 0) | none,
        seed=seed,
    )
    add(
        "generate_windows",
        et.generate_windows,
        model=model,
        schedule=thing(w.grid),
        num_samples=whole(2),
        length=whole(6),
        stride=whole(2),
        **more,
    )
    # judging
    taught = {"fixed": fixed, "references": whole(2), "seed": seed, "batch_size": batch, "progress": progress}
    limits = {"tolerance": positive | none, "budget": whole(64) | none, "shaping": thing(et.Shaping()) | none}
    planned = {"sampler": sampler, "planned": thing(w.grid)}
    ways = {
        "model": model,
        "sampler": Argument("threshold", text("euler").wrong),
        "planned": Argument(None, (w.grid, 5, "x", NAN, [])),
    }
    whole_blocks = {"block_length": whole(2) | none}
    add(
        "nll", et.nll, data=data, sequences=whole(8), **ways, **taught, **limits, **whole_blocks, end=whole(1, 0) | none
    )
    add("nll", et.nll, model=model, data=data, **planned, sequences=whole(8), keep=path("kept.json") | none)
    own = {**taught, "fixed": given(w.fixed & False), "given": tokens(w.data[:2], 3)}
    own["given"] = Argument(own["given"].good, ("x", 5, NAN, w.data.double(), *STRANGERS))
    add("reverse_kl", et.reverse_kl, samples=whole(2), **ways, **own, **limits, **whole_blocks)
    judged = {"candidates": listed([et.Candidate("ancestral", w.grid), et.Candidate("first-hitting")], []) | none}
    judged |= {
        "budget": whole(16, 16),
        "sequences": whole(24),
        "cache_pass": flag(False),
        "seed": seed,
        "progress": progress,
    }
    add("recommend", et.recommend, model=model, data=data, nfe=whole(4) | none, fixed=given(w.fixed & False), **judged)
    add(
        "recommend",
        et.recommend,
        model=model,
        data=data,
        error=number(0.5, 0.0, -1.0) | none,
        clock=thing(w.clock) | none,
        candidates=judged["candidates"],
    )
    compared = {
        "strategies": listed(["uniform"], [], ["no such thing"], [5]),
        "steps": listed([2], [], [0], [2.5], ["a"]),
    }
    compared |= {"samples": whole(2), "sampler": sampler, "estimator": estimator, "seed": seed, "progress": progress}
    add(
        "compare",
        et.compare,
        model=model,
        **compared,
        clock=thing(w.clock) | none,
        data=data,
        metrics=function(lambda x: {"mean": x.double().mean()}) | none,
    )
    rest = {"fixed": fixed, "given": tokens(w.data[:2], 3), "jys_samples": whole(2), "keep": path("rows.json") | none}
    add(
        "compare",
        et.compare,
        model=model,
        strategies=Argument(["uniform"], ()),
        steps=Argument([2], ()),
        samples=Argument(2, ()),
        clock=thing(w.clock) | none,
        **rest,
    )
    page = {
        "strategies": listed(["uniform"], [], ["no such thing"]),
        "counts": listed([2], [], [0], [2.5]),
        "shown": listed([2], [0], [2.5]),
    }
    page |= {
        "samples": whole(1),
        "spell": function(str) | none,
        "shape": Argument(None, (5, "no such thing", [4], [2, 2, 1], [1, 0, 4], [1, 2.5, 1], ["a", "b", "c"])),
        "title": words("mine") | none,
        "seed": seed,
        "progress": progress,
    }
    add(
        "report",
        et.report,
        clock=Argument(w.clock, thing(w.clock).wrong),
        rows=listed([], [5], [{}]),
        model=model | none,
        **page,
    )
    return tuple(found)


NOT_GOOD = object()
"""Stands for a good value of a verb whose good calls are tried elsewhere."""


def _fits(value: Any) -> bool:
    """Prompts of another length, or none, are right for blocks."""
    try:
        shape = np.shape(value)
    except ValueError:
        return True
    integers = np.asarray(value).dtype.kind in "iu"
    return integers and len(shape) == 2 and shape[1] in (1, 4) and np.asarray(value).max(initial=0) < 3


RECORDS = {"BlockClocks", "Certificate", "LikelihoodBound", "Recommendation", "Samples"}
"""What verbs return: nobody makes one by hand, but their methods are called."""
ABSTRACT = {"Model", "Noise", "Sampler"}
NOTHING_TO_PASS = {"Ancestral", "Euler", "FirstHitting", "EigentimeError"}


@dataclass(frozen=True)
class Call:
    """One call, and what must come of it."""

    verb: Verb
    argument: str
    value: Any
    expected: str
    """refused, same or missing."""

    def __str__(self) -> str:
        text = " ".join(repr(self.value).split())
        return f"{self.verb.name}({self.argument}={text[:60]}) → {self.expected}"

    def arguments(self) -> dict[str, Any]:
        good = self.verb.good()
        if self.expected == "missing":
            return {name: value for name, value in good.items() if name != self.argument}
        return {**good, self.argument: self.value}


def calls() -> Iterator[Call]:
    """Every verb with every argument replaced by every value, and with those left out that it cannot do without."""
    for verb in verbs():
        for name, argument in verb.arguments.items():
            for value in argument.wrong:
                yield Call(verb, name, value, "refused")
            if argument.good is NOT_GOOD:
                continue
            for value in argument.same:
                yield Call(verb, name, value, "same")
            parameter = inspect.signature(verb.call).parameters.get(name)
            if parameter is not None and parameter.default is inspect.Parameter.empty:
                yield Call(verb, name, None, "missing")
