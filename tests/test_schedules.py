import gc
import json
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import eigentime as et
from eigentime.schedules import STRATEGIES, optimal
from eigentime.schedules.jys import Klub, golden_section, jys_levels, klub_sum
from eigentime.schedules.paths import lightest_paths
from worlds import random_table

MEASURED = [name for name in STRATEGIES if name != "jys"]


@pytest.fixture(scope="module")
def clocks():
    made = {}
    for kernel in ("absorbing", "uniform"):
        for noise in (et.LogLinear(), et.Geometric(0.01, 5)):
            model = random_table(3, 4, kernel, noise, concentration=0.2)
            made[kernel, noise.name] = et.measure(model, model.draw(200, 1), budget=400, seed=0)
    return made


@given(
    strategy=st.sampled_from(MEASURED),
    steps=st.integers(1, 70),
    key=st.sampled_from([(k, n) for k in ("absorbing", "uniform") for n in ("log-linear", "geometric")]),
)
@settings(max_examples=60, deadline=None)
def test_every_schedule_decreases_strictly_between_exact_end_points(clocks, strategy, steps, key):
    grid = et.schedule(clocks[key], strategy, steps=steps)
    assert grid.times[0] == 1.0 and grid.times[-1] == 0.0
    assert np.all(np.diff(grid.times) < 0) and np.all(np.isfinite(grid.times))
    assert np.all(np.diff(grid.alphas) > 0) and grid.alphas[-1] == 1.0
    assert grid.steps == grid.evaluations == steps
    assert grid.counts(256).sum() == 256 and (grid.counts(256) >= 0).all()


def test_the_fixed_curves():
    process = et.Process(et.Absorbing(5), et.LogLinear())
    k = np.arange(1, 8) / 8
    np.testing.assert_allclose(et.schedule("uniform", steps=8, process=process).times[1:-1], 1 - k, atol=1e-12)
    np.testing.assert_allclose(
        et.schedule("cosine", steps=8, process=process).alphas[1:-1], 1 - np.cos(np.pi / 2 * k), atol=1e-12
    )
    np.testing.assert_allclose(
        et.schedule("fisher-rao", steps=8, process=process).alphas[1:-1], np.sin(np.pi / 2 * k) ** 2, atol=1e-12
    )


def test_eds_makes_equal_steps_of_entropy_and_wds_of_the_surrogate():
    model = et.load("binomial-exact", "uniform")
    clock = et.measure(model, model.draw(4000, 1), times=200, samples=1000, seed=0)
    fine = np.linspace(1e-4, 1, 4001)
    exact = et.exact_rates(model, fine)
    for strategy, density in (
        ("eds", exact.nonadiabatic),
        ("wds", np.sqrt(exact.activity * exact.nonadiabatic)),
    ):
        progress = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
        expected = np.interp(np.arange(7, 0, -1) / 8 * progress[-1], progress, fine)
        np.testing.assert_allclose(et.schedule(clock, strategy, steps=8).times[1:-1], expected, atol=0.02)


def test_all_k_up_to_1024(clocks):
    grid = et.schedule(clocks["absorbing", "log-linear"], "ods", steps=1024)
    assert grid.steps == 1024
    with pytest.raises(et.EigentimeError, match="1024"):
        et.schedule(clocks["absorbing", "log-linear"], "ods", steps=1025)


def test_steps_for_finds_the_fewest(clocks):
    clock = clocks["absorbing", "log-linear"]
    for strategy in ("ods", "uniform"):
        steps = et.steps_for(clock, 0.05, strategy=strategy)
        assert et.path_error(clock, et.schedule(clock, strategy, steps=steps)).mean <= 0.06
        assert et.path_error(clock, et.schedule(clock, strategy, steps=steps - 1)).mean >= 0.045
    with pytest.raises(et.EigentimeError, match="trapezoidal"):
        et.steps_for(clock, 1.0, sampler="trapezoidal")
    with pytest.raises(et.EigentimeError, match="finite number above 0"):
        et.steps_for(clock, 0)
    with pytest.raises(et.EigentimeError, match="stay above"):
        et.steps_for(clock, 1e-9, strategy="uniform")


def test_a_users_times_are_checked_and_never_altered(clocks):
    clock = clocks["absorbing", "log-linear"]
    mine = [1.0, 0.4, 0.1, 0.0]
    grid = et.schedule(clock, mine)
    assert grid.times.tolist() == mine == [1.0, 0.4, 0.1, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        grid.times[0] = 2
    published = et.schedule(clock, np.linspace(1, 1e-5, 9))
    assert published.steps == 8 and published.evaluations == 9
    assert published.counts(100).sum() == 100 and len(published.counts(100)) == 9


@pytest.mark.parametrize(
    ("times", "word"),
    [
        ([1.0, 0.2, 0.3, 0.0], "does not lie below"),
        ([1.0, 0.5, 0.5, 0.0], "does not lie below"),
        ([1.0, float("nan"), 0.0], "not finite"),
        ([0.9, 0.0], "starts at t = 1"),
        ([1.0, -0.1], "ends at t = 0"),
        ([1.0], "at least two"),
        ([[1.0, 0.0]], "flat list"),
        (["a", "b"], "list of numbers"),
    ],
)
def test_bad_times_get_a_sentence(clocks, times, word):
    with pytest.raises(et.EigentimeError, match=word):
        et.schedule(clocks["absorbing", "log-linear"], times)


@pytest.mark.parametrize(
    ("arguments", "options", "word"),
    [
        (["magic"], {"steps": 4}, "Unknown strategy"),
        (["ods"], {"steps": 0}, "at least 1"),
        (["ods"], {"steps": 2.5}, "whole number"),
        (["ods"], {}, "steps"),
        (["ods"], {"steps": 4, "sampler": "magic"}, "Unknown sampler"),
        (["jys"], {"steps": 4}, "JYS asks the network"),
        ([[1.0, 0.5, 0.0]], {"steps": 16}, "leave `steps` out"),
        (["ods"], {"steps": 4, "process": et.Process(et.Uniform(3), et.LogLinear())}, "own process"),
        ([], {}, "which strategy"),
    ],
)
def test_bad_requests_get_a_sentence(clocks, arguments, options, word):
    with pytest.raises(et.EigentimeError, match=word):
        et.schedule(clocks["absorbing", "log-linear"], *arguments, **options)
    with pytest.raises(et.EigentimeError, match="chosen by a clock"):
        et.schedule("ods", steps=4, process=et.Process(et.Uniform(3), et.LogLinear()))
    with pytest.raises(et.EigentimeError, match="belongs to a process"):
        et.schedule("uniform", steps=4)


def test_saving_loading_and_converting(clocks, tmp_path):
    clock = clocks["absorbing", "log-linear"]
    grid = et.schedule(clock, "ods", steps=6)
    grid.save(tmp_path / "ods.json")
    again = et.Schedule.load(tmp_path / "ods.json")
    assert again.times.tolist() == grid.times.tolist() and again.provenance == grid.provenance
    assert again.provenance["clock"] == clock.fingerprint
    assert "eigentime" in grid.citation and "Foresti" in et.schedule(clock, "wds", steps=2).citation
    other = et.Linear(0.0, 9.0)
    converted = grid.convert(other)
    np.testing.assert_allclose(other.alpha(converted.times[1:-1]).numpy(), grid.alphas[1:-1], atol=1e-12)
    with pytest.raises(et.EigentimeError, match="convert"):
        et.path_error(clock, converted)
    for content, word in (
        ("{", "not a whole JSON"),
        ('{"a": 1}', "not an eigentime schedule"),
        (json.dumps({**grid.to_dict(), "times": [1, 2, 0]}), "strictly decrease"),
        (json.dumps({k: v for k, v in grid.to_dict().items() if k != "noise"}), "damaged"),
        (json.dumps({**grid.to_dict(), "alphas": ["a"] * 7}), "damaged"),
        (json.dumps({**grid.to_dict(), "noise": "log-linear"}), "damaged"),
    ):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(et.EigentimeError, match=word):
            et.Schedule.load(tmp_path / "bad.json")
    with pytest.raises(et.EigentimeError, match="no schedule file"):
        et.Schedule.load(tmp_path / "missing.json")


def test_clock_files(clocks, tmp_path):
    for clock in clocks.values():
        clock.save(tmp_path / "a.safetensors")
        again = et.Clock.load(tmp_path / "a.safetensors")
        assert again.fingerprint == clock.fingerprint
        assert (again.model, again.evaluations, again.seed) == (clock.model, clock.evaluations, clock.seed)
        same = [et.schedule(each, "ods", steps=5).times for each in (clock, again)]
        assert same[0].tolist() == same[1].tolist()
    whole = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "short.safetensors").write_bytes(whole[: len(whole) // 2])
    save_file({"x": np.zeros(3)}, tmp_path / "foreign.safetensors")
    save_file({"x": np.zeros(3)}, tmp_path / "new.safetensors", {"format": "eigentime-clock", "version": "99"})
    save_file(
        {"x": np.zeros(3)}, tmp_path / "odd.safetensors", {"format": "eigentime-clock", "version": "1", "head": "{}"}
    )
    for name, word in (
        ("short", "not a whole clock"),
        ("foreign", "not a clock"),
        ("new", "version 99"),
        ("odd", "damaged"),
        ("missing", "no clock file"),
    ):
        with pytest.raises(et.EigentimeError, match=word):
            et.Clock.load(tmp_path / f"{name}.safetensors")
    with pytest.raises(et.EigentimeError, match="does not exist"):
        clock.save(tmp_path / "no" / "folder.safetensors")
    with pytest.raises(et.EigentimeError, match="is a folder"):
        clock.save(tmp_path)
    assert not list(tmp_path.glob(".*"))  # no half-written files left behind


def test_a_plan_for_euler_where_equal_steps_are_impossible():
    """Uniform kernel with log-linear noise: β(1) = 999, so Euler needs a tiny first step; an aware plan takes it."""
    model = random_table(3, 3, "uniform")
    clock = et.measure(model, model.draw(64), budget=300, seed=0)
    aware = et.schedule(clock, "ods", steps=8, sampler="euler")
    assert np.isfinite(clock.costs("euler").path(aware.alphas))
    rows = et.compare(model, ["uniform", "ods"], [4], samples=16, sampler="euler", clock=clock)
    assert rows[0]["path_error"]["mean"] == np.inf and rows[0]["clipped"] > 0
    other = random_table(3, 3, "absorbing")
    with pytest.raises(et.EigentimeError, match="another process"):
        et.compare(other, ["ods"], [4], samples=16, clock=clock)


def test_where_no_plan_exists_it_says_so(clocks, monkeypatch):
    clock = clocks["uniform", "geometric"]
    impossible = np.full((65, 65), np.inf)
    plan = (np.linspace(0, 1, 65), *lightest_paths(impossible, 32))
    monkeypatch.setattr(optimal, "_plan", lambda *_: plan)
    with pytest.raises(et.EigentimeError, match="exact law"):
        et.schedule(clock, "ods", steps=8, sampler="euler")


def test_jys_golden_section_looks_where_the_reference_looks(fixture):
    arrays, config = fixture("jys_metrics")
    for k in (0, 1):
        polynomial, (low, high) = arrays["in_poly"][k], arrays["in_bracket"][k]
        best, points = golden_section(lambda t, p=polynomial: -np.polyval(p, t), low, high, config["golden_err"])
        expected = arrays[f"out_golden_points_{k}"]
        unique = list(dict.fromkeys(np.round(expected, 12)))
        np.testing.assert_allclose(points, unique, atol=1e-9)
        assert best == pytest.approx(arrays[f"out_golden_best_{k}"][1], abs=1e-9)


def test_jys_bound_equals_the_reference(fixture):
    for name in ("jys_klub_toy", "jys_klub_uniform"):
        arrays, _ = fixture(name)
        absorbing = name.endswith("toy")
        for k, (_, t2, t3) in enumerate(arrays["in_t123"]):
            rates = [torch.from_numpy(arrays[f"out_rev_rate_{at}"][k]).double() for at in ("t1", "t2")]
            if absorbing:
                rates = [rate[..., :-1].clamp(min=0) for rate in rates]
            positions = rates[0].shape[0] * rates[0].shape[1]
            value = (t2 - t3) * klub_sum(rates[1].flatten(0, 1), rates[0].flatten(0, 1)) / positions
            assert value == pytest.approx(arrays["out_klub"][k], rel=1e-4)


def test_jys_bound_of_a_model_equals_the_reference(fixture):
    """The toy score of the fixture as a model, with the fixture's noised batches put in."""
    arrays, config = fixture("jys_klub_toy")
    left, right = torch.from_numpy(arrays["in_left"]), torch.from_numpy(arrays["in_right"])
    process = et.Process(et.Absorbing(config["num_vocabs"] + 1), et.LogLinear(config["eps"]))

    def log_score(x, sigma):
        logits = left[x.roll(1, 1)] + right[x.roll(-1, 1)]
        scores = logits.double().log_softmax(-1) - torch.log(torch.expm1(sigma.double()))[:, None, None]
        return torch.cat([scores, torch.zeros(*x.shape, 1)], -1)

    model = et.wrap(log_score, process, length=config["length"], predicts="score", time="sigma")
    for k, (t1, t2, t3) in enumerate(arrays["in_t123"]):
        bound = Klub(model, arrays["in_x0"], seed=0)
        noised = {t1: arrays["in_x_t1"][k], t2: arrays["in_x_t2"][k]}
        bound._noised = lambda t, noised=noised: torch.from_numpy(noised[t])
        assert bound(t1, t2, t3) == pytest.approx(arrays["out_klub"][k], rel=2e-3)


def test_jys_bound_counts_given_tokens_as_the_reference(fixture):
    """The toy denoiser on the uniform kernel, its first three tokens given: their terms are in the sum."""
    arrays, config = fixture("jys_klub_uniform")
    left, right, own = (torch.from_numpy(arrays[f"in_{name}"]) for name in ("left", "right", "own"))
    size, length = config["S"], config["length"]
    process = et.Process(et.Uniform(size), et.Linear(0.0, size * config["rate_const"]))
    model = et.wrap(lambda x: left[x.roll(1, 1)] + right[x.roll(-1, 1)] + own[x], process, length=length, time=None)
    fixed = torch.arange(length) < config["fix_length"]
    for k, (t1, t2, t3) in enumerate(arrays["in_t123"]):
        bound = Klub(model, arrays["in_x0"], seed=0, fixed=fixed)
        noised = {t1: arrays["in_x_t1"][k], t2: arrays["in_x_t2"][k]}
        bound._noised = lambda t, noised=noised: torch.from_numpy(noised[t])
        # the reference divides by q + 1e-6, which shows where q is small; without those terms it is 11 to 25 % less
        assert bound(t1, t2, t3) == pytest.approx(arrays["out_klub"][k], rel=3e-4 if t2 > 0.1 else 3e-3)
    assert (bound._noised(t1)[:, :3] == torch.from_numpy(arrays["in_x0"])[:, :3]).all()
    assert (Klub(model, arrays["in_x0"], seed=0, fixed=fixed)._noised(1.0)[:, :3] == bound.data[:, :3]).all()


def test_jys_levels_are_nested_and_count_their_evaluations():
    model = random_table(3, 4, "absorbing")
    data = model.draw(32, 1)
    levels = jys_levels(model, data, 8)
    assert set(levels) == {1, 2, 4, 8}
    for steps in (2, 4, 8):
        times, spent = levels[steps]
        assert np.all(np.diff(times) < 0) and len(times) == steps + 1
        assert set(levels[steps // 2][0]) <= set(times)
        assert spent > levels[steps // 2][1]
        np.testing.assert_allclose(times * 1024, np.round(times * 1024))
    grid = et.schedule("jys", steps=8, model=model, data=data)
    assert grid.provenance["evaluations"] == levels[8][1]
    assert grid.times.tolist() == levels[8][0].tolist()
    with pytest.raises(et.EigentimeError, match="1, 2, 4"):
        et.schedule("jys", steps=6, model=model, data=data)


def test_no_cache_keeps_a_clock_alive():
    clock = et.measure(random_table(2, 3, "absorbing"), budget=32)
    et.path_error(clock, et.schedule(clock, "ods", steps=3))
    seen = weakref.ref(clock)
    del clock
    gc.collect()
    assert seen() is None
