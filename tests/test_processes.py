"""Several processes do one run: they end with what one ends with, and a lost one costs little."""

import json
import multiprocessing
import os
import pickle
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed

import eigentime as et
from eigentime import ranks
from eigentime.measure.merging import SUMS
from eigentime.models.wrap import Wrapped
from eigentime.training import train
from test_training import tiny, tiny_data, weights_of

DATA = np.random.default_rng(0).integers(0, 5, (64, 8))
TABLE = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked"),
]


def network(kernel="absorbing"):
    made = et.Absorbing(6) if kernel == "absorbing" else et.Uniform(5)

    def ask(x):
        return TABLE[x, : made.size] + TABLE[x.roll(1, 1), : made.size]

    return et.wrap(ask, et.Process(made, et.LogLinear()), length=8, time=None, name="table")


def _process(work, rank, count, port, out):
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(count)}
    distributed.init_process_group("gloo")
    try:
        found = work(rank)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    (out / f"{rank}").write_bytes(pickle.dumps(found))
    os._exit(0)


def together(count, work, out, start="fork"):
    """What each of so many processes returns; None of those that died."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context(start)
    running = [context.Process(target=_process, args=(work, k, count, port, out)) for k in range(count)]
    for each in running:
        each.start()
    for each in running:
        each.join(60)
        assert each.exitcode is not None
    found = [out / f"{k}" for k in range(count)]
    return [pickle.loads(path.read_bytes()) if path.exists() else None for path in found]


def everything(rank):
    """All verbs that share work."""
    model, uniform = network(), network("uniform")
    clock = et.measure(model, DATA, budget=120, tolerance=0, orders=["low-discrepancy", "pairs"], batch_size=4)
    grid = et.schedule(clock, "ods", steps=3)
    return {
        "clock": clock,
        "paths": et.measure(uniform, DATA, budget=200, tolerance=0.05, batch_size=4),
        "times": et.measure(model, DATA, times=5, samples=24),
        "samples": et.sample(model, grid, 50, batch_size=4).numpy(),
        "adaptive": et.sample(model, None, 50, sampler="entropy-bounded").log_q.numpy(),
        "nll": et.nll(model, DATA, "ancestral", grid, sequences=40),
        "reverse": et.reverse_kl(model, "ancestral", grid, samples=20).values,
        "recommended": et.recommend(model, DATA, nfe=3, sequences=16, budget=32),
        "rows": et.compare(model, ["uniform"], [2], samples=9, data=DATA, clock=clock, metrics=own_metric),
    }


def own_metric(tokens):
    return tokens.double().mean(1)


def test_three_processes_find_what_one_finds(tmp_path):
    """The same clock to rounding, whatever is adaptive in it, and the same samples to the last bit."""
    alone = everything(0)
    for found in together(3, everything, tmp_path):
        for name in ("clock", "paths", "times"):
            mine, other = alone[name], found[name]
            assert mine.evaluations == other.evaluations and mine.seen == other.seen
            for sums in SUMS[type(mine.measured)]:
                np.testing.assert_allclose(getattr(other.measured, sums), getattr(mine.measured, sums), rtol=1e-5)
        np.testing.assert_allclose(found["clock"].pairs, alone["clock"].pairs, rtol=1e-5)
        for order in alone["clock"].orders:
            mine, other = alone["clock"].orders[order], found["clock"].orders[order]
            np.testing.assert_allclose(other.entropy, mine.entropy, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found["samples"], alone["samples"])
        np.testing.assert_allclose(found["adaptive"], alone["adaptive"], rtol=1e-5)
        np.testing.assert_allclose(found["nll"].nats.values, alone["nll"].nats.values, rtol=1e-5)
        np.testing.assert_allclose(found["nll"].by_step, alone["nll"].by_step, rtol=1e-5)
        np.testing.assert_allclose(found["reverse"], alone["reverse"], rtol=1e-4, atol=1e-5)
        assert str(found["recommended"].candidate) == str(alone["recommended"].candidate)
        assert found["rows"][0]["metrics"] == alone["rows"][0]["metrics"]


def counted(rank):
    """Messages and bytes beside evaluations, of counts and of paths."""
    found = []
    for kernel in ("absorbing", "uniform"):
        before = ranks.here().messages, ranks.here().sent
        clock = et.measure(network(kernel), DATA, budget=600, tolerance=0, batch_size=8)
        now = ranks.here().messages, ranks.here().sent
        found.append((clock.evaluations, now[0] - before[0], now[1] - before[1]))
    return found


def test_messages_are_few_and_small(tmp_path):
    """A few numbers for every evaluation, in a message for every hundred; as many for every rank."""
    first, second = together(2, counted, tmp_path)
    assert [each[:2] for each in first] == [each[:2] for each in second]
    for (evaluations, messages, sent), most in zip(first, (60, 1500), strict=True):
        assert messages < evaluations / 16 + 40
        assert sent / evaluations < most


def other_data(rank):
    return et.measure(network(), DATA[: 32 + rank], budget=64)


def refused_by_one(rank):
    et.measure(network(), DATA, budget=64, keep=Path(os.environ["KEPT"]))
    return et.measure(network(), DATA, budget=64, seed=1, keep=Path(os.environ["KEPT"]))


def test_what_one_refuses_all_refuse(tmp_path, monkeypatch):
    assert all("do not do the same" in found for found in together(2, other_data, tmp_path))
    monkeypatch.setenv("KEPT", str(tmp_path / "kept"))
    assert all("another seed" in found for found in together(3, refused_by_one, tmp_path))


def killed(rank):
    """Process 1 dies when something is kept."""
    kept = Path(os.environ["KEPT"])

    def ask(x):
        if rank == 1 and kept.exists() and kept.stat().st_size > 9000:
            os.kill(os.getpid(), 9)
        return TABLE[x] + TABLE[x.roll(1, 1)]

    model = et.wrap(ask, et.Process(et.Absorbing(6), et.LogLinear()), length=8, time=None, name="table")
    return et.measure(model, DATA, budget=1200, tolerance=0, keep=kept, batch_size=4)


def gone_on(rank):
    before = Path(os.environ["KEPT"]).stat().st_size
    model = network()
    return before, et.measure(model, DATA, budget=1200, tolerance=0, keep=os.environ["KEPT"], batch_size=4)


def test_a_killed_process_ends_the_run_and_two_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(Wrapped, "fingerprint", property(lambda self: "the table"))
    monkeypatch.setenv("KEPT", str(tmp_path / "kept"))
    began = time.monotonic()
    first, lost, third = together(3, killed, tmp_path)
    assert time.monotonic() - began < 50
    assert lost is None
    for found in (first, third):
        assert found.startswith("ProcessLost: Another process of this run has ended") and found.count("\n") == 0
    (before, clock), _ = together(2, gone_on, tmp_path)
    assert before > 9000
    whole = et.measure(network(), DATA, budget=1200, tolerance=0, batch_size=4)
    assert clock.evaluations == whole.evaluations
    for sums in SUMS[type(whole.measured)]:
        np.testing.assert_allclose(getattr(clock.measured, sums), getattr(whole.measured, sums), rtol=1e-5)


def plain():
    return tiny(steps=6, network=replace(tiny().network, dropout=0.0))  # it would draw for other sequences


def trained(rank):
    train(plain(), tiny_data(), tiny_data(), Path(os.environ["KEPT"]))


def test_two_processes_train_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("KEPT", str(tmp_path / "two"))
    assert together(2, trained, tmp_path, "spawn") == [None, None]  # after a backward pass nobody may fork
    train(plain(), tiny_data(), tiny_data(), tmp_path / "one")
    one, two = weights_of(tmp_path / "one"), weights_of(tmp_path / "two")
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-5)
    logs = [json.loads((tmp_path / name / "log.json").read_text()) for name in ("one", "two")]
    assert [each["training"] for each in logs[1]] == pytest.approx([each["training"] for each in logs[0]], rel=1e-4)
