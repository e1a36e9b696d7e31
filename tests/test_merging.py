"""A measurement in parts that never meet: any split adds up to the whole, and nothing else is added."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import eigentime as et
from eigentime.cli.app import app
from eigentime.measure.merging import SUMS

DATA = np.random.default_rng(0).integers(0, 5, (70, 8))
TABLE = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def network(kernel="absorbing", shift=0):
    made = et.Absorbing(6) if kernel == "absorbing" else et.Uniform(5)

    def ask(x):
        return TABLE[x, : made.size] + TABLE[x.roll(1 + shift, 1), : made.size]

    return et.wrap(ask, et.Process(made, et.LogLinear()), length=8, time=None, name="table")


PILOTS = {
    "counts": et.measure(network(), DATA, budget=80, tolerance=0),
    "times": et.measure(network(), DATA, times=4, samples=33),
    "orders": et.measure(network(), DATA, budget=48, orders=["farthest", "pairs", "raster"]),
    "paths": et.measure(network("uniform"), DATA, budget=64, tolerance=0),
}
KERNELS = {"paths": "uniform"}


def part(what, i, n, samples, data=DATA, **options):
    options = {"like": PILOTS[what], "shard": (i, n), "samples": samples, **options}
    return et.measure(network(KERNELS.get(what, "absorbing")), data, **options)


def assert_same(one, other):
    for a, b in [(one.measured, other.measured), *((one.orders[k], other.orders[k]) for k in one.orders)]:
        for name in SUMS[type(a)]:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-6)
    for name in ("dependence", "pairs"):
        if getattr(one, name) is not None:
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-6)
    assert {n: (s.of, s.ids) for n, s in one.seen.items()} == {n: (s.of, s.ids) for n, s in other.seen.items()}


@settings(max_examples=12, deadline=None)
@given(st.data(), st.sampled_from(sorted(PILOTS)), st.integers(20, 120))
def test_any_split_merges_to_the_whole(data, what, samples):
    """In any number of parts, added up in any order and in any groups."""
    whole = part(what, 0, 1, samples)
    many = data.draw(st.integers(2, 7 if what != "orders" else 3))
    parts = data.draw(st.permutations([part(what, i, many, samples) for i in range(many)]))
    cut = data.draw(st.integers(1, many - 1))
    left, right = (group[0] if len(group) == 1 else et.merge(group) for group in (parts[:cut], parts[cut:]))
    merged = et.merge([left, right])
    assert_same(merged, whole)
    assert merged.groups == min(32, samples)


def test_the_pilot_is_added_too_and_the_error_bar_shrinks(tmp_path):
    pilot = PILOTS["counts"]
    merged = et.merge([pilot, *(part("counts", i, 3, 56) for i in range(3))])
    grid = et.schedule(pilot, "ods", steps=4)
    one, all_of_them = et.path_error(pilot, grid), et.path_error(merged, grid)
    assert all_of_them.stderr < one.stderr
    assert abs(all_of_them.mean - one.mean) < 4 * one.stderr
    merged.save(tmp_path / "clock")
    again = et.Clock.load(tmp_path / "clock")
    assert again.fingerprint == merged.fingerprint and again.seen == merged.seen
    with pytest.raises(et.EigentimeError, match="counted once"):
        et.merge([again, part("counts", 1, 3, 56)])


def test_a_shard_of_a_normal_measurement_is_its_continuation():
    """All parts of the sequences from the first on are what one pass over them measures."""
    pilot = PILOTS["times"]
    other = replace(pilot, seen={"levels": replace(pilot.seen["levels"], stretches=())})
    other = replace(other, seen={"levels": type(pilot.seen["levels"]).one("none", 0, 70, 0, 33)})
    parts = [et.measure(network(), DATA, like=other, shard=(i, 4), samples=50) for i in range(4)]
    assert_same(et.merge(parts), et.measure(network(), DATA, times=4, samples=50))


WRONG = {
    "counted once": lambda: [part("counts", 0, 2, 40), part("counts", 0, 2, 40)],
    "seeds 0 and 1": lambda: [part("counts", 0, 2, 40), part("counts", 1, 2, 40, seed=1)],
    "in common": lambda: [part("counts", 0, 2, 40), part("counts", 1, 2, 120, data=DATA[:60])],
    "noise levels": lambda: [PILOTS["counts"], part("counts", 1, 2, 40).thinned()],
    "kind of sums|process": lambda: [PILOTS["counts"], PILOTS["paths"]],
    "network": lambda: [part("counts", 0, 2, 40), replace(part("counts", 1, 2, 40), network="another")],
    "older version": lambda: [part("counts", 0, 2, 40), replace(part("counts", 1, 2, 40), seen={})],
    "do not fit": lambda: [PILOTS["counts"], part("counts", 0, 2, 300)],
    "groups are left": lambda: [part("counts", 0, 2, 40), part("counts", 1, 2, 40).take(np.arange(3))],
    "at least two|at least 2": lambda: [PILOTS["counts"]],
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_belong_together_is_refused(words):
    with pytest.raises(et.EigentimeError, match=words):
        et.merge(WRONG[words]())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shard": (0, 2)}, "pilot"),
        ({"shard": (2, 2), "like": "counts"}, "numbers 0 to 1"),
        ({"shard": (0, 90), "like": "counts", "samples": 30}, "do not make 90 parts"),
        ({"shard": (0, 2), "like": "counts", "times": 4}, "leave `times`"),
        ({"shard": (0, 2), "like": "paths"}, "another model or process"),
        ({"shard": "x", "like": "counts"}, "must be a list"),
    ],
)
def test_shards_that_cannot_be(options, words):
    if "like" in options:
        options = {**options, "like": PILOTS[options["like"]]}
    with pytest.raises(et.EigentimeError, match=words):
        et.measure(network(), DATA, **options)


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    np.save("data.npy", DATA)
    Path("mine.py").write_text("from test_merging import network\n")

    def run(*words):
        own = ["--model", "mine.py:network", "--data", "data.npy"] if words[0] == "measure" else []
        return CliRunner().invoke(app, [*words, *own])

    assert run("measure", "--budget", "64", "--out", "pilot").exit_code == 0
    for i in range(2):
        assert (
            run("measure", "--like", "pilot", "--shard", f"{i}/2", "--samples", "60", "--out", f"part-{i}").exit_code
            == 0
        )
    assert run("merge", "part-0", "part-1", "--out", "all").exit_code == 0
    assert et.Clock.load("all").evaluations == sum(et.Clock.load(f"part-{i}").evaluations for i in range(2))
    assert isinstance(run("measure", "--shard", "1").exception, et.EigentimeError)
