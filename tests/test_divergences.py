"""Likelihoods under a plan, and both divergences, against enumeration."""

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.orders import make_order
from eigentime.samplers import Condition
from eigentime.samplers.teacher import log_likelihood, teach
from eigentime.tasks.divergences import from_data, from_samples
from worlds import random_table, states


def every(model):
    return torch.from_numpy(states(len(model.process.kernel.values), model.length))


@pytest.mark.parametrize("counts", [(4,), (1, 3), (2, 2), (1, 1, 1, 1)])
def test_likelihood_under_a_plan_is_a_law_and_that_of_its_samples(counts):
    model = random_table(3, 4, concentration=0.3)
    plan = et.Plan(counts, make_order("raster"), 4)
    x = every(model)
    log_q = log_likelihood(model, x, plan)
    q = log_q.exp()
    assert q.sum().item() == pytest.approx(1.0, abs=1e-9)
    drawn = et.sample(model, plan, 20_000, seed=3)
    frequencies = torch.bincount((drawn * torch.tensor([27, 9, 3, 1])).sum(1), minlength=81) / len(drawn)
    assert ((frequencies - q).abs() < 5 * (q / len(drawn)).sqrt() + 1e-4).all()
    p = model.law.double()
    if len(counts) == 4:  # one at a time is exact
        np.testing.assert_allclose(q, p, atol=1e-9)
    split = log_likelihood(model, x, plan, batch_size=7)
    np.testing.assert_allclose(split, log_q, atol=1e-12)


def test_both_divergences_cover_the_enumerated_ones():
    model = random_table(3, 4, concentration=0.3)
    plan = et.Plan((2, 2), make_order("raster"), 4)
    p, q = model.law.double(), log_likelihood(model, every(model), plan).exp()
    data, samples = model.draw(4000, 1), et.sample(model, plan, 4000, seed=2)
    forward = from_data(model, data, log_likelihood(model, data, plan))
    backward = from_samples(model, samples, log_likelihood(model, samples, plan))
    for found, truth in (
        (forward, (torch.xlogy(p, p) - torch.xlogy(p, q)).sum().item()),
        (backward, (torch.xlogy(q, q) - torch.xlogy(q, p)).sum().item()),
    ):
        assert truth > 0.05 and abs(found.mean - truth) < 4 * found.stderr and found.stderr < truth / 3
    # the law's own samples are no distance away
    own = log_likelihood(model, data, et.Plan((1,) * 4, make_order("raster"), 4))
    assert abs(from_data(model, data, own).mean) < 1e-9


def test_what_has_no_planned_likelihood_is_refused():
    plan = et.Plan((2, 2), make_order("raster"), 4)
    with pytest.raises(et.EigentimeError, match="No likelihood covers planned"):
        log_likelihood(random_table(3, 4, "uniform"), torch.zeros(1, 4, dtype=torch.long), plan)
    model = random_table(3, 4)
    with pytest.raises(et.EigentimeError, match="do not have the 4 tokens"):
        log_likelihood(model, torch.zeros(1, 5, dtype=torch.long), plan)
    with pytest.raises(et.EigentimeError, match="holds token 3"):
        log_likelihood(model, torch.full((1, 4), 3), plan)


def law_of(model, sampler, planned=None, **options):
    """q of every sequence, in the order of `every`."""
    return log_likelihood(model, every(model), planned, sampler, **options).exp()


def test_rules_look_at_the_posterior_as_it_is():
    """At temperature 0 every shaped posterior is certain: a rule that saw it would reveal everything at once."""
    model = random_table(3, 4)
    for sampler in (et.Threshold(0.99), et.EntropyBounded(1e-3)):
        greedy = et.sample(model, None, 64, sampler=sampler, temperature=0.0)
        assert greedy.nfe > 3


def test_data_cost_beside_its_references():
    model = random_table(3, 4, concentration=0.3)
    p = model.law.double()
    data = every(model).repeat_interleave((p * 4000).round().long(), 0)
    sampler = et.EntropyBounded(1.5)
    found = et.nll(model, data, sampler, sequences=len(data), references=4)
    q = law_of(model, sampler)
    truth = (torch.xlogy(p, p) - torch.xlogy(p, q)).sum().item()
    assert found.exact and found.forbidden == 0
    # all four tokens are referenced, and an exact model's cost one at a time is -ln p whatever the order
    assert abs(found.one_at_a_time.mean - model.entropy) < 0.01 and abs(found.excess.mean - truth) < 0.01
    low, high = found.excess.interval()
    assert low < truth < high and found.excess.stderr < found.nats.stderr, "paired differences are sharper"
    assert abs(found.nelbo.mean - model.entropy) < 0.05
    assert found.by_step.sum() == pytest.approx(found.nats.mean) and found.evaluations.mean < 4
    few = et.nll(model, data, sampler, sequences=len(data), references=1)
    assert abs(few.excess.mean - truth) < 5 * few.excess.stderr, "one token of each is enough for the mean"
    tempered = et.nll(model, data, sampler, shaping=et.Shaping(temperature=0.0), sequences=200)
    assert tempered.forbidden > 0 and np.isinf(tempered.nats.mean)
    given = et.nll(
        model, data[:200], "entropy", et.schedule("uniform", steps=2, model=model), fixed=[True] + [False] * 3
    )
    assert given.nats.mean < found.nats.mean and (given.by_step > 0).all()


def test_block_by_block_and_by_chance():
    model = random_table(3, 4, concentration=0.3)
    grid = et.schedule("uniform", steps=1, model=model)
    blocks = et.nll(model, every(model), "entropy", grid, block_length=2, references=1)
    plan = log_likelihood(model, every(model), et.Plan((2, 2), make_order("raster"), 4))
    np.testing.assert_allclose(blocks.nats.values, -plan, atol=1e-9)
    assert blocks.exact and blocks.evaluations.mean == 2
    # chance chooses places: the mean over choices is a bound on -ln q
    grid = et.schedule("uniform", steps=2, model=model)
    x = every(model).repeat(200, 1)
    bound = -log_likelihood(model, x, grid).view(200, 81).mean(0)
    mixed = torch.logsumexp(log_likelihood(model, x, grid).view(200, 81), 0) - np.log(200)
    assert (bound >= -mixed - 1e-9).all() and bound.mean() > -mixed.mean() + 0.01
    assert not et.nll(model, every(model), "ancestral", grid).exact
    assert et.sample(model, grid, 4).log_q is None


def test_reverse_divergence_from_own_samples():
    model = random_table(3, 4, concentration=0.3)
    p = model.law.double()
    for sampler in (et.EntropyBounded(1.5), et.LowestEntropy()):
        grid = None if not sampler.scheduled else et.schedule([1.0, 0.5, 0.0], process=model.process)
        q = law_of(model, sampler, grid)
        truth = (torch.xlogy(q, q) - torch.xlogy(q, p)).sum().item()
        for references in (1, 4):
            found = et.reverse_kl(model, sampler, grid, samples=4000, references=references, seed=5)
            assert abs(found.mean - truth) < 4 * found.stderr and truth > 0.01
    one = et.reverse_kl(model, "entropy", et.schedule([1, 0.75, 0.5, 0.25, 0], process=model.process), samples=64)
    assert abs(one.mean) < 1e-9, "one token at a time there is nothing to lose"


@pytest.mark.parametrize("sampler", ["trapezoidal", "predictor-corrector", "remasking", et.Confidence(drawn=True)])
def test_what_has_no_likelihood_is_refused(sampler):
    model = random_table(3, 4)
    grid = et.schedule("uniform", steps=2, model=model)
    with pytest.raises(et.EigentimeError, match="No likelihood covers"):
        et.nll(model, every(model), sampler, grid)
    with pytest.raises(et.EigentimeError, match="No likelihood covers"):
        et.reverse_kl(model, sampler, grid, samples=4)
    uniform = random_table(3, 4, "uniform")
    with pytest.raises(et.EigentimeError, match="No likelihood covers"):
        et.nll(uniform, every(model), "ancestral", et.schedule("uniform", steps=2, model=uniform))


def test_costs_where_tokens_are_given():
    model = random_table(3, 5, seed=1)
    x = model.draw(20, 3)
    cost = et.nll(model, x, "entropy-bounded", fixed=[True, True, True, True, False])
    assert cost.evaluations.mean == cost.taught.mean == 1
    fixed = torch.zeros(20, 5, dtype=torch.bool)
    fixed[0] = True
    with pytest.raises(et.EigentimeError, match="nothing to measure"):
        et.nll(model, x, "entropy-bounded", fixed=fixed)
    fixed[0] = torch.tensor([True, True, True, True, False])  # sequences may differ in how many are given
    cost = et.nll(model, x, et.EntropyBounded(2.0), fixed=fixed, references=5)
    assert np.isfinite(cost.nelbo.mean) and cost.nats.values[0] < cost.nats.mean
    more = et.nll(model, model.draw(30, 3), "entropy-bounded", fixed=torch.zeros(30, 5, dtype=torch.bool), sequences=8)
    assert len(more.nats.values) == 8
    for wrong in (x[:, :4], x[0], torch.cat([x, x], 1)):
        with pytest.raises(et.EigentimeError, match="must have the shape"):
            et.nll(model, wrong, "entropy-bounded")


def test_what_cannot_be_drawn_costs_infinitely_much_and_says_so():
    model = random_table(3, 5, seed=1)
    grid = et.schedule("uniform", steps=3, model=model)
    for shaping in (et.Shaping(temperature=0.0), et.Shaping(top_k=2)):
        cost = et.nll(model, model.draw(40, 3), "ancestral", grid, shaping=shaping)
        assert cost.forbidden > 0 and cost.nats.mean == np.inf == cost.excess.mean
        assert not np.isnan(cost.one_at_a_time.values).any() and "nan" not in str(cost)
    sharp = torch.zeros(4)
    sharp[0] = 150.0
    network = et.wrap(lambda x: sharp.expand(*x.shape, 4), model.process, length=5, time=None)
    cost = et.nll(network, torch.ones(4, 5, dtype=torch.long), "ancestral", grid)
    assert cost.forbidden == 0 and 5 * 100 < cost.nats.mean < np.inf, "a softmax that underflows forbids nothing"


def test_guidance_is_taught_and_a_stopped_walk_has_no_likelihood():
    model = random_table(3, 5, seed=1)
    grid, x = et.schedule("uniform", steps=3, model=model), model.draw(8, 3)
    fixed = [True, True, False, False, False]
    plain, guided = (
        teach(model, x, grid, "entropy", condition=Condition(None, fixed, guidance=weight)) for weight in (None, 3.0)
    )
    assert not torch.equal(plain.logs, guided.logs) and torch.equal(guided.spent, 2 * plain.spent)
    stopped = et.sample(model, grid, 4, sampler="entropy", callback=lambda state: state.step == 1)
    assert stopped.log_q is None
    many = et.sample(random_table(2, 2), et.schedule("uniform", steps=40_000, model=random_table(2, 2)), 1)
    assert many.shape == (1, 2)
