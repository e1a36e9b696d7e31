"""Every rate and every path error against brute force over the full state space."""

import itertools

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import linprog
from scipy.stats import binom

import eigentime as et
from eigentime.schedules.paths import lightest_paths, path_nodes
from worlds import clean_law, entropy, full_generator, noisy_law, random_table, single_generator, states

WORLDS = [(3, 3), (4, 4)]
KERNELS = ["absorbing", "uniform", "rate-matrix"]


def brute_rates(model, t):
    """The definitions, jump by jump: f = p(z)R(z→x), b = p(x)R(x→z)."""
    kernel = model.process.kernel
    p, beta = noisy_law(model, t), model.process.noise.beta(t).item()
    forward = beta * full_generator(kernel, model.length)
    f = (p[:, None] * forward).T  # f[x, z]: flux of the reverse jump x → z
    np.fill_diagonal(f, 0.0)
    b = f.T
    every = states(kernel.size, model.length)
    pi = np.prod(kernel.stationary.numpy()[every], axis=1)
    alive = f > 0
    rates = {"activity": f.sum(), "total": np.inf, "adiabatic": np.inf}
    if kernel.name == "absorbing":
        score = np.divide(p[None, :], p[:, None], out=np.ones_like(f), where=alive)
        rates["nonadiabatic"] = -(f[alive] * np.log(score[alive])).sum()
        alpha = model.process.noise.alpha(t).item()
        rates["nonadiabatic_data"] = -(f[alive] * np.log(score[alive] * (1 - alpha) / alpha)).sum()
        rates["mobility"] = 0.0
        return rates
    rates["total"] = (f[alive] * np.log(f[alive] / b[alive])).sum()
    steady = pi[:, None] * forward  # π(x)R(x→z)
    rates["adiabatic"] = (f[alive] * np.log(steady.T[alive] / steady[alive])).sum()
    rates["nonadiabatic"] = rates["nonadiabatic_data"] = rates["total"] - rates["adiabatic"]
    upper = np.triu(alive, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(np.isclose(f, b, rtol=1e-9), f, (f - b) / (np.log(f) - np.log(b)))
    rates["mobility"] = mean[upper].sum()
    return rates


@pytest.mark.parametrize(("values", "length"), WORLDS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("t", [0.2, 0.7])
def test_rates_equal_brute_force(values, length, kernel, t):
    model = random_table(values, length, kernel)
    exact, brute = et.exact_rates(model, [t]), brute_rates(model, t)
    for name, expected in brute.items():
        assert getattr(exact, name)[0] == pytest.approx(expected, abs=1e-9, rel=1e-9), name


@pytest.mark.parametrize("kernel", KERNELS)
def test_nonadiabatic_rate_is_the_decay_of_divergence_or_the_change_of_entropy(kernel):
    model, t, step = random_table(3, 3, kernel), 0.5, 1e-5
    low, high = noisy_law(model, t - step), noisy_law(model, t + step)
    rate = et.exact_rates(model, [t]).nonadiabatic[0]
    if kernel == "absorbing":
        assert rate == pytest.approx(-(entropy(high) - entropy(low)) / (2 * step), rel=1e-5)
    else:
        every = states(3, 3)
        pi = np.prod(model.process.kernel.stationary.numpy()[every], axis=1)
        divergence = [np.sum(p * np.log(p / pi)) for p in (low, high)]
        assert rate == pytest.approx(-(divergence[1] - divergence[0]) / (2 * step), rel=1e-5)


def step_laws(model, t, s, alpha_t, alpha_s, law):
    """P(x_s | x_t) exactly, and its factorised version (or Euler's), as matrices over all states."""
    kernel = model.process.kernel
    every = states(kernel.size, model.length)
    q = full_generator(kernel, model.length)
    data = clean_law(model)
    with np.errstate(divide="ignore"):
        sigma_t, sigma_s = -np.log(alpha_t), -np.log(alpha_s)
    if np.isinf(sigma_t):
        sigma_t = 60.0
    p_s, channel = data @ expm(sigma_s * q), expm((sigma_t - sigma_s) * q)
    p_t = p_s @ channel
    joint = p_s[:, None] * channel
    exact = np.divide(joint.T, p_t[:, None], out=np.zeros_like(joint), where=p_t[:, None] > 1e-15)
    factors = np.stack(
        [np.stack([exact[:, every[:, i] == y].sum(1) for y in range(kernel.size)], -1) for i in range(model.length)],
        1,
    )  # (states, length, size)
    if law == "euler":
        beta, single = model.process.noise.beta(t).item(), single_generator(kernel)
        p = noisy_law(model, t)
        index = {tuple(x): k for k, x in enumerate(every)}
        factors = np.zeros_like(factors)
        for k, x in enumerate(every):
            if p[k] <= 0:
                continue
            for i in range(model.length):
                for y in range(kernel.size):
                    if y != x[i]:
                        z = x.copy()
                        z[i] = y
                        factors[k, i, y] = (t - s) * beta * single[y, x[i]] * p[index[tuple(z)]] / p[k]
                factors[k, i, x[i]] = max(1 - factors[k, i].sum(), 0)
                factors[k, i] /= factors[k, i].sum()
    product = np.ones_like(exact)
    for i in range(model.length):
        product *= factors[:, i, :][:, every[:, i]]
    return p_t, exact, product


def brute_path_error(model, times, law="exact"):
    """KL(true path ‖ sampled path) step by step, and KL(data ‖ output) of the sampler."""
    alphas = model.process.grid_alphas(times)
    kernel = model.process.kernel
    every = states(kernel.size, model.length)
    prior = np.prod(kernel.stationary.numpy()[every], axis=1)
    output, total = prior, None
    for k in range(len(times) - 1):
        step_law = "exact" if times[k + 1] == 0 else law
        p_t, exact, product = step_laws(model, times[k], times[k + 1], alphas[k], alphas[k + 1], step_law)
        if total is None:
            live = p_t > 1e-12
            total = np.sum(p_t[live] * np.log(p_t[live] / prior[live])) if not model.process.absorbing else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(exact > 1e-14, exact * np.log(exact / product), 0.0)
        total += np.sum(p_t[:, None] * ratio)
        output = output @ product
    data = clean_law(model)
    live = data > 0
    return total, np.sum(data[live] * np.log(data[live] / output[live]))


@pytest.mark.parametrize(("values", "length"), [(3, 3), (2, 4)])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("noise", [et.LogLinear(), et.Geometric(0.05, 4)], ids=["log-linear", "geometric"])
def test_path_error_is_the_summed_total_correlation_and_bounds_the_output(values, length, kernel, noise):
    model = random_table(values, length, kernel, noise)
    for times in ([1.0, 0.0], [1.0, 0.5, 0.0], [1.0, 0.8, 0.35, 0.1, 0.0]):
        error, divergence = brute_path_error(model, times)
        assert et.exact_path_error(model, times) == pytest.approx(error, abs=1e-8)
        assert error >= divergence - 1e-9


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_path_error_on_a_larger_world(kernel):
    model = random_table(4, 4, kernel)
    times = [1.0, 0.6, 0.0]
    error, divergence = brute_path_error(model, times)
    assert et.exact_path_error(model, times) == pytest.approx(error, abs=1e-8)
    assert error >= divergence - 1e-9


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_sampler_aware_path_error(kernel):
    model = random_table(2, 3, kernel, et.Geometric(0.1, 1.5))
    times = np.linspace(1, 0, 13)
    error, divergence = brute_path_error(model, times, "euler")
    assert np.isfinite(error)
    assert et.exact_path_error(model, times, "euler") == pytest.approx(error, abs=1e-8)
    assert error >= divergence - 1e-9
    assert error >= et.exact_path_error(model, times)


def test_impossible_euler_steps_cost_infinity():
    model = random_table(3, 3, "uniform", et.LogLinear())
    assert et.exact_path_error(model, [1.0, 0.5, 0.0], "euler") == np.inf


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_ods_is_the_best_of_all_grid_schedules(kernel):
    model = random_table(3, 3, kernel)
    grid = np.linspace(1, 0, 11)
    costs = et.exact_costs(model, grid)
    weights, previous = lightest_paths(costs, 4)
    for steps in range(1, 5):
        candidates = itertools.combinations(range(1, len(grid) - 1), steps - 1)
        value, best = min(
            (sum(costs[a, b] for a, b in itertools.pairwise((0, *nodes, len(grid) - 1))), (0, *nodes, len(grid) - 1))
            for nodes in candidates
        )
        assert weights[steps - 1] == pytest.approx(value, abs=1e-12)
        assert tuple(path_nodes(previous, steps)) == best


def test_binomial_figure():
    """Binomial(14, ½) with geometric noise 0.01 → 5: the numbers of theory and paper."""
    model = et.load("binomial-exact", "uniform")
    times = np.linspace(0, 1, 1001)
    rates = et.exact_rates(model, times)
    assert times[rates.nonadiabatic.argmax()] == pytest.approx(0.612, abs=0.005)
    assert np.trapezoid(rates.nonadiabatic, times) == pytest.approx(0.6423, abs=0.0005)
    assert np.abs(rates.adiabatic).max() < 1e-12
    np.testing.assert_allclose(rates.total, rates.nonadiabatic, atol=1e-12)
    masked = et.exact_rates(et.load("binomial-exact"), times)
    assert np.isinf(masked.total).all() and np.isinf(masked.adiabatic).all()
    for name in ("nonadiabatic", "nonadiabatic_data", "activity", "mobility"):
        assert np.isfinite(getattr(masked, name)).all()
    assert times[masked.nonadiabatic.argmax()] == pytest.approx(0.815, abs=0.002)
    assert times[masked.nonadiabatic_data.argmax()] == pytest.approx(0.741, abs=0.002)
    assert masked.nonadiabatic[times < 0.40].max() < 0 < masked.nonadiabatic[(times > 0.405) & (times < 1)].min()
    entropy_gain = np.log(15) - model.entropy
    assert entropy_gain == pytest.approx(0.6632, abs=1e-3)


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_wasserstein_bounds_are_ordered(kernel):
    """W1 in Hamming distance by linear programming ≤ mobility ≤ activity ≤ Yoshimura."""
    model = random_table(3, 2, kernel, et.Geometric(0.02, 4), seed=3)
    times = np.linspace(0, 1, 801)
    rates = {
        name: getattr(et.exact_rates(model, times), name) for name in ("total", "nonadiabatic", "activity", "mobility")
    }
    bounds = et.wasserstein_bounds(times, rates)
    every = states(model.process.kernel.size, 2)
    distance = (every[:, None] != every[None]).sum(-1).astype(float)
    for k in (200, 500, 800):
        truth = transport(noisy_law(model, 0.0), noisy_law(model, times[k]), distance)
        assert truth <= bounds["mobility"][k] + 1e-4
        if kernel == "uniform":
            assert bounds["mobility"][k] <= bounds["activity"][k] + 1e-9 <= bounds["yoshimura"][k] + 1e-6
        else:  # the mobility bound is W1 itself
            assert truth == pytest.approx(bounds["mobility"][k], rel=2e-3)
            assert np.isinf(bounds["activity"][k])


def transport(p, q, distance):
    n = len(p)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    result = linprog(distance.ravel(), A_eq=np.vstack([rows, columns])[:-1], b_eq=np.concatenate([p, q])[:-1])
    return result.fun


def test_binomial_w1_is_total_variation():
    model = et.load("binomial-exact", "uniform")
    times = np.linspace(0, 1, 501)
    rates = {
        name: getattr(et.exact_rates(model, times), name) for name in ("total", "nonadiabatic", "activity", "mobility")
    }
    bounds = et.wasserstein_bounds(times, rates)
    law = binom.pmf(np.arange(15), 14, 0.5)
    start, end = (model.process.noise.alpha(t).item() for t in (0.0, 1.0))
    truth = np.abs((start - end) * (law - 1 / 15)).sum() / 2
    ordered = [truth, *(bounds[name][-1] for name in ("mobility", "activity", "yoshimura"))]
    assert ordered == sorted(ordered)


def test_enumeration_refuses_what_it_cannot_do():
    with pytest.raises(et.EigentimeError, match="measure"):
        et.exact_rates(et.load("countdown-exact"), [0.5])
    with pytest.raises(et.EigentimeError, match="times"):
        et.exact_rates(et.load("binomial-exact"), [1.5])
