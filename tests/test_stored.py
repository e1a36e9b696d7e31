"""What version 0.1 wrote is read for ever, and what it computed is what is computed now."""

import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_weights

import eigentime as et
import runs
from eigentime.models.ddit import DDiTConfig
from eigentime.training import Recipe, train

RANKED = ("confidence", "margin", "entropy", "entropy-bounded")
"""Samplers that rank tokens: where a network finds many almost equally sure, its rounding decides which come first, so
only exact models can be compared."""
MEASURED_ORDER = "farthest"
"""An order that is made of measured dependences: of nearly equal ones rounding picks one."""
KINDS = {"clocks": runs.clocks, "schedules": runs.schedules, "plans": runs.plans, "losses": runs.losses}


@pytest.fixture(scope="module")
def stored():
    return load_file(runs.STORED / "runs.safetensors")


@pytest.mark.parametrize("kind", KINDS)
def test_measurements_are_what_they_were(stored, kind):
    for name, parts in KINDS[kind]():
        for part, array in parts.items():
            before = stored[f"{name}/{part}"]
            if name == "orders.countdown" and part.startswith(MEASURED_ORDER):
                continue
            if part == "tokens":
                assert_draws(array, before, name)
            else:
                np.testing.assert_allclose(array, before, **tolerance(kind, name, before), err_msg=f"{name}/{part}")


def tolerance(kind, name, before):
    """Exact models agree to 1e-6. Networks round in single precision, each kind of CPU in its own way: the very code
    that wrote the stored runs differs by so much from itself on another one. Losses are in single precision now."""
    if kind == "losses":
        return {"rtol": 5e-4, "atol": 1e-4}
    largest = np.abs(before[np.isfinite(before)]).max(initial=0.0)
    return {"rtol": 1e-4, "atol": 1e-6 * largest} if "countdown" in name else {"rtol": 1e-6, "atol": 1e-7}


def test_samples_are_what_they_were(stored):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Euler's steps are clipped, then as now
        for name, parts in runs.samples():
            for part, array in parts.items():
                if part in RANKED and name.startswith("sample.countdown"):
                    continue
                if part == "predictor-corrector" and name.endswith(("uniform", "rate-matrix")):
                    continue  # one uniform per token now: the same law (tests/test_conventions.py), other draws
                assert_draws(array, stored[f"{name}/{part}"], f"{name}/{part}")


def assert_draws(tokens, before, name):
    """All sequences alike, but for one where rounding may have turned a draw."""
    assert tokens.shape == before.shape, name
    assert (tokens != before).any(1).sum() <= 1, name


@pytest.mark.parametrize("name", ["clock", "clock-uniform", "clock-orders"])
def test_clocks_of_0_1_load(name):
    clock = et.Clock.load(runs.STORED / f"{name}.safetensors")
    kind = "uniform" if name.endswith("uniform") else "absorbing"
    assert clock.process["kernel"]["name"] == kind and clock.length == 5 and clock.exact
    grid = et.schedule(clock, "ods", steps=3)
    error = et.path_error(clock, grid)
    assert 0 < error.mean < 2 and error.stderr < error.mean
    if name == "clock-orders":
        assert list(clock.orders) == ["random", "low-discrepancy", "raster"]
        assert et.plan(clock, steps=3).counts == et.Plan.load(runs.STORED / "plan.json").counts
        assert grid.times.tolist() == pytest.approx(et.Schedule.load(runs.STORED / "schedule.json").times.tolist())


def test_schedules_and_plans_of_0_1_load_and_drive_a_sampler():
    model = runs.tables()["absorbing"]
    grid = et.Schedule.load(runs.STORED / "schedule.json")
    assert grid.strategy == "ods" and grid.steps == 3 and grid.provenance["model"] == model.name
    plan = et.Plan.load(runs.STORED / "plan.json")
    assert sum(plan.counts) == 5 and plan.predicted_error.stderr > 0
    for planned in (grid, plan):
        model.process.check_tokens(et.sample(model, planned, 4), "samples")


def test_a_model_of_0_1_loads():
    model = et.load(str(runs.STORED / "model"))
    assert model.length == 5 and model.process.absorbing and model.about["recipe"]["steps"] == 6
    assert torch.isfinite(model(torch.full((1, 5), 4), torch.ones(1, dtype=torch.float64))[..., :4]).all()


def test_training_goes_on_from_a_checkpoint_of_0_1(tmp_path):
    table = runs.tables()["absorbing"]
    shape = DDiTConfig(size=5, width=16, blocks=1, heads=2, cond_width=8)
    process = et.Process(et.Absorbing(5), et.LogLinear())
    recipe = Recipe("stored", process, 5, shape, steps=40, batch=4, learning_rate=1e-3, warmup=2, cooldown=0.0)
    shutil.copytree(runs.STORED / "run", tmp_path / "resumed")
    seen = []
    for folder in ("resumed", "whole"):
        train(
            recipe,
            table.draw(32, 1),
            table.draw(8, 2),
            tmp_path / folder,
            advance=lambda step, total, latest: seen.append(step),
        )
    assert seen[0] == 5 and seen[36] == 1  # the first went on, the second began
    resumed, whole = (load_weights(tmp_path / folder / "model.safetensors") for folder in ("resumed", "whole"))
    for name in whole:
        assert torch.allclose(resumed[name], whole[name], rtol=1e-4, atol=1e-6), name
