from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import binom

import eigentime as et
from eigentime.measure.groups import in_groups
from eigentime.measure.profile import LevelCurve, Profile
from eigentime.models import base
from worlds import random_table

KERNELS = ["absorbing", "uniform"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_monte_carlo_rates_agree_with_enumeration(kernel):
    """In the paper's setting (samples × times) every rate lies within its own error bars."""
    model = random_table(3, 3, kernel, et.Geometric(0.05, 4))
    times = np.linspace(0.1, 1.0, 10)
    clock = et.measure(model, model.draw(1500, 1), times=times, samples=1500, seed=2)
    assert clock.evaluations == 15_000
    assert clock.times == tuple(times)
    exact = et.exact_rates(model, times)
    for name in ("nonadiabatic", "nonadiabatic_data", "activity"):
        curve = et.curve(clock, name)
        z = (curve.mean - getattr(exact, name)) / np.maximum(curve.stderr, 2e-3 * np.abs(getattr(exact, name)).max())
        assert np.abs(z).max() < 4.5, (name, z)
    total = et.curve(clock, "total").mean
    assert np.isinf(total).all() == (kernel == "absorbing")


@pytest.mark.parametrize("kernel", KERNELS)
def test_binomial_monte_carlo_covers_the_truth(kernel):
    model = et.load("binomial-exact", kernel)
    clock = et.measure(model, times=64, samples=512, seed=1)
    fine = np.linspace(0.004, 0.996, 400)
    exact = et.exact_rates(model, fine).nonadiabatic
    estimate = et.cumulative(clock, "nonadiabatic", fine)
    truth = np.trapezoid(exact, fine)
    assert abs(estimate.mean[-1] - truth) < 4 * estimate.stderr[-1] + 0.01 * abs(truth)


@pytest.mark.parametrize("kernel", ["absorbing", "uniform", "rate-matrix"])
def test_certificates_cover_the_exact_path_error(kernel):
    model = random_table(3, 4, kernel, et.Geometric(0.02, 5), concentration=0.3)
    clock = et.measure(model, model.draw(4000, 1), budget=12_000, tolerance=0.01, seed=3)
    assert clock.evaluations <= 12_000
    for steps in (1, 2, 4, 8):
        for strategy in ("uniform", "ods"):
            grid = et.schedule(clock, strategy, steps=steps)
            error, truth = et.path_error(clock, grid), et.exact_path_error(model, grid.times)
            assert abs(error.mean - truth) < 4 * error.stderr + 0.01 * truth, (strategy, steps, error, truth)
            assert error.stderr < 0.15 * truth
            assert error.absolute


@pytest.mark.parametrize("kernel", KERNELS)
def test_sampler_aware_certificates(kernel):
    model = random_table(2, 3, kernel, et.Geometric(0.1, 1.5))
    clock = et.measure(model, model.draw(4000, 1), budget=12_000, tolerance=0.01, seed=3)
    grid = et.schedule("uniform", steps=12, model=model)
    for sampler, law in (("euler", "euler"), ("tau-leaping", "poisson")):
        error, truth = et.path_error(clock, grid, sampler=sampler), et.exact_path_error(model, grid.times, law)
        assert error.mean == pytest.approx(truth, abs=4 * error.stderr + 0.02 * truth)
        aware = et.schedule(clock, "ods", steps=12, sampler=sampler)
        assert et.exact_path_error(model, aware.times, law) < truth
    too_long = et.schedule(clock, [1.0, 0.9, 0.0])
    if kernel == "uniform":
        short = random_table(3, 3, "uniform")
        measured = et.measure(short, short.draw(64), budget=300, seed=0)
        infinite = et.path_error(measured, et.schedule(measured, "uniform", steps=4), sampler="euler")
        assert infinite.mean == np.inf and "exact law" in infinite.note
    assert et.path_error(clock, too_long, sampler="trapezoidal").note.startswith("no certificate")
    assert et.path_error(clock, too_long, sampler="first-hitting").mean == 0
    assert "temperature 0.5" in et.path_error(clock, too_long, temperature=0.5).note


def test_absorbing_curve_on_counts_is_exact_for_a_small_world():
    """h(α) = Σ Bin(m; L-1, α)·h_count(m) and ∫h = mean h_count = H(p_0)/L."""
    model = random_table(3, 4, "absorbing")
    every = model.process.kernel.values[model.sequences]
    clock = et.measure(model, every, budget=100_000, tolerance=0.0, seed=0)
    assert clock.measured.levels.tolist() == [0, 1, 2, 3]
    exact = np.array([_mean_entropy(model, m) for m in range(4)])
    profile = Profile(np.arange(4.0), True, 4, *[np.ones((1, 4))] * 5)
    curve = LevelCurve(profile.levels, exact, profile.free, profile.counts)
    assert curve.integral(np.array(1.0)) == pytest.approx(model.entropy / 4, abs=1e-9)
    assert curve.integral(np.array(0.3)) == pytest.approx(_simpson(curve.at, 0.3), abs=1e-9)
    for alpha in (0.0, 0.2, 0.5, 0.9, 1.0):
        assert curve.at(np.array(alpha)) == pytest.approx(binom.pmf(np.arange(4), 3, alpha) @ exact, abs=1e-9)
    rates = et.exact_rates(model, [0.4])
    alpha, speed = model.process.noise.alpha(0.4).item(), 4 * (1 - 1e-3)
    assert speed * curve.at(np.array(alpha)) == pytest.approx(rates.nonadiabatic_data[0], abs=1e-9)


def _mean_entropy(model, revealed):
    """H(x_i | m others) averaged over positions and choices, from joint entropies."""
    law = model.law.reshape([3] * 4).numpy()

    def joint(keep):
        marginal = law.sum(tuple(i for i in range(4) if i not in keep)).ravel()
        return -np.sum(marginal[marginal > 0] * np.log(marginal[marginal > 0]))

    return np.mean(
        [joint((*k, i)) - joint(k) for k in combinations(range(4), revealed) for i in range(4) if i not in k]
    )


def _simpson(function, upper):
    return quad(lambda a: float(function(np.array(a))), 0, upper)[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_measuring_on_countdown_is_cheap_and_finds_the_optimum(kernel):
    """256 sequence evaluations, against a reference with many more (the full study: benchmarks/budget.py)."""
    model = et.load("countdown-exact", kernel)
    clock = et.measure(model, model.draw(256, 5), budget=256, tolerance=0.0, seed=1)
    assert clock.evaluations <= 256
    reference = et.measure(model, model.draw(1024, 77), budget=5000 if kernel == "absorbing" else 2500, tolerance=0.0)
    truth = reference.costs()
    for steps in (4, 8, 16):
        found = truth.path(et.schedule(clock, "ods", steps=steps).alphas)
        best = truth.path(et.schedule(reference, "ods", steps=steps).alphas)
        assert found <= 1.08 * best
        certificate = et.path_error(clock, et.schedule(clock, "ods", steps=steps))
        assert abs(certificate.mean - found) < 4 * certificate.stderr + 0.05 * found


@pytest.mark.parametrize("kernel", KERNELS)
def test_ods_has_the_least_predicted_error_of_all_strategies(kernel):
    model = et.load("countdown-exact", kernel)
    clock = et.measure(model, model.draw(256, 5), budget=400, seed=1)
    costs = clock.costs()
    for steps in (1, 2, 3, 7, 16, 40):
        errors = {
            name: costs.path(et.schedule(clock, name, steps=steps).alphas)
            for name in ("uniform", "cosine", "fisher-rao", "eds", "wds", "eds-data", "wds-data", "sqrt-slope", "ods")
        }
        assert min(errors.values()) >= 0.999 * errors["ods"]
        assert errors["ods"] > 0


def test_measuring_is_repeatable_and_independent_of_the_batch_split():
    model = et.load("countdown-exact")
    data = model.draw(64, 5)
    first = et.measure(model, data, budget=100, orders=["raster"], seed=7)
    second = et.measure(model, data, budget=100, orders=["raster"], seed=7, batch_size=3)
    np.testing.assert_allclose(first.measured.entropy, second.measured.entropy, atol=1e-10)
    np.testing.assert_allclose(first.orders["raster"].entropy, second.orders["raster"].entropy, atol=1e-10)
    assert first.fingerprint != et.measure(model, data, budget=100, seed=8).fingerprint
    table = random_table(3, 3, "uniform")
    parts = [et.measure(table, table.draw(16, 1), budget=64, seed=7, batch_size=size) for size in (None, 1)]
    np.testing.assert_allclose(parts[0].measured.divergence, parts[1].measured.divergence, atol=1e-10)
    with pytest.raises(et.EigentimeError, match="batch_size must be"):
        et.measure(model, data, batch_size=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_given_tokens_are_not_measured(kernel):
    """With the first two of three tokens given, what is left is one token: no schedule can be wrong about it.

    (The uniform kernel's oracle does not know which tokens are given, so there it is only nearly so.)
    """
    model = random_table(3, 3, kernel)
    fixed = torch.tensor([True, True, False])
    clock = et.measure(model, model.draw(400, 1), fixed=fixed, budget=1000, seed=0)
    assert clock.free == 1
    error = et.path_error(clock, et.schedule(clock, "uniform", steps=2)).mean
    assert error == pytest.approx(0, abs=1e-9 if kernel == "absorbing" else 0.05)
    marginal = model.law.reshape(3, 3, 3).sum(2).numpy().ravel()
    conditional = model.entropy + np.sum(marginal * np.log(marginal))
    if kernel == "absorbing":
        produced = et.cumulative(clock, "nonadiabatic_data")
        assert abs(produced.mean[-1] - conditional) < 4 * produced.stderr[-1] + 0.01


def test_own_entropy_and_cross_entropy_part_where_a_model_is_not_calibrated():
    truth = random_table(3, 3, "absorbing")
    sharp = et.wrap(lambda x: 3 * truth(x, torch.ones(len(x)).double()), truth.process, length=3, time=None)
    clock = et.measure(sharp, truth.draw(500, 1), budget=1000, seed=0)
    own, cross = clock.measured.mean("entropy"), clock.measured.mean("cross")
    assert not clock.exact
    assert (cross > own + 0.1).all()
    calibrated = et.measure(truth, truth.draw(2000, 1), budget=6000, tolerance=0.0, seed=0).measured
    np.testing.assert_allclose(calibrated.mean("entropy"), calibrated.mean("cross"), atol=0.08)
    assert "above infinitely many steps" in str(et.path_error(clock, et.schedule(clock, "ods", steps=2)))


def test_a_score_network_measures_like_its_posterior():
    truth = random_table(3, 3, "absorbing")
    kernel, noise = truth.process.kernel, truth.process.noise

    def log_score(x, t):
        rows = truth(x, t.double())
        return kernel.score(rows.exp(), x, noise.alpha(t.double())[:, None].expand(x.shape)).log()

    scored = et.wrap(log_score, truth.process, length=3, predicts="score")
    data = truth.draw(200, 1)
    both = [et.measure(model, data, budget=600, tolerance=0.0, seed=0).measured for model in (truth, scored)]
    for name in ("entropy", "cross", "mass", "raw"):
        np.testing.assert_allclose(both[0].mean(name), both[1].mean(name), atol=1e-5)


def test_a_head_is_run_block_by_block(monkeypatch):
    """A model with hidden/head never makes batch × length × vocabulary at once."""
    truth = random_table(3, 4, "absorbing")
    largest = []

    class Split(base.SplitModel, type(truth)):
        def hidden(self, x, t, cond=None):
            return truth(x, t)

        def head(self, rows):
            largest.append(len(rows))
            return rows

    split = Split(truth.law.reshape([3] * 4), truth.process)
    monkeypatch.setattr(base, "ROW_ELEMENTS", 4 * 5)
    data = truth.draw(50, 1)
    clock = et.measure(split, data, budget=200, tolerance=0.0, seed=0)
    assert max(largest) == 5
    np.testing.assert_allclose(
        clock.measured.entropy, et.measure(truth, data, budget=200, tolerance=0.0, seed=0).measured.entropy
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_papers_setting_works_on_the_shortest_sequences(kernel):
    clock = et.measure(et.load("binomial-exact", kernel), times=64, samples=16, seed=0)
    assert np.isfinite(et.curve(clock, "nonadiabatic").mean).all()
    assert et.schedule(clock, "eds", steps=4).steps == 4


def test_entropy_of_the_binomial_is_known_after_a_default_pass():
    clock = et.measure(et.load("binomial-exact", "uniform"), budget=4096, seed=1)
    produced = et.cumulative(clock, "nonadiabatic")
    assert abs(produced.mean[-1] - 0.6423) < 4 * produced.stderr[-1] + 0.01
    assert produced.stderr[-1] < 0.15


def test_other_samplers_laws_are_measured_at_random_positions():
    """Only one of four tokens is peaked: wherever it stands, the certificate is the same and right."""
    flat, peaked = [1 / 3] * 3, [0.98, 0.01, 0.01]
    for rows in ([peaked, flat, flat, flat], [flat, flat, flat, peaked]):
        model = et.Independent(rows, et.Process(et.Uniform(3), et.Geometric(0.1, 2.0)))
        clock = et.measure(model, model.draw(2000, 1), budget=8000, tolerance=0.0, seed=0)
        grid = et.schedule("uniform", steps=12, model=model)
        error = et.path_error(clock, grid, sampler="tau-leaping")
        assert error.mean == pytest.approx(et.exact_path_error(model, grid.times, "poisson"), rel=0.15)


def test_a_certificate_rechooses_as_the_schedule_was_chosen():
    truth = random_table(3, 3, "absorbing")
    sharp = et.wrap(lambda x: 3 * truth(x, torch.ones(len(x)).double()), truth.process, length=3, time=None)
    clock = et.measure(sharp, truth.draw(500, 1), budget=1000, seed=0)
    planned = et.schedule(clock, "ods", steps=2, estimator="cross-entropy")
    as_given = et.path_error(clock, et.schedule(clock, planned.times.tolist()))
    assert et.path_error(clock, planned).mean == pytest.approx(as_given.mean, abs=0.1)
    with pytest.raises(et.EigentimeError, match="estimator must be one of"):
        et.path_error(clock, planned, estimator="cross")
    with pytest.raises(et.EigentimeError, match="Unknown sampler"):
        et.path_error(clock, planned, sampler="eulr")
    other = et.schedule("uniform", steps=2, process=et.Process(et.Uniform(3), truth.process.noise))
    with pytest.raises(et.EigentimeError, match="another kernel"):
        et.path_error(clock, other)


def test_copies_of_a_sequence_stay_in_one_block():
    """Chosen on some sequences, certified on others: data that is used again must not be on both sides."""
    blocks = in_groups(np.arange(60.0)[:, None], rows=20)
    assert len(blocks) == 20
    assert blocks[0, 0] == 0 + 20 + 40


def test_weak_noise_is_said():
    model = random_table(3, 3, "uniform", et.Linear(0, 0.3))
    clock = et.measure(model, model.draw(64, 1), budget=300, seed=0)
    assert "far from the prior" in et.path_error(clock, et.schedule(clock, "uniform", steps=4)).note


def test_tokens_of_every_integer_kind_and_half_precision_networks():
    truth = random_table(3, 4, "absorbing")
    data = truth.draw(64, 1)
    expected = et.measure(truth, data, budget=100, seed=0).fingerprint
    for kind in (np.uint8, np.uint16, np.int32):
        assert et.measure(truth, data.numpy().astype(kind), budget=100, seed=0).fingerprint == expected
    assert et.measure(truth, data.tolist(), budget=100, seed=0).fingerprint == expected
    for kind in (torch.float16, torch.bfloat16):
        network = torch.nn.Sequential(torch.nn.Embedding(4, 8), torch.nn.Linear(8, 4)).to(kind)
        model = et.wrap(network, truth.process, length=4, time=None)
        assert np.isfinite(et.measure(model, data, budget=100).measured.entropy).all()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"data": torch.zeros(4, 7, dtype=torch.long)}, "shape"),
        ({"data": torch.full((4, 256), 32)}, "token 32"),
        ({"data": torch.zeros(4, 256)}, "integer"),
        ({"data": np.zeros((0, 256), dtype=int)}, "shape"),
        ({"fixed": torch.ones(256, dtype=torch.bool)}, "nothing to measure"),
        ({"fixed": torch.ones(3, dtype=torch.bool)}, "does not fit"),
        ({"fixed": list(range(256))}, "booleans"),
        ({"cond": torch.zeros(2)}, "one row"),
        ({"model": "countdown-exact"}, "must be a model"),
        ({"samples": 8}, "goes with"),
        ({"budget": 1}, "budget"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"times": [0.5]}, "two different times"),
        ({"times": [0.5, 1.5]}, "two different times"),
        ({"times": 8, "samples": 0}, "samples"),
    ],
)
def test_bad_input_is_refused(change, word):
    model = et.load("countdown-exact")
    arguments = {"model": model, "data": model.draw(4), **change}
    with pytest.raises(et.EigentimeError, match=word):
        et.measure(**arguments)


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_the_smallest_budget_is_enough_for_a_schedule(kernel):
    model = et.load("countdown-exact", kernel)
    clock = et.measure(model, model.draw(2, 0), budget=16)
    assert clock.evaluations <= 16
    assert et.schedule(clock, "ods", steps=2).steps == 2


def test_a_clock_shows_itself_in_one_line():
    clock = et.measure(et.load("countdown-exact"), budget=64, orders=["raster"])
    assert (
        repr(clock)
        == f"Clock(countdown-exact, absorbing, 256 tokens, {clock.evaluations} evaluations, orders random, raster)"
    )


def test_a_model_can_be_measured_on_its_own_samples():
    model = random_table(3, 4, "absorbing", concentration=0.5)
    own, given = et.measure(model, "self", budget=256), et.measure(model, model.draw(64, 0), budget=256)
    pair = [et.cumulative(clock, "nonadiabatic_data") for clock in (own, given)]
    assert pair[0].mean[-1] == pytest.approx(pair[1].mean[-1], abs=4 * np.hypot(pair[0].stderr[-1], pair[1].stderr[-1]))
    assert own.evaluations > given.evaluations  # drawing the samples counts
    fewer = et.measure(model, "self", samples=8, budget=256)
    assert fewer.groups == 8 and fewer.evaluations < own.evaluations
    fixed = torch.tensor([True, False, False, False])
    prompted = et.measure(model, "self", given=torch.tensor([2, 0, 0, 0]), fixed=fixed, budget=256)
    assert prompted.free == 3
    for wrong in (
        {"data": "myself"},
        {"data": "self", "fixed": fixed},
        {"data": model.draw(8, 0), "given": fixed},
        {"data": model.draw(8, 0), "samples": 8},
    ):
        with pytest.raises(et.EigentimeError, match="'self'"):
            et.measure(model, **wrong)


@pytest.mark.parametrize("times", [None, [0.2, 0.5, 0.9]])
def test_some_rows_stand_for_all(times):
    """Fewer masked tokens are looked at, without bias: many seeds agree with all rows in the mean."""
    model = random_table(3, 6, "absorbing", seed=4)
    data = model.draw(64, 1)
    options = {"budget": 512, "tolerance": 0.0} if times is None else {"times": times, "samples": 64}
    whole = et.measure(model, data, **options)
    found = [et.measure(model, data, rows=2, seed=seed, **options) for seed in range(24)]
    plain = [et.measure(model, data, seed=seed, **options) for seed in range(24)]
    np.testing.assert_allclose(found[0].measured.masked, plain[0].measured.masked)
    means = [[clock.measured.mean("entropy") for clock in clocks] for clocks in (found, plain)]
    spread = np.std(means[0], 0) / 24**0.5
    assert (np.abs(np.mean(means[0], 0) - np.mean(means[1], 0)) < 4 * spread + 1e-9).all()
    assert found[0].evaluations == whole.evaluations
    enough = et.measure(model, data, rows=6, **options)
    np.testing.assert_allclose(enough.measured.entropy, whole.measured.entropy)


def test_rows_are_for_masked_models():
    for model, rows in ((random_table(3, 3, "uniform"), 2), (random_table(3, 3, "absorbing"), 0)):
        with pytest.raises(et.EigentimeError, match=r"rows must be a whole number|`rows`"):
            et.measure(model, rows=rows, budget=64)
