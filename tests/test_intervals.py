"""Intervals of certificates and bounds hold what they say, differences are paired, and no pass stops too early."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.intervals import GroupValues, student_interval
from eigentime.measure.groups import GroupFit, fit, group_values, jackknife
from eigentime.schedules.certificate import certificate_of
from worlds import random_table


@pytest.fixture(scope="module")
def world():
    return random_table(3, 4, concentration=0.3)


@pytest.fixture(scope="module")
def clock(world):
    return et.measure(world, budget=256, tolerance=0.0, orders=["raster"])


@pytest.mark.parametrize(("kernel", "seeds", "least"), [("absorbing", 30, 24), ("uniform", 30, 24)])
def test_certificates_cover_the_enumerated_truth(kernel, seeds, least):
    """A small version of benchmarks/coverage_clocks.py: with chances of 93 % so few would be covered once in 100."""
    table = random_table(3, 3, kernel, seed=2, concentration=0.3)
    grid = et.schedule("uniform", steps=3, model=table)
    truth = et.exact_path_error(table, grid.times)
    ours, plain = [], []
    for seed in range(seeds):
        found = et.path_error(et.measure(table, table.draw(64, 100 + seed), budget=64, seed=seed), grid)
        for hits, (low, high) in (
            (ours, found.interval()),
            (plain, student_interval(found.mean, found.stderr, None, 0.95)),
        ):
            hits.append(low <= truth <= high)
    assert sum(ours) >= least and sum(ours) >= sum(plain)


def test_bounds_of_plans_cover_the_enumerated_truth(world):
    """Cross-entropies are skewed: two standard errors miss on the low side."""
    truth = world.entropy + et.exact_plan_error(world, [0, 1, 2, 3], [2, 2])
    covered = []
    for seed in range(30):
        measured = et.measure(world, world.draw(64, 200 + seed), budget=64, seed=seed, orders=["raster"])
        low, high = et.nll_bound(measured, et.plan(measured, order="raster", counts=[2, 2])).interval()
        covered.append(low <= truth <= high)
    assert sum(covered) >= 24


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_no_pass_stops_before_32_sequences(kernel):
    table = random_table(3, 4, kernel)
    data = table.draw(256, 0)
    careless = et.measure(table, data, budget=1024, tolerance=10.0)
    assert careless.groups == 32
    sequences = careless.measured.masked[:, 0].sum() / 4 if kernel == "absorbing" else careless.measured.sequences.sum()
    assert sequences == 32, "it stops at the first look"
    assert careless.evaluations < et.measure(table, data, budget=1024, tolerance=0.0).evaluations
    poor = et.measure(table, data, budget=96, tolerance=10.0)
    assert poor.evaluations > 80, "with fewer sequences the budget is spent"


def test_groups_speak_for_themselves(clock):
    """Of a mean over sequences each group's value is its own mean; their spread is the jackknife's error."""
    orders = clock.ordered
    stops = np.array([0, 2, 4])
    values = group_values(lambda part: part.error("raster", stops), orders)
    alone = [orders.take(np.array([k])).error("raster", stops) for k in range(orders.groups)]
    np.testing.assert_allclose(values, alone, atol=1e-9)
    found = fit(lambda part: part.error("raster", stops), orders)
    assert found.stderr == pytest.approx(jackknife(lambda part: part.error("raster", stops), orders))
    assert found.mean == pytest.approx(orders.error("raster", stops))


def test_differences_are_paired(world, clock):
    one, other = (et.schedule("uniform", steps=steps, model=world) for steps in (2, 3))
    first, second = et.path_error(clock, one), et.path_error(clock, other)
    found = first - second

    def gap(part):
        return part.costs(smooth=False).path(one.alphas) - part.costs(smooth=False).path(other.alphas)

    assert found.mean == pytest.approx(first.mean - second.mean) and found.stderr == pytest.approx(
        jackknife(gap, clock)
    )
    assert found.stderr < np.hypot(first.stderr, second.stderr)
    low, high = found.interval()
    assert low < et.exact_path_error(world, one.times) - et.exact_path_error(world, other.times) < high
    assert str(found).endswith("nats")
    plan = et.plan(clock, 2)
    bounds = [et.nll_bound(clock, planned) for planned in (plan, one)]
    difference = bounds[0] - bounds[1]
    assert difference.stderr < 0.7 * np.hypot(bounds[0].stderr, bounds[1].stderr), "schedules and plans alike"
    assert (bounds[0] - bounds[0]).interval() == (0.0, 0.0)
    assert et.plan(clock, 3).predicted_error - plan.predicted_error, "plans of one clock"


def test_unpaired_differences_are_refused(world, clock):
    grid = et.schedule("uniform", steps=2, model=world)
    elsewhere = et.measure(world, budget=256, tolerance=0.0, seed=1)
    for one, other in (
        (et.path_error(clock, grid), et.path_error(elsewhere, grid)),
        (et.path_error(clock, grid), et.plan(clock, 2).predicted_error),
        (et.nll_bound(clock, grid), et.nll_bound(elsewhere, grid)),
    ):
        with pytest.raises(et.EigentimeError, match="same pass of the same clock"):
            one - other
    with pytest.raises(et.EigentimeError, match="same pass of the same clock"):
        GroupValues((1.0,) * 8) - GroupValues((1.0,) * 8)
    with pytest.raises(et.EigentimeError, match="not measured on sequences"):
        et.path_error(clock, grid) - et.path_error(clock, grid, sampler="first-hitting")


def test_intervals_survive_files(clock, tmp_path):
    plan = et.plan(clock, 2)
    plan.save(tmp_path / "plan.json")
    again = et.Plan.load(tmp_path / "plan.json").predicted_error
    assert again == plan.predicted_error and again.interval() == plan.predicted_error.interval()
    assert (again - plan.predicted_error).mean == 0


def test_open_intervals_warn(world):
    few = et.path_error(et.measure(world, world.draw(5, 0), budget=64), et.schedule("uniform", steps=2, model=world))
    with pytest.warns(UserWarning, match="5 groups of sequences are too few"):
        assert few.interval() == (-np.inf, np.inf)
    with pytest.warns(UserWarning, match="only 2 different sequences"):
        et.measure(world, np.array([[0, 1, 2, 0], [1, 1, 2, 0], [0, 1, 2, 0]]), budget=64)


def test_interpolation_widens_intervals():
    values = tuple(np.random.default_rng(0).normal(size=32).tolist())
    narrow, wide = (GroupValues(values, gap).interval(0.0, 0.95) for gap in (0.0, 1.0))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        ("entropy", "negative by 2 nats, .*not calibrated"),
        ("cross-entropy", "negative by 2 nats, and rightly: .*order"),
    ],
)
def test_negative_errors_are_explained(estimator, words):
    found = GroupFit(-2.0, 0.1, np.linspace(-2.5, -1.5, 16))
    certificate = certificate_of(found, 0.0, 15, "clock", False, estimator, [])
    assert certificate.note and pytest.approx(-2.0) == certificate.mean
    assert re.search(words, str(certificate))
    barely = certificate_of(GroupFit(-0.2, 0.1, found.values), 0.0, 15, "clock", False, estimator, [])
    assert not barely.note, "two standard errors below zero may be chance"


def test_a_network_that_is_too_sure_of_what_it_sees_nothing_of_is_told_by_how_much():
    """Surest where all is masked: its own entropies rise as tokens come, so that long steps seem to gain nats."""
    process = et.Process(et.Absorbing(4), et.LogLinear())

    def logits(x):
        masked = (x == 3).double().mean(1)
        favoured = torch.zeros(*x.shape, 4, dtype=torch.float64)
        favoured[..., 0] = 4 * masked[:, None]
        return favoured

    network = et.wrap(logits, process, length=6, time=None)
    data = torch.randint(3, (128, 6), generator=torch.Generator().manual_seed(0))
    clock = et.measure(network, data, budget=512)
    found = et.path_error(clock, et.schedule("uniform", steps=2, model=network))
    assert found.mean < -0.5 and found.interval()[1] < 0
    assert f"negative by {-found.mean:.3g} nats" in str(found) and "not calibrated" in str(found)
    judged = et.path_error(clock, et.schedule("uniform", steps=2, model=network), estimator="cross-entropy")
    assert judged.mean > 0.5 and not judged.note, "data cost more, as they should"


def test_intervals_know_of_choice_and_of_heavy_tails(clock):
    """What the sequences chose is known less well than what was given; ends move, number and error bar do not."""
    values = tuple((np.random.default_rng(1).exponential(size=24) ** 2).tolist())
    mean = float(np.mean(values))
    plain, chosen, heavy = GroupValues(values), GroupValues(values, chosen=0.5), GroupValues(values, heavy=True)
    assert plain.spread == chosen.spread == heavy.spread
    (low, high), (lower, higher), (same, tail) = (each.interval(mean, 0.95) for each in (plain, chosen, heavy))
    assert lower < low and high < higher and same == low and tail > high
    kept = [replace(each, source="one pass") for each in (plain, chosen, heavy)]
    assert (kept[1] - kept[1]).chosen == 0 and (kept[2] - kept[0]).heavy and (kept[0] - kept[1]).chosen == -0.5
    ods, uniform = et.schedule(clock, "ods", steps=2), et.schedule(clock, "uniform", steps=2)
    assert et.path_error(clock, uniform).groups.chosen == 0 and not et.path_error(clock, ods).groups.heavy
    found = et.path_error(clock, ods).groups
    seeming = clock.costs(smooth=False).path(ods.alphas)
    assert found.chosen == pytest.approx(np.mean(found.values) - seeming)
    kernel = random_table(3, 3, "uniform", seed=2, concentration=0.3)
    assert et.path_error(et.measure(kernel, budget=64), et.schedule("uniform", steps=2, model=kernel)).groups.heavy
