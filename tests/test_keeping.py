"""A run that is interrupted goes on where it was, and ends with what an uninterrupted one ends with."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import eigentime as et
from eigentime.cli.app import app
from eigentime.journal import Journal
from eigentime.ledger import Ledger
from eigentime.models.wrap import Wrapped
from eigentime.samplers.portions import Portions

DATA = np.random.default_rng(0).integers(0, 5, (64, 8))
TABLE = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def network(kernel="absorbing"):
    made = et.Absorbing(6) if kernel == "absorbing" else et.Uniform(5)

    def ask(x):
        return TABLE[x, : made.size] + TABLE[x.roll(1, 1), : made.size]

    return et.wrap(ask, et.Process(made, et.LogLinear()), length=8, time=None, name="table")


@pytest.fixture
def failing(monkeypatch):
    """Makes networks fail as a machine does, after so many calls from now on."""
    ask = Wrapped._output

    def after(calls):
        left = [calls]

        def failing(self, *arguments):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return ask(self, *arguments)

        monkeypatch.setattr(Wrapped, "_output", failing)

    yield after
    monkeypatch.setattr(Wrapped, "_output", ask)


def saved(clock, path):
    clock.save(path)
    return path.read_bytes()


def in_pieces(run, failing, calls):
    """Run again and again, so many calls of the network each time, until it comes to its end; says how often."""
    for times in range(1, 200):
        failing(calls)
        try:
            return run(), times
        except KeyboardInterrupt:
            pass
    raise AssertionError("it never ends")


MEASURED = {
    "counts": {"budget": 160, "tolerance": 0},
    "times": {"times": 5, "samples": 24},
    "orders": {"budget": 64, "orders": ["low-discrepancy", "farthest", "pairs", list(range(8))]},
    "rows": {"budget": 96, "rows": 2, "cond": None, "fixed": np.arange(8) < 2},
    "chain": {"budget": 400, "tolerance": 0, "kernel": "uniform"},
}


CALLS = {"chain": 50}
"""A path is measured at all levels, or not."""


@pytest.mark.parametrize("what", MEASURED)
def test_a_measurement_in_pieces_is_the_same_to_the_last_bit(what, tmp_path, failing):
    options = {"batch_size": 8, **MEASURED[what]}
    model, keep = network(options.pop("kernel", "absorbing")), tmp_path / "kept"
    whole = saved(et.measure(model, DATA, **options), tmp_path / "whole.safetensors")
    clock, times = in_pieces(lambda: et.measure(model, DATA, keep=keep, **options), failing, CALLS.get(what, 9))
    assert saved(clock, tmp_path / "pieces.safetensors") == whole
    assert times > 1
    failing(2)  # the look at the network beforehand, and nothing else: all else is known
    assert saved(et.measure(model, DATA, keep=keep, **options), tmp_path / "again.safetensors") == whole


def test_a_larger_budget_goes_on_from_a_smaller_one(tmp_path, failing):
    model, options = network(), {"tolerance": 0, "batch_size": 8}
    et.measure(model, DATA, budget=96, keep=tmp_path / "kept", **options)
    whole = saved(et.measure(model, DATA, budget=400, **options), tmp_path / "a")
    clock, _ = in_pieces(lambda: et.measure(model, DATA, budget=400, keep=tmp_path / "kept", **options), failing, 48)
    assert saved(clock, tmp_path / "b") == whole


@pytest.mark.parametrize("sampler", ["ancestral", "entropy-bounded"])
def test_samples_in_pieces_are_the_same(sampler, tmp_path, failing):
    model = network()
    grid = et.schedule("uniform", steps=4, model=model) if sampler == "ancestral" else None
    options = {"sampler": sampler, "seed": 3, "given": DATA[:40], "fixed": np.arange(8) < 1, "batch_size": 4}
    whole = et.sample(model, grid, 40, **options)
    pieces, times = in_pieces(lambda: et.sample(model, grid, 40, keep=tmp_path / "kept", **options), failing, 30)
    assert times > 1 and torch.equal(pieces, whole)
    assert pieces.nfe == pytest.approx(whole.nfe) or sampler != "ancestral"
    assert torch.equal(pieces.info.spent, whole.info.spent)
    torch.testing.assert_close(pieces.log_q, whole.log_q)
    more = et.sample(model, grid, 40, keep=tmp_path / "kept", **options)
    assert torch.equal(more, whole)


def test_a_recommendation_in_pieces_is_the_same(tmp_path, failing):
    model, options = network(), {"nfe": 3, "budget": 32, "sequences": 16}
    whole = et.recommend(model, DATA, **options)
    found, times = in_pieces(lambda: et.recommend(model, DATA, keep=tmp_path / "kept", **options), failing, 120)
    assert times > 1 and str(found) == str(whole) and found.evaluations == whole.evaluations
    assert [each.nats for each in found.frontier] == [each.nats for each in whole.frontier]


@pytest.mark.parametrize(
    ("changed", "named"), [({"seed": 1}, "seed"), ({"data": DATA[:32]}, "data"), ({"rows": 2}, "rows")]
)
def test_progress_of_something_else_is_refused(changed, named, tmp_path):
    model, path = network(), tmp_path / "kept"
    et.measure(model, DATA, budget=32, keep=path)
    before = path.read_bytes()
    with pytest.raises(et.EigentimeError, match=f"another {named}"):
        et.measure(model, **{"data": DATA, "budget": 32, "keep": path, **changed})
    assert path.read_bytes() == before
    (tmp_path / "other").write_text("something of somebody's own\n")
    with pytest.raises(et.EigentimeError, match="no progress"):
        et.measure(model, DATA, budget=32, keep=tmp_path / "other")
    assert (tmp_path / "other").read_text() == "something of somebody's own\n"


def test_torn_and_damaged_records_are_not_there(tmp_path):
    path, made_with = tmp_path / "kept", {"seed": 0}
    journal = Journal(path, made_with)
    for k in range(5):
        journal.add({"name": "x", "first": k, "rows": {"values": np.arange(3.0) + k}})
    journal.close()
    whole = path.read_bytes()
    ends = [k + 1 for k, byte in enumerate(whole) if byte == 10]
    for end in range(ends[0], len(whole), 7):
        path.write_bytes(whole[:end])
        again = Journal(path, made_with)
        found = again.read()
        assert [record["first"] for record in found] == list(range(sum(stop <= end for stop in ends) - 1))
        again.add({"name": "y", "content": 1})
        again.close()
        assert Journal(path, made_with).read()[-1] == {"name": "y", "content": 1}
    flipped = bytearray(whole)
    flipped[ends[1] + 40] ^= 1
    path.write_bytes(flipped)
    assert [record["first"] for record in Journal(path, made_with).read()] == [0, 2, 3, 4]


def test_one_run_at_a_time(tmp_path):
    with Ledger(tmp_path / "kept", {"a": 1}) as first:
        first.rows("x", 0, 2, Portions(1), lambda start, number: {"v": np.arange(number)})
        with pytest.raises(et.EigentimeError, match="in use"):
            Ledger(tmp_path / "kept", {"a": 1})
    Ledger(tmp_path / "kept", {"a": 1}).close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence_and_costs_nothing_that_was_finished(tmp_path):
    journal = Journal(tmp_path / "kept", {})
    journal.add({"name": "x", "content": 1})
    journal._file.close()
    journal._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
    with pytest.raises(et.EigentimeError, match=r"No space left.*the same call goes on"):
        journal.add({"name": "x", "content": 2})
    assert [record["content"] for record in Journal(tmp_path / "kept", {}).read()] == [1]


COMMAND = ["measure", "countdown", "--budget", "160", "--tolerance", "0", "--json", "--seed", "1", "--out"]


def test_a_killed_command_goes_on(tmp_path):
    """The same file as without interruption, and nothing left beside it."""
    out, partial = tmp_path / "clock.safetensors", tmp_path / "clock.safetensors.partial"
    running = subprocess.Popen([sys.executable, "-m", "eigentime", *COMMAND, str(out)], stdout=subprocess.DEVNULL)
    began = time.monotonic()
    while not partial.exists() or partial.stat().st_size < 2500:
        assert running.poll() is None and time.monotonic() - began < 60
        time.sleep(0.01)
    running.kill()
    running.wait(60)
    assert partial.exists() and not out.exists()
    assert CliRunner().invoke(app, [*COMMAND, str(out)]).exit_code == 0
    assert os.listdir(tmp_path) == [out.name]
    whole = et.measure(et.load("countdown"), budget=160, tolerance=0, seed=1)
    assert saved(whole, tmp_path / "whole") == out.read_bytes()


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("measure --out {}", 30),
        ("sample --steps 9 --num-samples 300 --out {}", 70),
        ("recommend --nfe 3 --sequences 16 --budget 32 --out {}", 200),
        ("compare --steps 8,16 --samples 8 --strategies uniform,ods --json {}", 40),
    ],
)
def test_ctrl_c_says_how_to_go_on(command, calls, tmp_path, failing, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", DATA)
    Path("mine.py").write_text("from test_keeping import network\n")
    command = [*command.format("out").split(), "--model", "mine.py:network", "--data", "data.npy"]
    times = 0
    while not os.path.exists("out"):
        times += 1
        failing(calls)
        found = CliRunner().invoke(app, command)
        if found.exit_code:
            assert found.exit_code == 130 and "same command goes on" in found.stderr, found.stderr
            assert list(tmp_path.glob("out.partial*")) and not os.path.exists("out")
    assert times > 1
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"data.npy", "mine.py", "out"}
