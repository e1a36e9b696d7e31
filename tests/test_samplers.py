import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.process.laws import clip_law, token_law
from eigentime.samplers import SAMPLERS
from eigentime.samplers.jumps import after_jumps
from eigentime.samplers.shaping import Shaping
from worlds import clean_law, make_kernel, random_table, states
from worlds import noisy_law as _noisy_law

KERNELS = ["absorbing", "uniform", "rate-matrix"]


def output_law(model, grid, law):
    """The exact law of a factorised sampler's output, by pushing the prior through every step's product law."""
    kernel = model.process.kernel
    every = torch.from_numpy(states(kernel.size, model.length))
    output = np.prod(kernel.stationary.numpy()[every], axis=1)
    for k, (t, s) in enumerate(itertools.pairwise(grid.times)):
        step_law = "exact" if s == 0 else law
        at = [
            torch.full(every.shape, float(v), dtype=torch.float64) for v in (t, s, grid.alphas[k], grid.alphas[k + 1])
        ]
        posterior = model(every, at[0][:, 0]).exp().nan_to_num(0.0)
        rows, _ = clip_law(token_law(model.process, step_law, posterior, every, *at))
        product = np.ones((len(every),) * 2)
        for i in range(model.length):
            product *= rows[:, i].numpy()[:, every[:, i]]
        output = output @ np.nan_to_num(product)
    return output


def frequencies(x, size):
    index = np.ravel_multi_index(tuple(x.numpy().T), (size,) * x.shape[1])
    return np.bincount(index, minlength=size ** x.shape[1]) / len(x)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("sampler", "law"), [("ancestral", "exact"), ("euler", "euler"), ("tau-leaping", "poisson")])
@pytest.mark.filterwarnings("ignore:.*clipped")
def test_factorised_samplers_have_their_exact_law(kernel, sampler, law):
    model = random_table(2, 3, kernel, et.Geometric(0.1, 2.0), concentration=1.0)
    grid = et.schedule([1.0, 0.7, 0.25, 0.0], process=model.process)
    count = 40_000
    x = et.sample(model, grid, count, sampler=sampler, seed=3)
    expected = output_law(model, grid, law)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    noise = 5 * np.sqrt(expected * (1 - expected) / count) + 1e-9
    assert (np.abs(frequencies(x, model.process.kernel.size) - expected) < noise).all()


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
@pytest.mark.parametrize("sampler", ["ancestral", "euler", "tau-leaping", "trapezoidal"])
@pytest.mark.filterwarnings("ignore:.*clipped")
def test_many_steps_reach_the_data(kernel, sampler):
    model = random_table(2, 3, kernel, et.Geometric(0.02, 6.0), concentration=1.0)
    grid = et.schedule("fisher-rao", steps=80, model=model)
    x = et.sample(model, grid, 20_000, sampler=sampler, seed=1)
    data = clean_law(model)
    assert np.abs(frequencies(x, model.process.kernel.size) - data).sum() / 2 < 0.03


def test_trapezoidal_is_of_higher_order():
    """At equal steps its error is well below τ-leaping's, and it falls faster than in proportion to the steps."""
    model = random_table(2, 3, "uniform", et.Linear(0.0, 2.5), seed=5)
    data, errors = clean_law(model), {}
    for steps, sampler in ((12, "tau-leaping"), (6, "trapezoidal"), (12, "trapezoidal")):
        grid = et.schedule([*np.linspace(1, 0.01, steps), 0.0], process=model.process)
        x = et.sample(model, grid, 50_000, sampler=sampler, seed=2)
        info = x.info
        errors[steps, sampler] = np.abs(frequencies(x, 2) - data).sum() / 2
        assert info.nfe == (steps if sampler == "tau-leaping" else 2 * (steps - 1) + 1)
    assert errors[12, "trapezoidal"] < 0.4 * errors[12, "tau-leaping"]
    assert errors[12, "trapezoidal"] < 0.48 * errors[6, "trapezoidal"]


def test_first_hitting_is_exact():
    model = random_table(2, 3, "absorbing", concentration=1.0)
    x = et.sample(model, None, 40_000, sampler="first-hitting", seed=2)
    info = x.info
    data = clean_law(model)
    assert info.nfe == 3 and info.evaluations == 3 * 40_000
    assert (np.abs(frequencies(x, 3) - data) < 5 * np.sqrt(data / 40_000) + 1e-9).all()
    with pytest.raises(et.EigentimeError, match="absorbing"):
        et.sample(random_table(2, 3, "uniform"), None, 4, sampler="first-hitting")


@pytest.mark.parametrize(
    ("kernel", "sampler"),
    [
        *itertools.product(["absorbing", "uniform"], ["ancestral", "euler", "tau-leaping", "trapezoidal"]),
        ("absorbing", "first-hitting"),
    ],
)
@given(batch=st.integers(1, 13), seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
@pytest.mark.filterwarnings("ignore:.*clipped")
def test_same_seed_same_samples_whatever_the_batch_split(kernel, sampler, batch, seed):
    model = random_table(3, 4, kernel)
    grid = None if sampler == "first-hitting" else et.schedule("cosine", steps=5, model=model)
    whole = et.sample(model, grid, 13, sampler=sampler, seed=seed)
    split = et.sample(model, grid, 13, sampler=sampler, seed=seed, batch_size=batch)
    assert torch.equal(whole, split)
    assert torch.equal(whole[:7], et.sample(model, grid, 7, sampler=sampler, seed=seed))


def test_evaluations_are_saved_where_nothing_can_change():
    """64 steps for 8 tokens: most steps reveal nothing, and the network is not asked."""
    model = random_table(2, 8, "absorbing")
    grid = et.schedule("uniform", steps=64, model=model)
    calls = []

    class Counting(type(model)):
        def __call__(self, x, t, where=None, cond=None):
            calls.append((len(x), int(where.sum())))
            return super().__call__(x, t, where, cond)

    counting = Counting(model.law.reshape([2] * 8), model.process)
    x = et.sample(counting, grid, 50, seed=0)
    info = x.info
    assert info.nfe == 64
    assert info.evaluations == sum(sequences for sequences, _ in calls) <= 50 * 8
    assert sum(rows for _, rows in calls) == 50 * 8  # every token is drawn once, nowhere else
    assert (x < 2).all()


def test_a_published_grid_gets_its_denoising_step():
    model = random_table(2, 3, "absorbing")
    grid = et.schedule(np.linspace(1, 1e-5, 5), process=model.process)
    x = et.sample(model, grid, 100)
    info = x.info
    assert info.nfe == 5 == grid.evaluations
    assert (x < 2).all()


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_given_tokens_stay_and_condition_the_rest(kernel):
    model = random_table(2, 3, kernel, et.LogLinear(), concentration=1.0)
    given_tokens, fixed = torch.tensor([0, 1, 0]), torch.tensor([False, True, False])
    grid = et.schedule("uniform", steps=40, model=model)
    x = et.sample(model, grid, 20_000, given=given_tokens, fixed=fixed, seed=1)
    assert (x[:, 1] == 1).all()
    if kernel == "absorbing":
        law = model.law.reshape(2, 2, 2)[:, 1].flatten().numpy()
        observed = frequencies(x[:, [0, 2]], 2)
        np.testing.assert_allclose(observed, law / law.sum(), atol=0.02)
    for arguments, word in (
        ({"given": given_tokens}, "both"),
        ({"given": torch.tensor([0, 7, 0]), "fixed": fixed}, "token 7"),
        ({"given": torch.zeros(5, dtype=torch.long), "fixed": fixed}, "does not fit"),
    ):
        with pytest.raises(et.EigentimeError, match=word):
            et.sample(model, grid, 4, **arguments)


def test_a_callback_sees_every_step_and_can_stop():
    model = random_table(2, 3, "absorbing")
    grid = et.schedule("uniform", steps=6, model=model)
    seen = []

    def watch(state):
        seen.append((state.step, state.time, int((state.tokens == 2).sum())))
        return state.step == 3

    x = et.sample(model, grid, 50, callback=watch)
    info = x.info
    assert [step for step, _, _ in seen] == [1, 2, 3]
    assert info.stopped and info.nfe == 3
    masks = [count for _, _, count in seen]
    assert masks == sorted(masks, reverse=True) and (x == 2).any()


def test_shaping():
    q = torch.tensor([[0.5, 0.3, 0.15, 0.05]], dtype=torch.float64)
    np.testing.assert_allclose(Shaping(temperature=0.5)(q), (q**2 / (q**2).sum()), atol=1e-12)
    np.testing.assert_allclose(Shaping(temperature=0)(q), [[1, 0, 0, 0]])
    np.testing.assert_allclose(Shaping(top_k=2)(q), [[0.625, 0.375, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(Shaping(top_p=0.7)(q), [[0.625, 0.375, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(Shaping(top_p=0.5)(q), [[1, 0, 0, 0]], atol=1e-12)
    model = random_table(3, 3, "absorbing")
    cold = et.sample(model, et.schedule("uniform", steps=3, model=model), 200, temperature=0.0, seed=0)
    assert len(cold.unique(dim=0)) < 12
    for options in ({"temperature": -1.0}, {"top_p": 0.0}, {"top_k": 0}):
        with pytest.raises(et.EigentimeError, match="must"):
            Shaping(**options)


def test_a_score_networks_mass_is_kept_or_normalised():
    """Scores twice too large reveal twice as fast under the published law; normalised they do not."""
    truth = random_table(2, 3, "absorbing")
    kernel, noise = truth.process.kernel, truth.process.noise

    def log_score(x, t, scale=2.0):
        rows = truth(x, t.double()).exp()
        return (scale * kernel.score(rows, x, noise.alpha(t.double())[:, None].expand(x.shape))).log()

    model = et.wrap(log_score, truth.process, length=3, predicts="score")
    grid = et.schedule([1.0, 0.8, 0.0], process=truth.process)
    masks = {}
    for normalise in (False, True):
        states_seen = []
        et.sample(
            model, grid, 4000, normalise=normalise, callback=lambda s, seen=states_seen: seen.append(s.tokens) or False
        )
        masks[normalise] = (states_seen[0] == 2).double().mean().item()
    assert masks[False] == pytest.approx(1 - 0.4, abs=0.02)
    assert masks[True] == pytest.approx(1 - 0.2, abs=0.02)


def imperfect_scores(kernel, noise=0.05):
    """A score network that is a little wrong."""
    truth = random_table(3, 3, kernel)
    generator = torch.Generator().manual_seed(0)
    wrong = noise * torch.randn(3, truth.process.kernel.size, generator=generator)

    def log_score(x, t):
        alpha = truth.process.noise.alpha(t.double())[:, None].expand(x.shape)
        return truth.process.kernel.score(truth(x, t.double()).exp(), x, alpha).log() + wrong

    return truth, et.wrap(log_score, truth.process, length=3, predicts="score")


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
@pytest.mark.filterwarnings("ignore:.*clipped")
def test_an_imperfect_score_network_is_measured_and_sampled(kernel):
    """Its posterior by inversion has negative entries on the uniform kernel: nothing may turn into NaN."""
    truth, model = imperfect_scores(kernel)
    clock = et.measure(model, truth.draw(200, 1), budget=600, seed=0)
    grid = et.schedule(clock, "ods", steps=8)
    assert np.isfinite(et.path_error(clock, grid).mean)
    data = clean_law(truth)
    for options in ({}, {"temperature": 0.99}, {"normalise": True}):
        x = et.sample(model, grid, 5000, **options)
        info = x.info
        assert 0 <= info.clipped <= 1
        assert np.abs(frequencies(x, truth.process.kernel.size) - data).sum() / 2 < 0.2


def test_euler_says_when_it_clips():
    model = random_table(3, 3, "uniform")
    with pytest.warns(UserWarning, match="clipped"):
        info = et.sample(model, et.schedule("uniform", steps=3, model=model), 50, sampler="euler").info
    assert info.clipped > 0


def test_ordinal_jumps_follow_tauldr(fixture):
    """Counts in, next state out: the sum of n(y)(y - x), clamped."""
    arrays, _ = fixture("tauldr_rates")
    for name in ("uniform", "gauss"):
        x, counts = torch.from_numpy(arrays[f"in_{name}_x"]), torch.from_numpy(arrays[f"in_{name}_counts"])
        np.testing.assert_array_equal(after_jumps(x, counts), arrays[f"out_{name}_tl_next_x"])
    model = random_table(4, 2, "uniform", et.Geometric(0.1, 2))
    x = et.sample(model, et.schedule("uniform", steps=30, model=model), 500, sampler=et.TauLeaping(ordinal=True))
    assert x.min() >= 0 and x.max() <= 3
    assert torch.equal(
        x,
        et.sample(
            model, et.schedule("uniform", steps=30, model=model), 500, sampler=et.TauLeaping(ordinal=True), batch_size=7
        ),
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sampler": "magic"}, "Unknown sampler"),
        ({"num_samples": 0}, "at least 1"),
        ({"schedule": None}, "needs a Schedule"),
        ({"schedule": [1.0, 0.0]}, "needs a Schedule"),
        ({"model": "countdown-exact"}, "must be a model"),
        ({"num_samples": "4"}, "at least 1"),
    ],
)
def test_bad_requests_get_a_sentence(options, word):
    model = random_table(2, 3, "absorbing")
    arguments = {"model": model, "schedule": et.schedule("uniform", steps=3, model=model), "num_samples": 4, **options}
    with pytest.raises(et.EigentimeError, match=word):
        et.sample(**arguments)


def test_a_schedule_of_another_noise_is_refused():
    model = random_table(2, 3, "absorbing")
    other = et.Process(make_kernel("absorbing", 2), et.Cosine())
    grid = et.schedule("uniform", steps=3, process=other)
    with pytest.raises(et.EigentimeError, match="convert"):
        et.sample(model, grid, 4)
    assert et.sample(model, grid.convert(model.process.noise), 4).shape == (4, 3)
    wrong_kernel = et.schedule("uniform", steps=3, process=et.Process(et.Uniform(2), model.process.noise))
    with pytest.raises(et.EigentimeError, match="another kernel"):
        et.sample(model, wrong_kernel, 4)


def test_noisy_law_helper_agrees_with_the_process():
    model = random_table(2, 2, "uniform")
    transition = model.process.transition(0.0, 0.5).numpy()
    law = np.einsum("ab,ai,bj->ij", model.law.reshape(2, 2).numpy(), transition, transition)
    np.testing.assert_allclose(_noisy_law(model, 0.5), law.ravel(), atol=1e-12)


def test_a_sampler_says_itself_what_it_is():
    for name, make in SAMPLERS.items():
        sampler = make()
        assert sampler.name == name and isinstance(sampler, et.Sampler)
    laws = {name: make().law for name, make in SAMPLERS.items() if make().law}
    assert laws == {
        "ancestral": "exact",
        "counted": "counted",
        "euler": "euler",
        "tau-leaping": "poisson",
        "first-hitting": "exact",
    }
    free = {name for name, make in SAMPLERS.items() if not make().scheduled}
    assert free == {"apart", "entropy-bounded", "threshold", "klass", "prefix", "order-bounded", "first-hitting"}
    with pytest.raises(et.EigentimeError, match="theta must be"):
        et.Trapezoidal(1.0)


def test_options_as_objects_are_the_short_names():
    model = random_table(3, 4, "absorbing")
    grid = et.schedule("uniform", steps=3, model=model)
    pairs = (
        ({"sampler": "trapezoidal"}, {"sampler": et.Trapezoidal(0.5)}),
        ({"temperature": 0.7, "top_p": 0.9}, {"shaping": et.Shaping(0.7, 0.9)}),
    )
    for short, long in pairs:
        assert torch.equal(et.sample(model, grid, 50, **short), et.sample(model, grid, 50, **long))
    clock = et.measure(model, budget=64)
    errors = [et.path_error(clock, grid, sampler=one).mean for one in ("euler", et.Euler())]
    assert errors[0] == errors[1]
    assert "temperature 0.7" in et.path_error(clock, grid, shaping=et.Shaping(0.7)).note


def test_samples_are_a_tensor_that_knows_what_it_cost():
    model = random_table(3, 4, "absorbing")
    x = et.sample(model, et.schedule("uniform", steps=3, model=model), 8)
    assert isinstance(x, et.Samples) and isinstance(x, torch.Tensor) and x.shape == (8, 4)
    assert x.nfe == x.info.nfe == 3 and x.evaluations <= 24 and x.seconds > 0 and not x.info.stopped
    for part in (x[:2], x + 1, x == 1, x.double(), torch.cat([x, x])):
        assert type(part) is torch.Tensor
    assert x.tolist() == x.numpy().tolist() and len(x) == 8
