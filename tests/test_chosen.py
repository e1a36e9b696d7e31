"""Samplers that look before they reveal."""

import numpy as np
import pytest
import torch

import eigentime as et
from test_samplers import frequencies
from worlds import clean_law, random_table


def close(x, model, count):
    law = clean_law(model)
    return (np.abs(frequencies(x, model.process.kernel.size) - law) < 5 * np.sqrt(law * (1 - law) / count) + 1e-9).all()


@pytest.mark.parametrize("sampler", ["margin", "entropy"])
def test_one_surest_token_at_a_time_is_exact(sampler):
    model = random_table(2, 3, "absorbing", concentration=0.7)
    grid = et.schedule([1.0, 0.66, 0.33, 0.0], process=model.process)
    x = et.sample(model, grid, 20_000, sampler=sampler)
    info = x.info
    assert info.nfe == 3 and close(x, model, 20_000)


def test_the_surest_values_come_too_often_when_they_decide():
    """Confidence of the drawn value prefers likely values: sharper than the law, which the docstring says."""
    model = random_table(2, 3, "absorbing", concentration=0.7)
    grid = et.schedule([1.0, 0.66, 0.33, 0.0], process=model.process)
    assert close(et.sample(model, grid, 20_000, sampler="confidence"), model, 20_000)
    x = et.sample(model, grid, 20_000, sampler=et.Confidence(drawn=True))
    law = clean_law(model)
    found = frequencies(x, model.process.kernel.size)
    assert not close(x, model, 20_000)
    assert (found * law).sum() > (law * law).sum()


def test_counts_are_the_schedules_and_the_surest_come_first():
    process = et.Process(et.Absorbing(5), et.LogLinear())
    sharpness = torch.tensor([0.0, 4.0, 1.0, 3.0, 2.0, 5.0])

    def network(x):
        rows = torch.zeros(*x.shape, 5)
        rows[..., 0] = sharpness
        return rows

    model = et.wrap(network, process, length=6, time=None)
    grid = et.schedule("uniform", steps=3, model=model)
    states = []
    et.sample(model, grid, 8, sampler="margin", callback=lambda state: states.append(state.tokens.clone()) and None)
    known = [(state != 4) for state in states]
    assert [int(mask[0].sum()) for mask in known] == [2, 4, 6]
    assert known[0][0].tolist() == [False, True, False, False, False, True]
    assert known[1][0].tolist() == [False, True, False, True, True, True]
    noisy = et.sample(model, grid, 64, sampler=et.Margin(noise=5.0), seed=1)
    assert (noisy != 4).all()


def test_entropy_bounded_spends_what_it_needs():
    model = random_table(3, 4, "absorbing", concentration=0.3)
    x = et.sample(model, None, 20_000, sampler=et.EntropyBounded(0.0))
    exact = x.info
    assert close(x, model, 20_000) and exact.nfe <= 4
    loose = et.sample(model, None, 500, sampler=et.EntropyBounded(1.0)).info
    single = et.sample(model, None, 500, sampler=et.EntropyBounded(100.0)).info
    assert single.nfe == 1 < loose.nfe < exact.nfe
    assert loose.evaluations == round(loose.nfe * 500)


def test_threshold_reveals_the_sure_ones_and_at_least_one():
    model = random_table(3, 4, "absorbing")
    x = et.sample(model, None, 200, sampler=et.Threshold(1.1))
    info = x.info
    assert info.nfe == 4 and (x != 3).all()
    assert et.sample(model, None, 200, sampler=et.Threshold(1e-9)).nfe == 1
    assert 1 < et.sample(model, None, 200, sampler="threshold").nfe <= 4


def test_klass_waits_until_a_posterior_is_sure_and_calm():
    """Eight tokens: two calm and sure, three sure ones that change their mind with every reveal, three never sure."""
    process = et.Process(et.Absorbing(3), et.LogLinear())

    def network(x):
        rows = torch.zeros(*x.shape, 3)
        odd = ((x != 2).sum(1) % 2 == 1)[:, None, None]
        rows[:, :2] = torch.tensor([6.0, 0, 0])
        rows[:, 2:5] = torch.where(odd, torch.tensor([9.0, 0, 0]), torch.tensor([0, 9.0, 0]))
        return rows

    model = et.wrap(network, process, length=8, time=None)

    def opened(sampler):
        seen = []
        et.sample(model, None, 1, sampler=sampler, callback=lambda state: seen.append(state.tokens[0] != 2) and None)
        return [mask.tolist() for mask in seen]

    states = opened(et.Klass(0.9, 0.01, 2))
    assert [sum(mask) for mask in states[:2]] == [1, 2], "too early to be calm: the surest one alone"
    assert not any(states[1][:2]) and all(states[2][:2]), "two calm comparisons open what is calm"
    assert sum(states[2][2:5]) == 2, "of what changes its mind only the surest ones of the first two looks"
    assert sum(opened(et.Klass(0.9, 1e9, 2))[2][:5]) == 5, "without a limit on the divergence all sure ones open"
    assert all(opened(et.Klass(0.9, 0.01, 1))[1][:2]), "one comparison is enough for a history of one"
    exact = random_table(2, 3, "absorbing", concentration=0.7)
    x = et.sample(exact, None, 200, sampler=et.Klass(1.1))
    info = x.info
    assert info.nfe == 3 and (x != 2).all()


def test_guided_adaptive_steps_count_twice_also_when_stopped():
    model = random_table(3, 4, "absorbing")
    prompt, fixed = torch.tensor([1, 0, 0, 0]), torch.arange(4) < 1
    options = {"sampler": et.Threshold(1.1), "given": prompt, "fixed": fixed}
    for stop in (False, True):
        plain = et.sample(model, None, 10, callback=lambda state, stop=stop: stop, **options).info
        guided = et.sample(model, None, 10, guidance=1.5, callback=lambda state, stop=stop: stop, **options).info
        assert plain.stopped == guided.stopped == stop and plain.nfe == (1 if stop else 3)
        assert guided.nfe == 2 * plain.nfe == guided.evaluations / 10


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
def test_remasking_keeps_the_law_of_a_token(eta):
    model = random_table(3, 1, "absorbing", concentration=1.0)
    grid = et.schedule("uniform", steps=8, model=model)
    x = et.sample(model, grid, 20_000, sampler=et.Remasking(eta))
    info = x.info
    assert close(x, model, 20_000) and info.nfe == 8


@pytest.mark.parametrize("sampler", ["confidence", "entropy", "remasking", "entropy-bounded", "threshold", "klass"])
def test_same_seed_same_samples_whatever_the_batch_split(sampler):
    model = random_table(3, 5, "absorbing")
    adaptive = sampler in ("entropy-bounded", "threshold", "klass")
    grid = None if adaptive else et.schedule("uniform", steps=3, model=model)
    whole = et.sample(model, grid, 11, sampler=sampler, seed=4)
    assert torch.equal(whole, et.sample(model, grid, 11, sampler=sampler, seed=4, batch_size=3))
    prompt = torch.tensor([1, 0, 0, 0, 2])
    fixed = torch.tensor([True, False, False, False, True])
    given = et.sample(model, grid, 5, sampler=sampler, given=prompt, fixed=fixed)
    assert (given[:, 0] == 1).all() and (given[:, 4] == 2).all() and (given != 3).all()


def test_bad_requests_get_a_sentence():
    masked, uniform = random_table(2, 3, "absorbing"), random_table(2, 3, "uniform")
    grid = et.schedule("uniform", steps=2, model=masked)
    with pytest.raises(et.EigentimeError, match="chooses its own steps"):
        et.sample(masked, grid, 2, sampler="threshold")
    for sampler in ("entropy", "remasking"):
        with pytest.raises(et.EigentimeError, match="needs an absorbing kernel"):
            et.sample(uniform, et.schedule("uniform", steps=2, model=uniform), 2, sampler=sampler)
    for make in (
        lambda: et.Margin(noise=-1),
        lambda: et.Prefix(0),
        lambda: et.EntropyBounded(-1.0),
        lambda: et.Threshold(0),
        lambda: et.Klass(history=0),
        lambda: et.Remasking(2),
    ):
        with pytest.raises(et.EigentimeError):
            make()
    assert np.isnan(et.path_error(et.measure(masked, budget=64), grid, sampler="entropy").mean)


def test_blocks_of_an_exact_model_can_be_chosen_from():
    model = et.load("countdown-exact")
    block = et.Block(model, 128, 160)
    before = model.draw(2, 0)[:, :128]
    grid = et.schedule("uniform", steps=3, model=block)
    for sampler in ("confidence", "margin", "entropy"):
        assert et.sample(block, grid, 2, sampler=sampler, cond=before).shape == (2, 32)


def test_scores_at_noise_that_single_precision_cannot_hold():
    """α = e^-297 at t = 1: the scores underflow, the posterior they stand for does not."""
    process = et.Process(et.Absorbing(5), et.Exponential())

    def log_score(x, sigma):
        return (-torch.log(torch.expm1(sigma.double())) - np.log(4)).float()[:, None, None].expand(*x.shape, 5)

    model = et.wrap(log_score, process, length=3, predicts="score", time="sigma")
    clock = et.measure(model, torch.randint(0, 4, (32, 3), generator=torch.Generator().manual_seed(0)), budget=32)
    x = et.sample(model, et.schedule(clock, "cosine", steps=2), 1000, seed=1, normalise=True)
    counts = torch.bincount(x.flatten(), minlength=4)
    assert (counts - 750).abs().max() < 5 * 750**0.5
    logs = log_score(torch.zeros(1, 1), process.noise.sigma(torch.tensor([0.9], dtype=torch.float64)))[0]
    alpha = process.noise.alpha(torch.tensor([0.9], dtype=torch.float64))
    loss = process.kernel.score_entropy(logs, torch.tensor([1]), torch.tensor([4]), alpha)
    assert torch.isfinite(loss).all()
