"""Small seeded runs of everything, to compare one core with the next.

`python tests/runs.py` writes what they return to tests/stored/runs.safetensors, and one file of each kind as this
version writes it beside it. The files that are there were written by version 0.1: they are not to be written again
but read for ever.
"""

import contextlib
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

import eigentime as et
from eigentime.models.ddit import DDiTConfig
from eigentime.process.randomness import Purpose, uniforms
from eigentime.tasks import RECIPES
from eigentime.training.losses import LOSSES
from worlds import random_table

STORED = Path(__file__).parent / "stored"
SCHEDULED = ["ancestral", "euler", "tau-leaping", "trapezoidal", "predictor-corrector"]
CHOOSING = ["confidence", "margin", "entropy", "remasking"]
AS_STORED = {
    "confidence": et.Confidence(drawn=True),
    "threshold": et.Threshold(drawn=True),
    "klass": et.Klass(drawn=True),
}
"""Version 0.1 scored the values that were drawn."""
UNSCHEDULED = ["entropy-bounded", "threshold", "klass", "first-hitting"]
STRATEGIES = ["uniform", "cosine", "fisher-rao", "eds", "wds", "eds-data", "wds-data", "sqrt-slope", "ods"]
SAMPLES = {True: 16, False: 4}


def tables():
    """Exact worlds, one for each kernel."""
    return {kernel: random_table(4, 5, kernel, seed=3) for kernel in ("absorbing", "uniform", "rate-matrix")}


def networks():
    """Bundled networks: posterior, score, cavity."""
    return {name: et.load(name) for name in ("countdown", "countdown-sedd", "countdown-uniform")}


def arrays_of(clock):
    """What a clock holds, as arrays."""
    found = {part.name: np.asarray(getattr(clock.measured, part.name), dtype=float) for part in fields(clock.measured)}
    for name, profile in clock.orders.items():
        found |= {f"{name}.entropy": profile.entropy, f"{name}.cross": profile.cross}
    return found


def data_for(model, count=48):
    """Clean sequences: an exact model's own, or countdown's."""
    return model.draw(count, 5) if model.exact else et.load("countdown-exact").draw(count, 5)


def measured(model, orders=()):
    return et.measure(model, data_for(model), budget=192 if model.exact else 64, seed=2, orders=orders)


def clocks():
    for name, model in (tables() | networks()).items():
        yield f"clock.{name}", arrays_of(measured(model))
    for model in (tables()["absorbing"], networks()["countdown"]):
        yield f"orders.{model.name}", arrays_of(measured(model, ["low-discrepancy", "raster", "farthest"]))
    fixed = torch.arange(5) < 2
    for name, model in tables().items():
        yield f"given.{name}", arrays_of(et.measure(model, data_for(model), fixed=fixed, budget=96, seed=2))


def schedules():
    for name, model in (tables() | networks()).items():
        clock = measured(model)
        grids = {strategy: et.schedule(clock, strategy, steps=4) for strategy in STRATEGIES}
        found = {strategy: grid.times for strategy, grid in grids.items()}
        for law in ("ancestral", "euler", "tau-leaping"):
            for strategy in ("uniform", "wds", "ods"):
                error = et.path_error(clock, grids[strategy], sampler=law)
                found[f"error.{law}.{strategy}"] = np.array([error.mean, error.stderr])
        yield f"schedule.{name}", found
    for name in ("absorbing", "uniform"):
        model = tables()[name]
        grid = et.schedule("jys", steps=4, model=model, data=data_for(model, 16))
        yield f"jys.{name}", {"times": grid.times, "evaluations": np.array([grid.provenance["evaluations"]], float)}


def plans():
    for model in (tables()["absorbing"], networks()["countdown"], networks()["countdown-sedd"]):
        clock = measured(model, ["low-discrepancy", "raster"])
        plan = et.plan(clock, steps=4)
        grid = et.schedule(clock, "ods", steps=4)
        bounds = [et.nll_bound(clock, planned).mean for planned in (plan, grid)]
        error = plan.predicted_error
        yield (
            f"plan.{model.name}",
            {
                "counts": np.array(plan.counts),
                "error": np.array([error.mean, error.stderr, *bounds]),
                "tokens": et.sample(model, plan, SAMPLES[model.exact], seed=1).numpy(),
            },
        )


def samples():
    for name, model in (tables() | networks()).items():
        count = SAMPLES[model.exact]
        grid = et.schedule("cosine" if model.process.absorbing else "uniform", steps=4, model=model)
        found = {
            sampler: et.sample(model, grid, count, sampler=AS_STORED.get(sampler, sampler), seed=1)
            for sampler in [*SCHEDULED, *(CHOOSING if model.process.absorbing else ())]
        }
        if model.process.absorbing:
            found["normalised"] = et.sample(model, grid, count, seed=1, normalise=True)
            for sampler in UNSCHEDULED if model.exact else ("entropy-bounded",):
                chosen = et.EntropyBounded(4.0) if not model.exact else AS_STORED.get(sampler, sampler)
                found[sampler] = et.sample(model, None, count, sampler=chosen, seed=1)
        else:
            found["ordinal"] = et.sample(model, grid, count, sampler=et.TauLeaping(ordinal=True), seed=1)
        sharpened = {"temperature": 0.7, "top_p": 0.9}
        found["shaped"] = et.sample(model, grid, count, seed=1, **sharpened)
        given, fixed = data_for(model, count), torch.arange(model.length) < 2
        found["given"] = et.sample(model, grid, count, seed=1, given=given, fixed=fixed)
        if model.process.absorbing:
            found["guided"] = et.sample(model, grid, count, seed=1, given=given, fixed=fixed, guidance=1.5)
        yield f"sample.{name}", {key: value.numpy() for key, value in found.items()}
    model = networks()["countdown"]
    grid = et.schedule("cosine", steps=3, model=model)
    blocks, _ = et.generate_blocks(model, [grid, grid], data_for(model, 3)[:, :128], seed=1)
    windows, _ = et.generate_windows(model, grid, 2, 384, 128, seed=1)
    yield "blocks", {"blocks": blocks.numpy(), "windows": windows.numpy()}


def losses():
    for name in networks():
        model, (_, recipe) = et.load(name), RECIPES[name]
        x0 = data_for(model, 6)
        t = torch.linspace(0.05, 1.0, len(x0), dtype=torch.float64)
        u = [uniforms(4, purpose, *x0.shape) for purpose in (Purpose.CORRUPT, Purpose.REPLACE)]
        x = model.process.corrupt(x0, t, *u)
        with torch.no_grad():
            values = LOSSES[recipe.network.head](model.network, model.process, x0, x, t, 0)
        yield f"loss.{name}", {"values": values.double().numpy()}


def all_runs():
    """Everything, by name and part."""
    for group in (clocks, schedules, plans, samples, losses):
        for name, parts in group():
            for part, array in parts.items():
                yield f"{name}/{part}", np.ascontiguousarray(array)


def write_files(folder):
    """One file of each kind."""
    from eigentime.training import Recipe, train

    table, chain = tables()["absorbing"], tables()["uniform"]
    clock = measured(table, ["low-discrepancy", "raster"])
    measured(table).save(folder / "clock.safetensors")
    measured(chain).save(folder / "clock-uniform.safetensors")
    clock.save(folder / "clock-orders.safetensors")
    et.schedule(clock, "ods", steps=3).save(folder / "schedule.json")
    et.plan(clock, steps=3).save(folder / "plan.json")
    process = et.Process(et.Absorbing(5), et.LogLinear())
    shape = DDiTConfig(size=5, width=16, blocks=1, heads=2, cond_width=8)
    recipe = Recipe("stored", process, 5, shape, steps=6, batch=4, learning_rate=1e-3, warmup=2)
    train(recipe, table.draw(32, 1), table.draw(8, 2), folder / "model")
    # a run that stopped half-way: the same recipe goes on from it
    half = replace(recipe, steps=40, cooldown=0.0)
    with contextlib.suppress(KeyboardInterrupt):
        train(half, table.draw(32, 1), table.draw(8, 2), folder / "run", advance=_stop_after(4))


def _stop_after(steps):
    import eigentime.training.loop as loop

    loop.SAVE_SECONDS = 0.0  # every step is saved

    def advance(step, total, latest):
        if step > steps:
            raise KeyboardInterrupt

    return advance


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    STORED.mkdir(exist_ok=True)
    save_file(dict(all_runs()), STORED / "runs.safetensors")
    write_files(STORED)
