"""Guidance, correctors, token laws and bounds: the numbers of the official implementations."""

import shutil

import numpy as np
import pytest
import torch
from scipy.stats import poisson

import eigentime as et
from eigentime.models.base import log_posterior
from eigentime.models.checkpoints.tauldr import gaussian_process
from eigentime.samplers.guidance import Guidance
from eigentime.samplers.jumps import after_jumps, jump_rates, single_jump
from eigentime.samplers.run import Run
from eigentime.samplers.state import State
from eigentime.schedules.jys import Klub
from test_checkpoints import FIXTURES, put
from test_samplers import frequencies
from worlds import clean_law, random_table


def full(x, value):
    return torch.full(x.shape, float(value), dtype=torch.float64)


def times_of(arrays):
    return enumerate(zip(arrays["in_t"].astype(float), arrays["in_dt"], strict=True))


def test_guided_laws_of_udlm(fixture):
    arrays, config = fixture("udlm_posterior")
    guidance, noise = Guidance(float(arrays["in_gamma"]), None), et.LogLinear()
    logits = [torch.from_numpy(arrays[f"in_logits_{kind}"]).double() for kind in ("cond", "uncond")]
    uniform = et.Uniform(config["vocab_size"])
    masked = et.Absorbing(config["vocab_size"], mask=config["mask_token_id"])
    for k, (t, dt) in times_of(arrays):
        x = torch.from_numpy(arrays["in_x_uniform"])
        at, to = noise.alpha(full(x, t)), noise.alpha(full(x, t - dt))
        laws = []
        for part in logits:
            weights = part.softmax(-1) * uniform.likelihood(x, at)
            laws.append(uniform.exact_law(weights / weights.sum(-1, keepdim=True), x, at, to))
        np.testing.assert_allclose(guidance.mix(*laws), arrays["out_uniform_cfg_f64"][k], atol=1e-6)
        x = torch.from_numpy(arrays["in_x_absorb"])
        hidden = masked.masked(x)
        posteriors = [part.masked_fill(masked.excluded, -torch.inf).softmax(-1)[hidden] for part in logits]
        at, to = at[hidden], to[hidden]
        law = masked.exact_law(guidance.mix(*posteriors), x[hidden], at, to)
        np.testing.assert_allclose(law, arrays["out_absorb_cfg_f64"][k][hidden], atol=1e-5)


def test_guided_sampling_of_a_udlm_checkpoint(fixture, tmp_path):
    model = et.load(str(put(tmp_path, "udlm_dit")))
    arrays, _ = fixture("udlm_dit")
    x, classes = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_cond"])
    run = Run(model, 0, cond=classes, guidance=Guidance(float(arrays["in_gamma"]), model.no_class))
    noise = model.process.noise
    everything = torch.ones_like(x, dtype=torch.bool)
    for k, (t, dt) in times_of(arrays):
        (answer,) = run.answers(State(x, everything, everything, None), t, everything)
        token = x[answer.sequence, answer.position]
        at, to = noise.alpha(full(token, t)), noise.alpha(full(token, t - dt))
        law = run.guided([model.process.kernel.exact_law(rows, token, at, to) for rows in answer.laws])
        np.testing.assert_allclose(law.reshape(*x.shape, -1), arrays["out_posterior_cfg"][k], atol=2e-5)
    grid = et.schedule("uniform", steps=3, model=model)
    plain = et.sample(model, grid, 3, cond=classes)
    before = plain.info
    guided = et.sample(model, grid, 3, cond=classes, guidance=2.5)
    info = guided.info
    assert info.nfe == 2 * before.nfe == 6 and info.evaluations == 2 * before.evaluations
    assert not torch.equal(plain, guided)
    assert torch.equal(plain, et.sample(model, grid, 3, cond=classes, guidance=1.0))


def test_guidance_towards_a_prompt():
    """LLaDA's: the prompt is hidden in the second evaluation; a model that ignores it is not changed."""
    process = et.Process(et.Absorbing(5), et.LogLinear())

    def copies(x):
        """Every token like the first one, if that is known."""
        logits = torch.zeros(*x.shape, 5)
        return logits + 1.5 * torch.nn.functional.one_hot(x[:, :1], 5) * (x[:, :1, None] != 4)

    model = et.wrap(copies, process, length=6, time=None)
    prompt, fixed = torch.tensor([2, 0, 0, 0, 0, 0]), torch.arange(6) < 1
    grid = et.schedule("uniform", steps=4, model=model)
    shares = {}
    for weight in (1.0, 2.5):
        x = et.sample(model, grid, 2000, given=prompt, fixed=fixed, guidance=weight)
        shares[weight] = (x[:, 1:] == 2).double().mean().item()
        expected = np.exp(1.5 * weight) / (np.exp(1.5 * weight) + 3)
        assert shares[weight] == pytest.approx(expected, abs=0.02)
    greedy = et.sample(model, grid, 4, given=prompt, fixed=fixed, guidance=2.5, temperature=0.0)
    assert (greedy == 2).all()
    block = et.generate_blocks(model, [grid], prompt[:1].expand(2000, 1), guidance=2.5)[0]
    assert (block[:, 1:] == 2).double().mean().item() == pytest.approx(shares[2.5], abs=0.02)
    with pytest.raises(et.EigentimeError, match="finite number"):
        et.sample(model, grid, 2, given=prompt, fixed=fixed, guidance=float("nan"))
    with pytest.raises(et.EigentimeError, match="needs a condition"):
        et.sample(model, grid, 2, guidance=2.0)
    with pytest.raises(et.EigentimeError, match="stands for none"):
        et.sample(model, grid, 2, cond=torch.zeros(2, dtype=torch.long), guidance=2.0)


def test_guided_laws_are_sharpened_after_they_are_mixed():
    """The likeliest token of the guided law, not of one of its parts."""
    law, without = torch.tensor([[0.6, 0.3, 0.05, 0.05]]), torch.tensor([[0.6, 0.05, 0.3, 0.05]])
    mixed = Guidance(1.5, None).mix(law, without)
    expected = law**1.5 * without**-0.5
    assert torch.allclose(mixed, expected / expected.sum(), atol=1e-6)
    assert Guidance(2.0, None).mix(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.5]]))[0, 0] == 0
    process = et.Process(et.Absorbing(5), et.LogLinear())

    def network(x):
        rows = torch.where((x[:, :1] == 0)[..., None], law[0].log(), without[0].log()).expand(*x.shape, 4)
        return torch.cat([rows, torch.zeros(*x.shape, 1)], -1)

    model = et.wrap(network, process, length=3, time=None)
    grid, prompt = et.schedule("uniform", steps=1, model=model), torch.zeros(3, dtype=torch.long)
    options = {"given": prompt, "fixed": torch.arange(3) < 1, "guidance": 1.5}
    assert (et.sample(model, grid, 50, **options, temperature=0.0)[:, 1:] == 1).all()
    x = et.sample(model, grid, 4000, **options, top_k=2)[:, 1:]
    assert (x <= 1).all() and (x == 1).double().mean() == pytest.approx(0.5196 / (0.4338 + 0.5196), abs=0.03)


def test_predictor_and_corrector_of_tauldr(fixture):
    arrays, config = fixture("tauldr_rates")
    for name in ("uniform", "gauss"):
        if name == "uniform":
            size = config[name]["S"]
            process = et.Process(et.Uniform(size), et.Linear(0.0, size * config[name]["rate_const"]))
        else:
            process = gaussian_process(config[name]["S"], config[name])
        x = torch.from_numpy(arrays[f"in_{name}_x"])
        posterior = torch.from_numpy(arrays[f"in_{name}_logits"]).double().softmax(-1)
        for k, h in enumerate(arrays[f"out_{name}_pc_h"]):
            t = float(arrays[f"out_{name}_pc_t"][k])
            predictor = h * jump_rates(process, posterior, x, t)
            corrector = 1.5 * h * jump_rates(process, posterior, x, t - h, forward=True)
            for mean, kind in ((predictor, "predictor"), (corrector, "corrector")):
                expected = arrays[f"out_{name}_pc_{kind}_mean"][k]
                np.testing.assert_allclose(mean, expected, atol=1e-4 * expected.max(), rtol=5e-3)
        counts = torch.from_numpy(arrays[f"in_{name}_counts"])
        np.testing.assert_array_equal(after_jumps(x, counts), arrays[f"out_{name}_tl_next_x"])
        rejected = np.where(counts.sum(-1) == 1, counts.argmax(-1), x)  # what `single_jump` has the law of
        np.testing.assert_array_equal(rejected, arrays[f"out_{name}_conditional_pc_next_x_reject"])


def test_a_single_jump_has_the_law_of_poisson_numbers_of_which_one_is_one():
    mean = torch.tensor([0.0, 0.3, 1.1, 0.05], dtype=torch.float64)
    alone = [poisson.pmf(np.arange(4) == y, mean).prod() for y in range(4)]  # one jump, to y
    u = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    for dtype in (torch.float64, torch.float32):
        found = single_jump(torch.zeros(len(u), dtype=torch.long), mean.to(dtype).expand(len(u), -1), u)
        shares = torch.bincount(found, minlength=4) / len(u)
        np.testing.assert_allclose(shares[1:], alone[1:], atol=1e-4)
        assert shares.sum() == pytest.approx(1.0)


def test_full_size_gaussian_process_of_tauldr(fixture):
    arrays, config = fixture("tauldr_rates")
    process = gaussian_process(256, config["gauss256"])
    x = torch.from_numpy(arrays["in_gauss256_x"])
    posterior = torch.from_numpy(arrays["in_gauss256_logits"]).double().softmax(-1)
    np.testing.assert_allclose(process.kernel.stationary, arrays["out_prior_S256"], atol=1e-7)
    for k, t in enumerate(arrays["in_gauss256_t"].astype(float)):
        np.testing.assert_allclose(process.transition(0.0, t), arrays["out_gauss256_transition"][k], atol=2e-6)
        expected = arrays["out_gauss256_reverse_rate"][k]
        found = jump_rates(process, posterior, x, t).numpy()
        found[np.arange(1)[:, None], np.arange(5), x] = 0
        assert np.abs(found - expected).max() < 5e-3 * expected.max()


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_correctors_keep_the_law_they_are_at(kernel):
    """With many short correctors after a few steps, the samples are closer to the data than without."""
    model = random_table(3, 3, kernel, et.Geometric(0.05, 4.0), concentration=0.3)
    truth = clean_law(model)
    grid = et.schedule("uniform", steps=6, model=model)
    distances = []
    for correctors in (0, 8):
        sampler = et.PredictorCorrector(correctors, scale=0.5)
        x = et.sample(model, grid, 20_000, sampler=sampler)
        info = x.info
        assert info.nfe == 6 + 5 * correctors
        distances.append(np.abs(frequencies(x, model.process.kernel.size) - truth).sum() / 2)
    assert distances[1] < 0.8 * distances[0]
    late = et.PredictorCorrector(4, entry=0.5)
    assert et.sample(model, grid, 2, sampler=late).nfe == 6 + 4 * 2  # steps from 0.5 and 0.33
    for bad in ({"correctors": -1}, {"correctors": 1.5}, {"scale": 0.0}, {"entry": float("nan")}):
        with pytest.raises(et.EigentimeError, match=r"correctors|scale|entry"):
            et.PredictorCorrector(**bad)
    assert np.isnan(et.path_error(et.measure(model, budget=64), grid, sampler="predictor-corrector").mean)


@pytest.mark.parametrize("name", ["mdlm_time", "mdlm_notime"])
def test_token_laws_of_mdlm(fixture, tmp_path, name):
    arrays, _ = fixture(name)
    model = et.load(str(put(tmp_path, name)))
    kernel = model.process.kernel
    x = torch.from_numpy(arrays["in_x"])
    masked = kernel.masked(x)
    noises = {"": et.LogLinear(), "cosine_": et.Cosine(), "geometric_": et.Geometric(1e-4, 20.0)}
    for k, (t, dt) in times_of(arrays):
        for prefix, noise in noises.items():
            if prefix and k >= len(arrays[f"out_{prefix}ddpm_q_f64"]):
                continue
            token = x[masked]
            with torch.no_grad():
                logits = model.network(x, noise.sigma(full(x[:, 0], t)).float(), masked)
            posterior = log_posterior(logits, kernel).double().exp()
            at, to = noise.alpha(full(token, t)), noise.alpha(full(token, t - dt))
            law = kernel.exact_law(posterior, token, at, to)
            # ddpm's law is not divided by the probability of a mask
            expected = torch.from_numpy(arrays[f"out_{prefix}ddpm_q_f64"][k])[masked] / (1 - at)[:, None]
            assert np.allclose(law, expected, atol=1e-4), (prefix, k)
            if prefix != "geometric_" and t - dt > 1e-3:
                analytic = arrays[f"out_{prefix}analytic_probs_f64"][k][masked]
                assert np.allclose(law, analytic, atol=1e-4), (prefix, k)


def test_jys_bound_on_its_countdown_network(fixture, tmp_path):
    folder = tmp_path / "jys"
    folder.mkdir()
    arrays, _ = fixture("jys_klub_ddit")
    shutil.copy(FIXTURES / "jys_klub_ddit" / "config.json", folder)
    shutil.copy(FIXTURES / "jys_klub_ddit" / "weights.safetensors", folder / "model.safetensors")
    model = et.load(str(folder))
    for k, (t1, t2, t3) in enumerate(arrays["in_t123"]):
        bound = Klub(model, arrays["in_x0"], seed=0)
        noised = {t1: arrays["in_x_t1"][k], t2: arrays["in_x_t2"][k]}
        bound._noised = lambda t, noised=noised: torch.from_numpy(noised[t])
        assert bound(t1, t2, t3) == pytest.approx(arrays["out_klub"][k], rel=2e-3)
