"""Losses against exact answers, and a loop that goes on after being killed as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

import eigentime as et
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.mlp import MLP, MLPConfig
from eigentime.process import Process
from eigentime.tasks import RECIPES, ExactTask
from eigentime.training import LOSSES, Recipe, train
from eigentime.training.checkpoint import FILE
from eigentime.training.loop import Interrupted, draw_batch, spaced_times
from eigentime.training.start import adopt
from worlds import random_table, states

PAIRS = [(k, p) for k in ("absorbing", "uniform", "rate-matrix") for p in ("score", "posterior", "cavity")]
PAIRS.remove(("absorbing", "cavity"))


def every_pair(model, t):
    """All (x0, x_t) with their joint probabilities at time t."""
    kernel, length = model.process.kernel, model.length
    clean = kernel.values[torch.from_numpy(states(len(kernel.values), length))]
    noisy = torch.from_numpy(states(kernel.size, length))
    x0 = clean.repeat_interleave(len(noisy), 0)
    x = noisy.repeat(len(clean), 1)
    alpha = model.process.noise.alpha(torch.tensor(t)).expand(x0.shape)
    channel = kernel.forward_law(x0, alpha).gather(-1, x[..., None]).squeeze(-1).prod(1)
    joint = model.law.flatten().repeat_interleave(len(noisy)) * channel
    keep = channel > 0
    return x0[keep], x[keep], channel[keep], joint[keep]


def oracle_output(model, predicts, shift=None):
    """The exact model as a network would answer, optionally with its log-outputs shifted."""

    def predict(x, sigma, where):
        t = model.process.noise.time_of_sigma(sigma.double())
        rows = model(x, t, where)
        if predicts == "cavity":
            alpha = model.process.noise.alpha(t)[:, None].expand(x.shape)[where]
            rows = rows - model.process.kernel.likelihood(x[where], alpha).log()
        if predicts == "score":
            alpha = model.process.noise.alpha(t)[:, None].expand(x.shape)[where]
            rows = model.process.kernel.score(rows.exp(), x[where], alpha).log()
        rows = rows.clamp(min=-60.0)
        return rows if shift is None else rows + shift(x, where)

    return predict


@pytest.mark.parametrize(("kernel", "predicts"), PAIRS)
def test_the_exact_answer_is_the_minimum_and_its_gradient_vanishes(kernel, predicts):
    model = random_table(3, 2, kernel, et.Linear(0.0, 2.5), seed=3)
    x0, x, _, joint = every_pair(model, 0.6)
    t = torch.full((len(x),), 0.6, dtype=torch.float64)
    size = model.process.kernel.size
    delta = torch.zeros(size**2, 2, size, dtype=torch.float64, requires_grad=True)
    index = x[:, 0] * size + x[:, 1]

    def expected(shift):
        predict = oracle_output(model, predicts, lambda _, where: shift[index][where])
        return (joint * LOSSES[predicts](predict, model.process, x0, x, t)).sum()

    at_truth = expected(delta)
    (gradient,) = torch.autograd.grad(at_truth, delta)
    assert gradient.abs().max() < 1e-6  # times pass through float32 σ
    rng = torch.Generator().manual_seed(0)
    for _ in range(5):
        wrong = torch.randn(delta.shape, generator=rng, dtype=torch.float64) * 0.1
        assert expected(wrong) > at_truth + 1e-6


@pytest.mark.parametrize(("kernel", "predicts"), PAIRS)
def test_the_nelbo_is_tight_for_the_oracle_and_above_it_otherwise(kernel, predicts):
    noise = et.LogLinear(1e-7)
    model = random_table(3, 2, kernel, noise, seed=1, concentration=2.0)
    nodes, weights = np.polynomial.legendre.leggauss(48)
    u = (nodes + 1) / 2  # and t = u²(3 - 2u): the integrand has a logarithm at t = 0 and fractional powers at t = 1
    times, weights = u**2 * (3 - 2 * u), weights / 2 * 6 * u * (1 - u)
    bounds, size = {"right": {}, "wrong": {}}, model.process.kernel.size
    for t, weight in zip(times, weights, strict=True):
        x0, x, channel, _ = every_pair(model, t)
        many = torch.full((len(x),), t, dtype=torch.float64)
        for which, shift in (("right", None), ("wrong", lambda x, where: 0.3 * (torch.arange(size) % 2))):
            values = channel * LOSSES[predicts](oracle_output(model, predicts, shift), model.process, x0, x, many)
            for row, value in zip(x0.tolist(), values.tolist(), strict=True):
                bounds[which][tuple(row)] = bounds[which].get(tuple(row), 0.0) + weight * value
    for row, bound in bounds["right"].items():
        assert bound == pytest.approx(-model.law.reshape(3, 3)[row].log().item(), abs=1e-4)
    law = model.law.flatten().tolist()
    mean = {which: sum(p * b for p, b in zip(law, found.values(), strict=True)) for which, found in bounds.items()}
    assert mean["wrong"] > mean["right"] + 0.01


def test_uniform_nelbo_is_the_published_closed_form():
    """UDLM's continuous-time loss, written as in its paper: x̄ = N·α·x + 1 - α, weight -α'/(N·α)."""
    process = et.Process(et.Uniform(5), et.LogLinear())
    rng = torch.Generator().manual_seed(0)
    x0, x = (torch.randint(0, 5, (6, 3), generator=rng) for _ in range(2))
    t = torch.rand(6, generator=rng, dtype=torch.float64) * 0.9 + 0.05
    logits = torch.randn(6, 3, 5, generator=rng, dtype=torch.float64)
    found = LOSSES["cavity"](lambda _, sigma, where: logits[where], process, x0, x, t)
    alpha, rate = process.noise.alpha(t)[:, None], process.noise.beta(t) * process.noise.alpha(t)
    clean = 5 * alpha[..., None] * torch.nn.functional.one_hot(x0, 5) + 1 - alpha[..., None]
    guess = 5 * alpha[..., None] * logits.softmax(-1) + 1 - alpha[..., None]
    at = x[..., None]
    ratio = clean / clean.gather(-1, at)
    terms = 5 / clean.gather(-1, at) - 5 / guess.gather(-1, at)
    divergence = ratio * ((guess.gather(-1, at) * clean) / (guess * clean.gather(-1, at))).log()
    expected = rate / (5 * alpha[:, 0]) * -(terms.squeeze(-1) - divergence.sum(-1)).sum(1)
    assert torch.allclose(found, expected, rtol=1e-9)


def tiny(steps=12, **changes):
    process = Process(et.Absorbing(6), et.LogLinear())
    network = DDiTConfig(size=6, width=16, blocks=1, heads=2, cond_width=8, dropout=0.1)
    return replace(Recipe("tiny", process, 8, network, steps=steps, batch=4, learning_rate=3e-3, warmup=3), **changes)


def tiny_data():
    return (torch.arange(8)[None] + torch.arange(50)[:, None]) % 5


def weights_of(folder):
    return load_file(folder / "model.safetensors")


def test_training_learns_and_is_deterministic(tmp_path):
    recipe = tiny(steps=200, ema=0.9)
    first = train(recipe, tiny_data(), tiny_data(), tmp_path / "a")
    train(recipe, tiny_data(), tiny_data(), tmp_path / "b")
    log = json.loads((tmp_path / "a" / "log.json").read_text())
    assert log[-1]["nelbo"] < 0.7 * log[0]["nelbo"]
    assert first.about["recipe"]["steps"] == 200
    for name, value in weights_of(tmp_path / "a").items():
        assert torch.equal(value, weights_of(tmp_path / "b")[name])


KILLED = """
import sys, torch
sys.path.insert(0, {tests!r})
torch.set_num_threads(1)
from test_training import tiny, tiny_data
from eigentime.training import loop
loop.SAVE_SECONDS = 0.0
def told(step, steps, latest):
    print(step, flush=True)
    import time; time.sleep(0.05)
loop.train(tiny(steps=60), tiny_data(), tiny_data(), {folder!r}, advance=told)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path, how):
    folder = tmp_path / "killed"
    code = KILLED.format(tests=os.path.dirname(__file__), folder=str(folder))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    for line in process.stdout:
        if int(line) >= 17:
            process.send_signal(how)
            break
    process.wait(timeout=60)
    assert (folder / FILE).exists() and not (folder / "config.json").exists()
    began = []
    train(tiny(steps=60), tiny_data(), tiny_data(), folder, advance=lambda step, steps, latest: began.append(step))
    assert 15 <= began[0] <= 40, "the run went on where it was"
    train(tiny(steps=60), tiny_data(), tiny_data(), tmp_path / "whole")
    whole = weights_of(tmp_path / "whole")
    assert all(torch.equal(value, whole[name]) for name, value in weights_of(folder).items())
    kept, expected = (json.loads((run / "log.json").read_text()) for run in (folder, tmp_path / "whole"))
    assert [entry["nelbo"] for entry in kept] == [entry["nelbo"] for entry in expected]


def test_another_recipe_in_the_same_folder_is_refused(tmp_path):
    train(tiny(steps=2), tiny_data(), tiny_data(), tmp_path)
    with pytest.raises(et.EigentimeError, match="another steps"):
        train(tiny(steps=3), tiny_data(), tiny_data(), tmp_path)
    with pytest.raises(et.EigentimeError, match="another batch"):
        train(tiny(steps=2, batch=1), tiny_data(), tiny_data(), tmp_path)
    (tmp_path / FILE).write_bytes(b"half a file")
    with pytest.raises(et.EigentimeError, match="cannot be read as a checkpoint"):
        train(tiny(steps=2), tiny_data(), tiny_data(), tmp_path)


def test_a_run_can_be_lengthened_until_its_learning_rate_falls(tmp_path):
    """Stopped in the constant part, a run goes on as one of another length and reaches that one's weights."""
    longer = tiny(steps=40)

    def stop(step, total, latest):
        if step == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(tiny(steps=20), tiny_data(), tiny_data(), tmp_path / "run", advance=stop)
    train(longer, tiny_data(), tiny_data(), tmp_path / "run")
    train(longer, tiny_data(), tiny_data(), tmp_path / "whole")
    whole = weights_of(tmp_path / "whole")
    assert all(torch.equal(value, whole[name]) for name, value in weights_of(tmp_path / "run").items())


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 32), st.integers(0, 100))
def test_times_of_a_batch_are_spread_and_do_not_depend_on_the_split(seed, batch, step):
    recipe = tiny(seed=seed, batch=batch)
    x0, x, t = draw_batch(recipe, tiny_data(), step, 0, batch)
    inside = (t - recipe.first_time) / (1 - recipe.first_time) * batch
    assert sorted(((inside - inside.min()).round()).tolist()) == list(range(batch))
    cut = batch // 2
    parts = [draw_batch(recipe, tiny_data(), step, *piece) for piece in ((0, cut), (cut, batch - cut))]
    for whole, *halves in zip((x0, x, t), *parts, strict=True):
        assert torch.equal(whole, torch.cat(halves))
    assert torch.equal(t, spaced_times(recipe, step, 0, batch))


def test_learning_rate_rises_stays_and_falls_to_zero():
    recipe = tiny(steps=100, warmup=10, cooldown=0.2, learning_rate=1.0)
    rates = [recipe.rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and rates[9:81] == [1.0] * 72
    assert rates[-1] == pytest.approx(0.05) and all(a > b for a, b in pairwise(rates[80:]))


def test_bad_recipes_get_a_sentence():
    for change in ({"steps": 0}, {"batch": -1}, {"learning_rate": float("nan")}, {"ema": 1.0}):
        with pytest.raises(et.EigentimeError, match="must"):
            tiny(**change)


@torch.no_grad()
def test_a_timed_network_that_starts_from_an_untimed_one_begins_equal():
    torch.manual_seed(0)
    source = DDiT(DDiTConfig(size=6, width=16, blocks=2, heads=2, cond_width=8))
    for parameter in source.parameters():
        parameter.normal_(0, 0.2)
    timed = DDiT(replace(source.config, time_conditioned=True))
    adopt(timed, source)
    x = torch.randint(0, 6, (3, 7))
    for sigma in (0.1, 2.0):
        assert torch.allclose(timed(x, torch.full((3,), sigma)), source(x, torch.full((3,), sigma)), atol=1e-5)
    unmasked = DDiT(replace(source.config, size=5))
    adopt(unmasked, source)
    assert torch.equal(unmasked.vocab_embed.embedding, source.vocab_embed.embedding[:5])
    with pytest.raises(et.EigentimeError, match="has shape"):
        adopt(DDiT(replace(source.config, width=32)), source)
    with pytest.raises(et.EigentimeError, match="cannot start from"):
        adopt(source, MLP(MLPConfig(size=6, length=8, width=16, layers=1)))


def test_every_recipe_fits_its_task():
    for task, recipe in RECIPES.values():
        if isinstance(task, ExactTask):  # others need their data
            data = task.draw(2, 0)
            assert data.shape[1] == recipe.length
            recipe.process.check_tokens(data, "data")
        assert recipe.given == task.given
        assert recipe.network.size == recipe.process.kernel.size
        json.dumps(recipe.describe())


def test_interrupting_the_command_saves_and_the_same_command_goes_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "eigentime",
        "train",
        "binomial",
        "--steps",
        "2000",
        "--out",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "run").exists():
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "The same" in output
