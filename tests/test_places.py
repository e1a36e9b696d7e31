"""Where to reveal: bisection, orders from measured pairs, aligned counts, and sets of tokens that are apart."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.measure.dependence import measure_pairs, shrunk
from eigentime.measure.levels import make_source
from eigentime.models.permuted import Permuted
from eigentime.orders import aligned_stops, make_order, offsets
from eigentime.orders.pairs import split
from eigentime.recommend import usual_candidates
from eigentime.samplers import label
from eigentime.samplers.apart import between
from eigentime.samplers.teacher import log_likelihood
from eigentime.schedules.planning import best_aligned_stops, chosen_stops, lightest_stops
from worlds import random_table, states


def chain(length, stay=0.9, values=3):
    moves = np.full((values, values), (1 - stay) / (values - 1))
    np.fill_diagonal(moves, stay)
    process = et.Process(et.Absorbing(values + 1), et.LogLinear())
    return et.MarkovChain(np.full(values, 1 / values), moves, length, process)


def mixed_up(length, seed=0):
    permutation = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    return Permuted(chain(length), permutation), permutation.numpy()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=70))
def test_a_round_of_bisection_takes_the_middle_of_every_gap(given_tokens):
    free = ~np.array(given_tokens)
    order = make_order("bisection")
    arranged = order.arrange(free, np.zeros(len(free)))
    assert sorted(arranged) == np.flatnonzero(free).tolist()
    known, left = ~free, arranged.tolist()
    while left:
        edges = [-1, *np.flatnonzero(known), len(free)]
        middles = {(a + b) // 2 for a, b in pairwise(edges) if b - a > 1}
        taken, left = left[: len(middles)], left[len(middles) :]
        assert set(taken) == middles
        known[taken] = True


@pytest.mark.parametrize("length", [1, 2, 7, 8, 21])
def test_bisection_is_exact_on_a_chain_in_logarithmically_many_steps(length):
    """What arXiv 2606.22976 proves: one round at a time leaves nothing out."""
    model, order = chain(length), make_order("bisection")
    counts = tuple(np.diff(order.stops(length)).tolist())
    assert len(counts) == int(np.ceil(np.log2(length + 1))) and not order.chance
    x = model.draw(16, 1)
    found = log_likelihood(model, x, et.Plan(counts, order, length))
    np.testing.assert_allclose(found, model.log_likelihood(x), atol=1e-6)
    if length == 21:  # one round less is not exact
        merged = (counts[0] + counts[1], *counts[2:-2], counts[-2] + counts[-1])
        assert (found - log_likelihood(model, x, et.Plan(merged, order, length))).mean() > 0.1


def test_a_permuted_model_is_the_same_law():
    table = random_table(3, 3, concentration=0.4)
    places = [2, 0, 1]
    model, x = Permuted(table, places), torch.from_numpy(states(3, 3))
    law = model.log_likelihood(x).exp().reshape(3, 3, 3)
    np.testing.assert_allclose(law, table.law.reshape(3, 3, 3).permute(np.argsort(places).tolist()), atol=1e-12)
    one_by_one = log_likelihood(model, x, et.Plan((1, 1, 1), make_order("raster"), 3)).exp()
    np.testing.assert_allclose(one_by_one, law.flatten(), atol=1e-9)
    assert torch.equal(model.draw(5, 1)[:, places], table.draw(5, 1)) and model.entropy == table.entropy


def test_measured_pairs_are_mutual_informations():
    """Of a chain that mostly stays: closed form from powers of its transition matrix, wherever its places are."""
    model, permutation = mixed_up(6)
    source = make_source(model, model.draw(600, 0))
    found, spent = measure_pairs(source, 6 * 600, (6,))
    moves = model.original.transition.numpy()
    for i in range(6):
        for j in range(i):
            joint = np.linalg.matrix_power(moves, i - j) / 3
            truth = (joint * np.log(joint * 9)).sum()
            assert found[permutation[i], permutation[j]] == pytest.approx(truth, abs=1e-6), "the chain is symmetric"
    assert spent == 6 * 600 + 1 and (np.diag(found) == 0).all()


def test_pairs_with_given_tokens_are_those_of_the_free_ones():
    model = random_table(3, 4, concentration=0.3)
    fixed = torch.tensor([False, True, False, False])
    clock = et.measure(model, model.draw(64, 0), fixed=fixed, budget=64, orders=["pairs"])
    assert (clock.pairs[1] == 0).all() and (clock.pairs[0, 2:] > 0).any()
    planned = et.plan(clock, 3, order="pairs")
    x = et.sample(model, planned, 4, given=torch.ones(4, dtype=torch.long), fixed=fixed)
    assert (x[:, 1] == 1).all() and (x != 3).all()


def test_what_chance_makes_of_pairs_is_taken_out():
    rng, shape = np.random.default_rng(0), (40,)
    by_offset = np.exp(-np.arange(40) / 4.0)[offsets(shape)]
    noise = rng.normal(scale=0.3, size=(40, 40))
    variance, measured = np.full((40, 40), 0.09), np.ones((40, 40), dtype=bool)
    off = ~np.eye(40, dtype=bool)
    alike = shrunk(by_offset + noise, variance, measured, shape)
    assert np.abs(alike - by_offset)[off].mean() < 0.3 * np.abs(noise)[off].mean(), "places alike: only offsets count"
    pi = rng.permutation(40)
    truth = 3 * by_offset[np.ix_(pi, pi)]
    mixed = shrunk(truth + noise, variance, measured, shape)
    assert np.corrcoef(mixed[off], truth[off])[0, 1] > 0.85, "places that differ keep what was measured of them"


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 9), st.integers(0, 2**32))
def test_a_split_is_nearly_the_best_of_all(n, seed):
    table = np.random.default_rng(seed).exponential(size=(n, n))
    table = table + table.T
    np.fill_diagonal(table, 0.0)
    half = split(table)
    assert half.sum() == (n + 1) // 2

    def within(part):
        return table[np.ix_(part, part)].sum() + table[np.ix_(~part, ~part)].sum()

    every = [np.array([bits >> k & 1 for k in range(n)], dtype=bool) for bits in range(2**n)]
    costs = sorted(within(part) for part in every if part.sum() == (n + 1) // 2)
    assert within(half) <= np.quantile(costs, 0.25) + 1e-9


def test_pairs_find_a_chain_whose_places_are_mixed_up_and_a_chessboard():
    line = np.exp(-np.arange(32) / 4.0)[offsets((32,))]
    pi = np.random.default_rng(1).permutation(32)
    back = pi[make_order("pairs", None, line[np.ix_(pi, pi)]).permutation]
    assert set(back[:16] % 2) in ({0}, {1}), "the first half is every second place of the chain"
    steps = np.add.outer(np.arange(8), np.arange(8))
    board = np.exp(-steps / 1.0).ravel()[offsets((8, 8))]
    first = make_order("pairs", None, board).permutation[:32]
    assert set((first // 8 + first % 8) % 2) in ({0}, {1})
    with pytest.raises(et.EigentimeError, match="every place on every other"):
        make_order("pairs", None, np.ones(4))


def test_measured_pairs_win_where_places_are_mixed_up():
    model, _ = mixed_up(24)
    clock = et.measure(
        model, model.draw(96, 0), budget=192, orders=["low-discrepancy", "bisection", "farthest", "pairs"]
    )
    held_out, nats = model.draw(256, 9), {}
    for name in clock.orders:
        nats[name] = -log_likelihood(model, held_out, et.plan(clock, 4, order=name)).mean().item() - model.entropy
    assert nats["pairs"] < 0.5 * min(value for name, value in nats.items() if name != "pairs")
    assert et.plan(clock, 4).order.name == "pairs"
    assert clock.evaluations > 6 * 150, "pairs cost evaluations of their own"


def test_clocks_keep_their_pairs_and_plans_their_order(tmp_path):
    model, _ = mixed_up(8)
    clock = et.measure(model, budget=64, orders=["pairs"])
    clock.save(tmp_path / "clock.safetensors")
    again = et.Clock.load(tmp_path / "clock.safetensors")
    np.testing.assert_array_equal(again.pairs, clock.pairs)
    plan = et.plan(again, 2, order="pairs")
    plan.save(tmp_path / "plan.json")
    assert et.Plan.load(tmp_path / "plan.json").order.permutation.tolist() == plan.order.permutation.tolist()


@given(st.integers(1, 200), st.data())
def test_aligned_counts_are_whole_and_add_up(free, data):
    steps = data.draw(st.integers(1, free))
    name = data.draw(st.sampled_from(["low-discrepancy", "dilated", "bisection", "lattice-5", "raster"]))
    for stops in aligned_stops(make_order(name).stops(free), free, steps):
        assert len(stops) == steps + 1 and stops[0] == 0 and stops[-1] == free and (np.diff(stops) >= 1).all()


def test_doubling_is_cut_at_the_small_end_and_split_at_the_large_one():
    own = make_order("low-discrepancy").stops(64)
    assert own.tolist() == [0, 1, 2, 4, 8, 16, 32, 64]
    assert aligned_stops(own, 64, 3)[1].tolist() == [0, 16, 32, 64]
    assert aligned_stops(own, 64, 9)[1].tolist() == [0, 1, 2, 4, 8, 16, 24, 32, 48, 64]


def test_counts_chosen_under_noise_give_way_to_aligned_ones():
    """Tokens that hardly depend on each other: dynamic programming fits little but noise."""
    model = random_table(3, 8, seed=1, concentration=50.0)
    clock = et.measure(model, model.draw(24, 0), budget=24 * 8, orders=["lattice-4", "low-discrepancy"], tolerance=0.0)
    orders = clock.ordered
    noisy = lightest_stops(orders, 4, "lattice-4")
    aligned = best_aligned_stops(orders, 4, "lattice-4")
    assert aligned.tolist() == [0, 2, 4, 6, 8]
    chosen = chosen_stops(orders, 4, "lattice-4", beyond=100.0)
    assert (
        chosen.tolist() == aligned.tolist() and chosen_stops(orders, 4, "lattice-4", -100.0).tolist() == noisy.tolist()
    )
    one = orders.take(np.array([0]))
    assert chosen_stops(one, 4, "lattice-4").tolist() == best_aligned_stops(one, 4, "lattice-4").tolist()


def test_far_apart_sets_take_what_does_not_depend():
    """Two pairs of equal tokens: one of each pair at a time is exact, and the sampler finds that."""
    law = np.zeros((2, 2, 2, 2))
    for a in range(2):
        for b in range(2):
            law[a, a, b, b] = 0.25
    model = et.Table(law, et.Process(et.Absorbing(3), et.LogLinear()))
    clock = et.measure(model, model.draw(64, 0), budget=64, orders=["pairs"])
    np.testing.assert_allclose(clock.pairs[0], [0, np.log(2), 0, 0], atol=1e-6)
    sampler = et.Apart(clock.pairs, 0.1)
    x = et.sample(model, None, 64, sampler=sampler)
    assert x.nfe == 2 and (x[:, 0] == x[:, 1]).all() and (x[:, 2] == x[:, 3]).all()
    assert et.nll(model, model.draw(64, 1), sampler).excess.mean == pytest.approx(0.0, abs=1e-9)
    assert et.sample(model, None, 4, sampler=et.Apart(clock.pairs, 10.0)).nfe == 1
    assert torch.equal(x, et.sample(model, None, 64, sampler=sampler, batch_size=7))
    assert label(sampler) == "apart (bound 0.1)"
    names = [str(candidate) for candidate in usual_candidates(clock, 2)]
    assert any(name.startswith("apart") for name in names)
    found = et.recommend(model, model.draw(64, 2), nfe=2, clock=clock, candidates=[et.Candidate(sampler)])
    assert found.forward.evaluations.mean == 2


def test_dependences_of_both_kinds_and_their_refusals():
    table = np.array([9.0, 3.0, 1.0, 0.5])
    assert between(table, 4)[0].tolist() == table.tolist() and between(table, 2).tolist() == [[9, 3], [3, 9]]
    square = np.arange(16.0).reshape(4, 4)
    np.testing.assert_array_equal(between(square, 4), square)
    assert between(np.arange(4.0).reshape(2, 2), 4)[0].tolist() == [0, 1, 2, 3]
    model = random_table(3, 4)
    for wrong, message in (
        (lambda: et.sample(model, None, 2, sampler="apart"), "needs a measured dependence"),
        (lambda: et.sample(model, None, 2, sampler=et.Apart(np.ones(3))), "does not fit 4 tokens"),
        (lambda: et.Apart(table, -1.0), "bound must be a finite number of at least 0"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            wrong()
