"""Orders, what tokens cost in them, and plans: against enumeration."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.measure.ordered import PlanCosts, plan_levels
from eigentime.orders import ORDERS, is_pairwise, make_order, offsets, order_from_spec
from eigentime.schedules.planning import best_aligned_stops, plan_errors
from eigentime.tasks import MODELS
from worlds import clean_law, random_table, states


def order_of(name, length):
    shape = (2, length // 2) if length % 2 == 0 else (length,)
    near = np.exp(-np.arange(length) / 3.0)
    return make_order(name, shape, near[offsets((length,))] if is_pairwise(name) else near)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(list(ORDERS)), st.integers(1, 33), st.integers(0, 2**32), st.integers(0, 2**32))
def test_ranks_number_the_free_tokens_whatever_the_split(name, length, seed, given_seed):
    free = torch.rand(5, length, generator=torch.Generator().manual_seed(given_seed)) < 0.7
    order = order_of(name, length)
    ranks = order.ranks(free, seed)
    for row, mask in zip(ranks, free, strict=True):
        assert sorted(row[mask].tolist()) == list(range(int(mask.sum())))
        assert (row[~mask] == -1).all()
    assert torch.equal(ranks[2:], order.ranks(free[2:], seed, first=2))
    assert torch.equal(ranks, order_from_spec(order.spec()).ranks(free, seed))


@pytest.mark.parametrize("length", [16, 100, 255, 256])
def test_low_discrepancy_lies_evenly_after_every_power_of_two(length):
    ranks = make_order("low-discrepancy").ranks(torch.ones(3, length, dtype=torch.bool), 4)
    for row in ranks:
        for known in (2, 4, 8):
            places = (row < known).nonzero().squeeze(1).tolist()
            gaps = [b - a for a, b in pairwise([*places, places[0] + length])]
            assert max(gaps) - min(gaps) <= 1
    assert not torch.equal(ranks[0], ranks[1]), "the shift is drawn per sequence"


def test_a_prompt_leaves_its_gap_to_the_order():
    free = torch.ones(1, 20, dtype=torch.bool)
    free[:, :12] = False
    places = make_order("low-discrepancy").ranks(free, 0)[0]
    assert abs(int((places == 0).nonzero()) - int((places == 1).nonzero())) == 4, "half of the eight free ones apart"


def test_sobol_visits_every_row_and_column_of_an_image_once_in_eight():
    ranks = make_order("sobol", (8, 8)).ranks(torch.ones(2, 64, dtype=torch.bool), 1).reshape(2, 8, 8)
    for image in ranks:
        for eighth in range(8):
            chosen = image // 8 == eighth
            assert (chosen.sum(0) == 1).all() and (chosen.sum(1) == 1).all()


def test_orders_of_ones_own_and_their_refusals():
    free = torch.ones(1, 4, dtype=torch.bool)
    assert make_order([2, 0, 3, 1]).ranks(free, 0).tolist() == [[1, 3, 0, 2]]
    last_first = make_order(lambda mask, u: np.flatnonzero(mask)[::-1])
    assert last_first.ranks(free, 0).tolist() == [[3, 2, 1, 0]]
    for wrong, message in (
        (lambda: make_order([0, 0, 1]), "every position"),
        (lambda: make_order("sideways"), "Unknown order"),
        (lambda: make_order("sobol"), "say its shape"),
        (lambda: make_order("farthest"), "needs a measured dependence"),
        (lambda: make_order("halton", (0, 3)), "at least 1"),
        (lambda: make_order("halton", (2, 3)).ranks(free, 0), "has 6 tokens"),
        (lambda: make_order(lambda mask, u: [0]).ranks(free, 0), "every free position once"),
        (lambda: order_from_spec(last_first.spec()), "no file can hold"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            wrong()


def sampled_law(model, permutation, counts):
    """The law of what a plan with a fixed order draws: the product of exact conditionals, token by token."""
    law = clean_law(model).reshape((4,) * 4)[:3, :3, :3, :3]
    result, stops = np.ones_like(law), np.concatenate([[0], np.cumsum(counts)])
    for m, n in pairwise(stops):
        known = [permutation[j] for j in range(m)]
        for j in range(m, n):
            joint = law.sum(tuple(a for a in range(4) if a not in [*known, permutation[j]]), keepdims=True)
            result = result * joint / joint.sum(permutation[j], keepdims=True)
    return law, result


@pytest.mark.parametrize("counts", [(4,), (1, 3), (2, 2), (1, 1, 2), (1, 1, 1, 1)])
def test_plan_error_is_the_divergence_of_the_samples(counts):
    model = random_table(3, 4, seed=2)
    for permutation in permutations(range(4)):
        law, drawn = sampled_law(model, permutation, counts)
        assert drawn.sum() == pytest.approx(1)
        divergence = (law * np.log(law / drawn)).sum()
        assert et.exact_plan_error(model, permutation, counts) == pytest.approx(divergence, abs=1e-9)


def every_sequence(model, copies=400):
    """Data that holds every sequence about as often as the law says."""
    law = model.law.flatten().numpy()
    return torch.from_numpy(np.repeat(states(3, 4), np.round(law * copies).astype(int), 0)), law


def test_measured_certificate_is_the_enumerated_one():
    model = random_table(3, 4, seed=5, concentration=2.0)
    data, _ = every_sequence(model)
    chosen = np.bincount(data.numpy() @ 3 ** np.arange(3, -1, -1), minlength=81) / len(data)
    world = et.Table(chosen.reshape(3, 3, 3, 3), model.process)  # whose law the data have to the last digit
    permutation = (2, 0, 3, 1)
    clock = et.measure(world, data, orders=[permutation], budget=4 * len(data), tolerance=0.0)
    assert clock.orders["given"].levels.tolist() == [0, 1, 2, 3]
    for steps, error in enumerate(plan_errors(clock, "given", 4), 1):
        counted = [np.diff([0, *cut, 4]) for cut in _cuts(steps - 1)]
        best = min(et.exact_plan_error(world, permutation, counts) for counts in counted)
        assert error == pytest.approx(best, abs=1e-9)
        found = et.plan(clock, steps, order=permutation)
        assert et.exact_plan_error(world, permutation, found.counts) == pytest.approx(best, abs=1e-9)
        assert abs(found.predicted_error.mean - best) < 6 * found.predicted_error.stderr + 1e-6


def _cuts(count):
    return list(combinations(range(1, 4), count))


def test_interpolated_costs_are_exact_at_measured_counts_and_lie_between_elsewhere():
    table = np.array([[5.0, 5, 5, 5, 5], [0, 4, 3, 3, 3], [0, 0, 0, 2, 1]])
    costs = PlanCosts(np.array([0, 1, 3]), table)
    assert costs.row(2).tolist()[2:] == [0.75 * 3, 2.5, 2.0], (
        "those after it fall from 6 to 3 by the next level, half way here"
    )
    assert costs.total(np.array([0, 1, 3, 5])) == 5 + 4 + 3 + 2 + 1
    assert costs.matrix(np.arange(6))[2, 5] == pytest.approx(costs.step(2, 5))
    certain = np.array([[3.0, 3, 3, 0, 0], [0, 2, 2, 0, 0], [0, 0, 0, 0, 0]])
    assert PlanCosts(np.array([0, 1, 3]), certain).row(2)[2] == 2.0, "nothing is known of a fall: none is assumed"


@given(st.integers(1, 4000), st.integers(16, 100_000))
def test_measured_counts_fit_the_budget_and_have_both_ends(free, budget):
    levels = plan_levels(free, budget)
    assert (np.diff(levels) > 0).all() and levels[0] == 0 and levels[-1] == free - 1
    assert len(levels) <= max(budget // 16, 4 * free.bit_length())
    if budget >= 16 * free:
        assert len(levels) == free
    elif budget // 16 > 100:  # what doublings leave of the budget is spread evenly
        assert np.diff(levels).max() <= free / (budget // 16 - 4 * free.bit_length() - 9) + 1, "seven are eighths"


@pytest.fixture(scope="module")
def countdown_clock():
    model = et.load("countdown-exact")
    return et.measure(model, model.draw(64, 0), orders=["low-discrepancy", "farthest", "raster"], budget=512)


def test_plans_beat_every_time_schedule_on_countdown(countdown_clock):
    model, judge = et.load("countdown-exact"), MODELS["countdown"].metrics
    plan = et.plan(countdown_clock, 8)
    assert plan.order.name in ("low-discrepancy", "farthest") and sum(plan.counts) == 256
    planned = judge(et.sample(model, plan, 128, seed=3))
    timed = judge(et.sample(model, et.schedule(countdown_clock, "ods", steps=8), 128, seed=3))
    assert planned["violation"].mean < 0.005 < 0.02 < timed["violation"].mean
    assert planned["unigrams"].mean < 2 * timed["unigrams"].mean
    raster = et.plan(countdown_clock, 8, order="raster")
    assert raster.predicted_error.mean > 100 > plan.predicted_error.mean


def test_plan_reveals_its_positions_and_asks_for_nothing_else(countdown_clock):
    model, plan = et.load("countdown-exact"), et.plan(countdown_clock, 4, order="low-discrepancy")
    asked = []
    network = et.wrap(lambda x: torch.zeros(*x.shape, 33), model.process, length=256, time=None)
    call = type(network).__call__

    class Watched(type(network)):
        def __call__(self, x, t, where=None, cond=None):
            asked.append((x.clone(), where.clone()))
            return call(self, x, t, where, cond)

    network.__class__ = Watched
    tokens = et.sample(network, plan, 3, seed=5)
    info = tokens.info
    assert info.nfe == 4 and info.evaluations == 12 and len(asked) == 4
    step_of = plan.step_of(3, seed=5)
    for index, (x, where) in enumerate(asked):
        assert torch.equal(where, step_of == index)
        assert torch.equal(x == 32, step_of >= index)
    assert [len(step) for step in plan.positions(3, seed=5)[0]] == list(plan.counts)
    again = et.sample(network, plan, 3, seed=5, batch_size=1)
    assert torch.equal(tokens, again)


def test_plan_with_a_prompt_keeps_it_and_scales(countdown_clock):
    model, plan = et.load("countdown-exact"), et.plan(countdown_clock, 8)
    fixed = torch.zeros(256, dtype=torch.bool)
    fixed[:100] = True
    prompt = model.draw(1, 9)[0]
    tokens = et.sample(model, plan, 4, given=prompt, fixed=fixed)
    assert (tokens[:, :100] == prompt[:100]).all() and (tokens < 32).all()
    assert (plan.step_of(2, fixed=fixed)[:, :100] == -1).all()


def test_files_and_refusals(countdown_clock, tmp_path):
    plan = et.plan(countdown_clock, 4)
    plan.save(tmp_path / "plan.json")
    again = et.Plan.load(tmp_path / "plan.json")
    assert again.counts == plan.counts and torch.equal(again.step_of(2, 1), plan.step_of(2, 1))
    assert again.predicted_error == plan.predicted_error
    countdown_clock.save(tmp_path / "clock.safetensors")
    assert et.plan(et.Clock.load(tmp_path / "clock.safetensors"), 4).counts == plan.counts
    mine = et.plan(countdown_clock, order="random", counts=[64] * 4)
    assert mine.predicted_error.mean > et.plan(countdown_clock, 4, order="random").predicted_error.mean
    model = et.load("countdown-exact")
    uniform = et.load("countdown-exact", "uniform")
    for wrong, message in (
        (lambda: et.plan(et.measure(model, budget=32), 4), "knows no orders"),
        (lambda: et.plan(countdown_clock, 4, order="dilated"), "was not measured"),
        (lambda: et.plan(countdown_clock, 300), "at most 256 steps"),
        (lambda: et.plan(countdown_clock, order="random", counts=[1, 2]), "add up to"),
        (lambda: et.sample(uniform, plan, 2), "needs an absorbing kernel"),
        (lambda: et.measure(uniform, orders=["random"], budget=64), "no mask"),
        (lambda: et.Plan.load(tmp_path / "none.json"), "no plan file"),
        (lambda: et.Plan((0, 4), plan.order, 4), "at least one token"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            wrong()
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(et.EigentimeError, match="damaged plan"):
        et.Plan.load(tmp_path / "plan.json")


def test_dependence_falls_with_distance_on_a_chain(countdown_clock):
    near, far = countdown_clock.dependence[1:4].mean(), countdown_clock.dependence[60:100].mean()
    assert near > far and countdown_clock.dependence[0] == countdown_clock.dependence.max()


def test_steps_for_and_compare_speak_of_plans_too(countdown_clock):
    needed = et.steps_for(countdown_clock, 30.0, strategy="plan")
    assert needed < et.steps_for(countdown_clock, 30.0)
    assert needed <= et.steps_for(countdown_clock, 30.0, strategy="plan", order="random")
    with pytest.raises(et.EigentimeError, match="not measured in that order"):
        et.steps_for(countdown_clock, 30.0, strategy="plan", order="dilated")
    rows = et.compare(
        et.load("countdown-exact"), ["ods", "plan", "plan-raster"], [4], samples=16, clock=countdown_clock
    )
    errors = [row["path_error"]["mean"] for row in rows]
    assert errors[1] < errors[0] < errors[2]
    assert rows[1]["schedule"]["format"] == "eigentime-plan"


def test_orders_of_ones_own_are_kept_apart():
    model = random_table(3, 4, seed=1)
    first, second = [0, 1, 2, 3], [3, 1, 0, 2]
    clock = et.measure(model, model.draw(64, 0), orders=[first, second], budget=256)
    assert list(clock.orders) == ["random", "given", "given-2"]
    assert et.plan(clock, 2, order=second).order.permutation.tolist() == second
    assert et.plan(clock, 2, order="given").order.permutation.tolist() == first
    with pytest.raises(et.EigentimeError, match="This given order was not measured"):
        et.plan(clock, 2, order=[1, 0, 2, 3])
    backwards = et.measure(model, model.draw(64, 0), orders=[lambda free, u: np.flatnonzero(free)[::-1]], budget=256)
    with pytest.raises(et.EigentimeError, match="pass it again"):
        et.plan(backwards, 2, order="custom")


def test_plan_mistakes_get_a_sentence(countdown_clock):
    model = et.load("countdown-exact")
    with pytest.raises(et.EigentimeError, match="leave `sampler` out"):
        et.sample(model, et.plan(countdown_clock, 4), 2, sampler="euler")
    with pytest.raises(et.EigentimeError, match="does not have the 256 cells"):
        et.measure(model, orders=["sobol"], shape=(4, 5))
    assert "raster" in et.measure(model, orders="raster", budget=64).orders


def test_likelihood_bounds_are_what_data_cost_under_the_steps():
    """On an exact model: entropy of the data plus the path error, for plans and for schedules; never below -ln p."""
    world = random_table(3, 4, "absorbing", concentration=0.4)
    clock = et.measure(world, world.draw(4096, 0), orders=["raster"], budget=20_000, tolerance=0.0)
    planned = et.plan(clock, counts=[1, 2, 1], order="raster")
    truth = world.entropy + et.exact_plan_error(world, [0, 1, 2, 3], [1, 2, 1])
    bound = et.nll_bound(clock, planned)
    assert abs(bound.mean - truth) < 5 * bound.stderr and truth > world.entropy
    assert abs(bound.excess - truth + world.entropy) < 5 * bound.excess_stderr and bound.excess_stderr < bound.stderr
    grid = et.schedule("uniform", steps=2, model=world)
    bound, error = et.nll_bound(clock, grid), et.path_error(clock, grid, estimator="cross-entropy")
    assert abs(bound.mean - world.entropy - error.mean) < 5 * bound.stderr
    assert abs(bound.excess - error.mean) < 5 * bound.excess_stderr and bound.excess_stderr < bound.stderr
    far = et.plan(et.measure(world, orders=["farthest"], budget=64), 2, order="farthest")
    again = et.measure(world, orders=[far.order], budget=64, seed=1)
    assert et.nll_bound(again, far).mean > 0, "another clock can be measured in the very order of a plan"
    with pytest.raises(et.EigentimeError, match="knows no orders"):
        et.nll_bound(et.measure(world, budget=64), planned)
    with pytest.raises(et.EigentimeError, match="needs a Schedule"):
        et.nll_bound(clock, "ods")
    uniform = random_table(3, 4, "uniform")
    with pytest.raises(et.EigentimeError, match="no mask"):
        et.nll_bound(et.measure(uniform, budget=64), et.schedule("uniform", steps=2, model=uniform))


def test_path_errors_of_plans_are_those_they_were_chosen_with_and_cover_other_clocks():
    """One verb for schedules and plans: cross-fitted where the clock chose, on all of its data where it did not."""
    world = random_table(3, 4, "absorbing", concentration=0.4)
    clock = et.measure(world, world.draw(2048, 0), orders=["raster", "low-discrepancy"], budget=8_000, tolerance=0.0)
    planned = et.plan(clock, 2)
    assert et.path_error(clock, planned) == planned.predicted_error
    own = et.plan(clock, counts=[1, 2, 1], order="raster")
    truth = et.exact_plan_error(world, [0, 1, 2, 3], [1, 2, 1])
    for estimator in ("entropy", "cross-entropy"):
        error = et.path_error(clock, own, estimator=estimator)
        assert abs(error.mean - truth) < 5 * error.stderr and error.absolute
    assert "not covered" in et.path_error(clock, own, temperature=0.5).note
    with pytest.raises(et.EigentimeError, match="was not measured"):
        et.path_error(et.measure(world, orders=["low-discrepancy"], budget=64), own)


def test_exact_counts_cost_what_enumeration_says():
    """A schedule with exact counts at random places: the mean over all orders of what each costs."""
    world = random_table(3, 4, "absorbing", concentration=0.4)
    clock = et.measure(world, world.draw(4096, 0), budget=40_000, tolerance=0.0)
    grid = et.schedule([1.0, 0.7, 0.2, 0.0], process=world.process)
    counts = np.diff(np.round(np.append(grid.alphas[:-1], 1.0) * 4).astype(int)).tolist()
    orders = list(permutations(range(4)))
    truth = np.mean([et.exact_plan_error(world, list(order), counts) for order in orders])
    found = et.path_error(clock, grid, sampler="counted")
    assert abs(found.mean - truth) < 5 * found.stderr and found.stderr < truth / 3
    assert found.mean < et.path_error(clock, grid).mean, "coin flips cost more"
    best = et.schedule(clock, "ods", steps=2, sampler="counted")
    assert et.path_error(clock, best, sampler="counted").mean <= min(
        et.path_error(clock, et.schedule(name, steps=2, model=world), sampler="counted").mean + 1e-9
        for name in ("uniform", "cosine")
    )
    x = et.sample(world, grid, 4, sampler="counted", callback=lambda state: state.step == 1)
    assert ((x != world.process.mask).sum(1) == counts[0]).all()
    uniform = random_table(3, 4, "uniform")
    clock, grid = et.measure(uniform, budget=64), et.schedule("uniform", steps=2, model=uniform)
    with pytest.raises(et.EigentimeError, match="no mask"):
        et.path_error(clock, grid, sampler="counted")


def test_lattices_visit_one_class_after_the_other():
    order = make_order("lattice-4")
    free = np.ones(16, dtype=bool)
    for shift in (0.0, 0.3, 0.9):
        arranged = order.arrange(free, np.full(16, shift))
        assert sorted(arranged) == list(range(16))
        classes = [set(arranged[k : k + 4] % 4) for k in range(0, 16, 4)]
        assert all(len(each) == 1 for each in classes)
        assert (next(iter(classes[1])) - next(iter(classes[0]))) % 4 == 2, (
            "the second class lies farthest from the first"
        )
    assert order_from_spec(order.spec()).period == 4 and order.stops(16).tolist() == [0, 4, 8, 12, 16]
    assert sorted(make_order("lattice-5").arrange(free, np.zeros(16))) == list(range(16))
    assert sorted(make_order("lattice-40").arrange(free, np.zeros(16))) == list(range(16))
    world = random_table(3, 8, "absorbing", concentration=0.4)
    clock = et.measure(world, orders=["lattice-4"], budget=512)
    assert best_aligned_stops(clock.ordered, 4, "lattice-4").tolist() == [0, 2, 4, 6, 8], "whole classes"
    assert {2, 4, 6} <= set(clock.orders["lattice-4"].levels.tolist())
    for wrong in ("lattice-0", "lattice-", "grid-3"):
        with pytest.raises(et.EigentimeError):
            make_order(wrong)


def test_a_lattice_that_does_not_divide_the_tokens_is_cut_by_cost():
    world = random_table(3, 5, seed=1)
    clock = et.measure(world, world.draw(512, 3), budget=2000, tolerance=0.0, orders=["lattice-2"])
    assert make_order("lattice-2").stops(5) is None
    assert et.plan(clock, 2, order="lattice-2").counts == (3, 2)
