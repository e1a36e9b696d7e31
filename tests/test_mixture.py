"""A kernel whose stationary law moves with time: GIDD's mixture of mask and uniform noise."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

import eigentime as et
from eigentime.process import process_from_spec
from worlds import clean_law, random_table, states

NOISE = et.LogLinear()


@pytest.fixture(scope="module")
def table():
    return random_table(2, 3, "mixture", seed=5, concentration=0.4)


def test_shares_are_those_of_gidd():
    """α = (1-t)/C, mask t/C, uniform B/C with B = b·√(t(1-t)) and C = 1 + B."""
    kernel = et.Mixture(6, uniform=0.3)
    t = torch.linspace(0.01, 0.99, 9, dtype=torch.float64)
    bump = kernel.weight * torch.sqrt(t * (1 - t))
    total = 1 + bump
    law = kernel.forward_law(torch.zeros(9, dtype=torch.long), (1 - t) / total)
    np.testing.assert_allclose(law[:, 5], t / total, atol=1e-12)
    np.testing.assert_allclose(law[:, 1], bump / total / 5, atol=1e-12)
    np.testing.assert_allclose(law.sum(1), 1.0)
    alpha = torch.tensor([0.5 / (1 + kernel.weight / 2)], dtype=torch.float64)  # t = ½: as many kept as masked
    assert 5 * kernel.forward_law(torch.zeros(1, dtype=torch.long), alpha)[0, 1].item() == pytest.approx(0.3)


def test_transitions_solve_the_forward_equation():
    process = et.Process(et.Mixture(4, uniform=0.4), NOISE)
    start, end = 0.15, 0.8

    def slope(t, flat):
        return (flat.reshape(4, 4) @ process.generator(t).numpy()).ravel()

    solved = solve_ivp(slope, (start, end), np.eye(4).ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(4, 4)
    np.testing.assert_allclose(process.transition(start, end), solved, atol=1e-8)
    whole = process.transition(0.0, start).numpy() @ process.transition(start, end).numpy()
    np.testing.assert_allclose(process.transition(0.0, end), whole, atol=1e-12)
    alpha = process.noise.alpha(0.5)
    pi, generator = process.kernel.stationary_at(alpha).numpy(), process.generator(0.5).numpy()
    np.testing.assert_allclose(pi @ generator, 0.0, atol=1e-12)
    marginal = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=torch.float64)
    rows = process.transition(0.3, 0.7)
    by_hand = -(marginal @ process.transition(0.0, 0.3)) @ torch.xlogy(rows, rows).sum(1)
    assert process.channel_entropy(0.3, 0.7, marginal) == pytest.approx(by_hand.item())


def joint(table, t):
    """P(x_t | x_0) of whole sequences as a matrix, token by token."""
    one, length = table.process.transition(0.0, t).numpy(), table.length
    every = states(table.process.kernel.size, length)
    return np.prod(one[every[:, None, :], every[None, :, :]], -1)


def test_posteriors_scores_and_token_laws_by_enumeration(table):
    kernel, noise, size = table.process.kernel, table.process.noise, table.process.kernel.size
    every, p0 = states(size, table.length), clean_law(table)
    t, s = 0.7, 0.3
    at_t = joint(table, t)
    p_t = p0 @ at_t
    x = torch.from_numpy(every)
    posterior = table(x, torch.full((len(x),), t, dtype=torch.float64)).exp()
    known = (p0[:, None] * at_t) / p_t
    for i in range(table.length):
        expected = np.stack([known[every[:, i] == value].sum(0) for value in range(size)], -1)
        np.testing.assert_allclose(posterior[:, i], expected, atol=1e-9)
    alphas = [noise.alpha(torch.tensor(time, dtype=torch.float64)).expand(x.shape) for time in (t, s)]
    score = kernel.score(posterior, x, alphas[0])
    for i in range(table.length):
        for value in range(size):
            moved = every.copy()
            moved[:, i] = value
            index = (moved * size ** np.arange(table.length)[::-1]).sum(1)
            np.testing.assert_allclose(score[:, i, value], p_t[index] / p_t, rtol=1e-8)
    np.testing.assert_allclose(kernel.posterior(score, x, alphas[0]), posterior, atol=1e-9)
    law = kernel.exact_law(posterior, x, *alphas)
    np.testing.assert_allclose(law.sum(-1), 1.0)
    between = table.process.transition(s, t).numpy()
    steps = np.prod(between[every[:, None, :], every[None, :, :]], -1)
    back = ((p0 @ joint(table, s))[:, None] * steps / p_t).T  # P(x_s | x_t)
    for i in range(table.length):
        expected = np.stack([back[:, every[:, i] == value].sum(1) for value in range(size)], -1)
        np.testing.assert_allclose(law[:, i], expected, atol=1e-9)


def test_it_is_measured_scheduled_and_certified(table):
    clock = et.measure(table, budget=4096, tolerance=0.0, seed=1)
    grids = {name: et.schedule(clock, name, steps=3) for name in ("uniform", "ods", "wds")}
    truths = {name: et.exact_path_error(table, grid.times) for name, grid in grids.items()}
    for name, grid in grids.items():
        error = et.path_error(clock, grid)
        assert error.mean == pytest.approx(truths[name], rel=0.1, abs=4 * error.stderr)
    assert truths["ods"] <= min(truths.values()) * 1.02
    euler = et.path_error(clock, et.schedule("uniform", steps=16, model=table), sampler="tau-leaping")
    assert euler.mean == pytest.approx(et.exact_path_error(table, np.linspace(1, 0, 17), "poisson"), rel=0.15)


@pytest.mark.parametrize("sampler", ["ancestral", "euler", "tau-leaping", "trapezoidal", "predictor-corrector"])
def test_samples_approach_the_data(table, sampler):
    grid = et.schedule("uniform", steps=48, model=table)
    x = et.sample(table, grid, 8000, sampler=sampler)
    assert x.max() < table.process.kernel.size - 1  # no mask is left
    every = states(table.process.kernel.size, 3)
    index = (x.numpy() * table.process.kernel.size ** np.arange(3)[::-1]).sum(1)
    found = np.bincount(index, minlength=len(every)) / len(x)
    assert np.abs(found - clean_law(table)).sum() / 2 < (0.2 if sampler == "predictor-corrector" else 0.06)


def test_the_noise_that_generation_starts_from(table):
    law = table.process.kernel.prior_law(table.process.noise.alpha(1.0).item())
    drawn = table.process.prior((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    counts = np.bincount(drawn, minlength=len(law))
    np.testing.assert_allclose(counts, 20_000 * law.numpy(), atol=1.0)  # evenly spread uniforms
    assert law[-1] > 0.9  # nearly all masks


def test_files_hold_it(table, tmp_path):
    assert process_from_spec(table.process.spec()).kernel.uniform == 0.4
    clock = et.measure(table, budget=128)
    clock.save(tmp_path / "clock.safetensors")
    again = et.Clock.load(tmp_path / "clock.safetensors")
    assert again.grid_process.kernel.spec() == table.process.kernel.spec()
    rates = random_table(3, 2, "rate-matrix")
    et.measure(rates, budget=64).save(tmp_path / "rates.safetensors")
    kernel = et.Clock.load(tmp_path / "rates.safetensors").grid_process.kernel
    np.testing.assert_allclose(kernel.rates, rates.process.kernel.rates)
    for bad in ({"size": 2}, {"size": 5, "uniform": 1.0}):
        with pytest.raises(et.EigentimeError, match=r"size must be|uniform must be|Mixture needs"):
            et.Mixture(**bad)
