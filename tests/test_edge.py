"""The API's edge: a sample of the calls that benchmarks/trust/edge.py makes, and right arguments of unusual kinds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.arguments import checked, listed, number, numbers, optional, place, settle, whole
from test_cli import run  # noqa: F401 - a fixture
from worlds import random_table

ROOT = Path(__file__).parent.parent


def test_bad_calls_get_one_sentence_each():
    """Without the shape checks of the tests, which would refuse some of them first."""
    command = [sys.executable, str(ROOT / "benchmarks" / "trust" / "edge.py"), "--sample"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["calls"] >= 150 and found["command_lines"] >= 10 and found["verbs"] > 60
    assert found["wrong"] == [] and found["uncovered"] == []


def test_checks_let_right_values_through_as_plain_ones():
    for value in (4, np.int64(4), np.array(4), torch.tensor(4), np.uint8(4)):
        assert type(whole(1)(value, "n")) is int and whole(1)(value, "n") == 4
    assert type(number()(np.float32(0.5), "x")) is float and number(0, 1)(1, "x") == 1.0
    assert listed(whole(1))(np.array([1, 2]), "n") == [1, 2] and optional(whole(1))(None, "n") is None
    assert numbers(0, 1)([0.5, 1], "t").tolist() == [0.5, 1.0]
    assert place(Path("a/b"), "out") == Path("a/b")
    for check, value, sentence in (
        (whole(1, 8), 9, r"n must be a whole number of at least 1 and at most 8, not 9\.$"),
        (whole(1), True, "not True"),
        (number(above=0, below=1), 1.0, "above 0 and below 1"),
        (number(), 10**400, "finite number"),
        (listed(whole(1)), "12", "must be a list"),
        (place, "x" * 300, "path of a file"),
    ):
        with pytest.raises(et.EigentimeError, match=sentence):
            check(value, "n")


def test_a_checked_function_keeps_its_defaults_its_name_and_pythons_own_errors():
    @checked(n=whole(1))
    def double(n=3, *, m=0):
        """Twice."""
        return 2 * n + m

    assert double() == 6 and double(np.int64(2), m=1) == 5 and double.__doc__ == "Twice."
    with pytest.raises(TypeError, match="unexpected keyword"):
        double(k=1)
    shaping = et.Shaping()
    settle(shaping, top_p=number())
    assert shaping.top_p == 1.0


def test_numpy_numbers_give_the_same_samples():
    model = random_table(3, 4)
    grid = et.schedule("uniform", steps=np.int64(2), model=model)
    plain = et.sample(model, grid, 4, seed=3)
    assert torch.equal(plain, et.sample(model, grid, np.int64(4), seed=np.int32(3)))


def test_conditions_have_one_row_for_every_sample():
    model = random_table(3, 4)
    grid = et.schedule("uniform", steps=2, model=model)
    for cond in (torch.zeros(5), torch.zeros(2), [0, 0, 0], np.zeros(3)):
        with pytest.raises(et.EigentimeError, match=r"one row for every sample \(3\)"):
            et.sample(model, grid, 3, cond=cond)


def test_what_would_be_ignored_is_refused(tmp_path):
    model = random_table(3, 4)
    grid = et.schedule("uniform", steps=2, model=model)
    with pytest.raises(et.EigentimeError, match="chooses its own steps"):
        et.sample(model, grid, 3, sampler="first-hitting")
    for name in ("countdown", "countdown-exact"):
        with pytest.raises(et.EigentimeError, match="`length` is for language models"):
            et.load(name, length=32)
    (tmp_path / "file").write_text("x")
    with pytest.raises(et.EigentimeError, match="cannot be made"):
        grid.save_pretrained(tmp_path / "file")


def test_steps_for_says_what_is_better():
    model = random_table(3, 4, concentration=0.2)
    clock = et.measure(model, model.draw(64, 1), budget=256, orders=["raster"])
    with pytest.warns(UserWarning, match="exact with 4 evaluations"):
        assert et.steps_for(clock, 1e-3, strategy="uniform", most=4096) > 4
    with pytest.raises(et.EigentimeError, match="one token at a time is exact with 4 evaluations"):
        et.steps_for(clock, 1e-9, strategy="uniform", most=8)
    error = et.plan(clock, 2).predicted_error
    assert float(error) == error.mean


def test_given_tokens_that_were_not_given_in_measuring():
    model, fixed = random_table(3, 4), torch.arange(4) < 1
    data = model.draw(32, 1)
    whole_clock, given_clock = (et.measure(model, data, fixed=each, budget=64) for each in (None, fixed))
    with pytest.warns(UserWarning, match="measured with all tokens free and is used with some given"):
        et.sample(model, et.schedule(whole_clock, "ods", steps=2), 4, given=data[0], fixed=fixed)
    with pytest.warns(UserWarning, match="measured with some tokens given"):
        et.sample(model, et.schedule(given_clock, "ods", steps=2), 4)


def test_comparing_ones_own_network_needs_no_data_where_there_is_a_clock():
    process = et.Process(et.Absorbing(4), et.LogLinear())
    model = et.wrap(lambda x: torch.zeros(*x.shape, 4), process, length=4, time=None)
    clock = et.measure(model, torch.randint(0, 3, (32, 4), generator=torch.Generator().manual_seed(0)), budget=64)
    rows = et.compare(model, ["uniform"], [2], samples=4, clock=clock, metrics=lambda x: {"sum": x.double().sum(1)})
    assert rows[0]["metrics"]["sum"]["mean"] > 0


def test_the_command_line_says_its_version_and_leaves_nothing_behind(run, tmp_path):  # noqa: F811
    code, out, _ = run("--version")
    assert code == 0 and out.strip() == f"eigentime {et.__version__}"
    code, _, err = run("measure", "nonsense")
    assert code == 2 and "et.wrap(network" in err
    np.save(tmp_path / "one.npy", et.load("countdown-exact").draw(1, 0).numpy())
    run("measure", "countdown-exact", "--data", "one.npy", "--budget", "16", "--out", "c.safetensors")
    code, _, err = run("measure", "countdown-exact", "--data", "one.npy", "--budget", "16", "--out", "d.safetensors")
    assert (code == 0) == (tmp_path / "d.safetensors").exists(), err
