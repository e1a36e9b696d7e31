"""The bundled networks: they load offline, are as good as they say, and the whole pipeline runs on them."""

import json

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.data.text import SYMBOLS
from eigentime.experiments import binomial
from eigentime.experiments.kept import KeptRows
from eigentime.experiments.speedup import speedups
from eigentime.models import Trained, zoo
from eigentime.tasks import MODELS, RECIPES, trigram
from eigentime.training.loop import evaluate as held_out_nelbo

BUNDLED = [
    "binomial",
    "binomial-uniform",
    "countdown",
    "countdown-sedd",
    "countdown-uniform",
    "digits",
    "images",
    "lists",
    "mnist",
    "mnist-uniform",
    "music",
    "stories",
    "stories-sedd",
    "stories-uniform",
    "text",
    "text-sedd",
    "text-uniform",
]
ENGLISH = (
    "the river rises in the hills north of the town and flows to the south through several small villages before it "
    "reaches the sea near the old harbour where in the nineteenth century most of the people worked as fishermen or "
    "built ships for the merchants of the city of london and "
)


def test_every_network_has_its_recipe_and_they_are_small():
    assert sorted(zoo()) == sorted(BUNDLED) and set(BUNDLED) <= set(RECIPES)
    sizes = {name: (folder / "model.safetensors").stat().st_size for name, folder in zoo().items()}
    assert max(sizes.values()) < 8 * 2**20 and sum(sizes.values()) < 40 * 2**20


@pytest.mark.parametrize("name", BUNDLED)
def test_recipe_log_and_weights_belong_together(name):
    model = et.load(name)
    assert isinstance(model, Trained) and model.name == name
    recipe, log = model.about["recipe"], json.loads((zoo()[name] / "log.json").read_text())
    described, wanted = json.loads(json.dumps(RECIPES[name][1].describe())), RECIPES[name][1]
    assert {**recipe, "network": 0} == {**described, "network": 0}
    assert type(wanted.network)(**recipe["network"]) == wanted.network
    assert log[-1] == model.about["log"] and log[-1]["step"] == recipe["steps"]


@pytest.mark.parametrize("name", ["countdown", "countdown-sedd", "countdown-uniform"])
def test_countdown_networks_are_close_to_the_exact_posterior(name):
    model = et.load(name)
    exact = et.load("countdown-exact", model.process.kernel.name)
    x0 = MODELS[name].draw(16, 3)
    rng = torch.Generator().manual_seed(0)
    t = torch.linspace(0.1, 0.9, 16, dtype=torch.float64)
    jump, replace = (torch.rand(x0.shape, generator=rng, dtype=torch.float64) for _ in range(2))
    x = model.process.corrupt(x0, t, jump, replace)
    where = x == 32 if model.process.absorbing else torch.ones_like(x, dtype=torch.bool)
    times = t[:, None].expand(x.shape)[where]
    rows = model(x, t, where).double()
    if model.predicts == "score":
        alpha = model.process.noise.alpha(times)
        rows = model.process.kernel.posterior(rows.exp(), x[where], alpha).clamp(min=1e-12).log()
    truth = exact(x, t, where).exp()
    divergence = torch.where(truth > 0, truth * (truth.log() - rows), 0.0).sum(-1)
    assert divergence.mean() < 0.05, "nats per token"


@pytest.mark.parametrize("name", ["text", "text-sedd", "text-uniform"])
def test_networks_of_text_predict_english_better_than_its_trigrams(name):
    model, (_, transition) = et.load(name), trigram.law()
    x0 = torch.tensor([SYMBOLS.index(symbol) for symbol in ENGLISH[:256]])
    surprise = -np.log(transition[x0[:-2], x0[1:-1], x0[2:]]).sum()
    assert isinstance(model, Trained)
    assert held_out_nelbo(model.network, RECIPES[name][1], x0.expand(128, -1))[0] < surprise


def test_network_measures_schedules_and_samples():
    model = et.load("countdown")
    clock = et.measure(model, budget=64)
    grid = et.schedule(clock, "ods", steps=8)
    uniform = et.schedule("uniform", steps=8, model=model)
    tokens = et.sample(model, grid, 16, seed=1)
    info = tokens.info
    assert tokens.shape == (16, 256) and tokens.max() < 32 and info.nfe == 8
    judge = MODELS["countdown"].metrics
    assert judge(tokens)["violation"].mean < judge(et.sample(model, uniform, 16, seed=1))["violation"].mean
    assert et.path_error(clock, grid).mean < et.path_error(clock, uniform).mean
    with pytest.raises(et.EigentimeError, match="trained on the absorbing kernel"):
        et.load("countdown", "uniform")


def test_binomial_experiment_finds_the_truth(tmp_path):
    content = binomial.Binomial(times=128, samples=256).run(tmp_path)
    for kernel, result in content["kernels"].items():
        produced = result["entropy_produced"]
        assert abs(produced["relative_error"]) < 0.05, kernel
    assert content["kernels"]["uniform"]["entropy_produced"]["truth"] == pytest.approx(0.6423, abs=2e-3)
    assert "t = 0.8" in content["note"]
    assert (tmp_path / "binomial.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "binomial.json").read_text())["provenance"]["settings"]["samples"] == 256


def row(strategy, steps, violation, stderr=0.0):
    return {"strategy": strategy, "steps": steps, "metrics": {"violation": {"mean": violation, "stderr": stderr}}}


@pytest.mark.parametrize("most", [32, 64])
def test_speedup_is_read_off_the_uniform_curve(most):
    rows = [row("uniform", k, 1 / k) for k in (2, 4, 8, 16, most)] + [row("wds", 4, 1 / 12), row("ods", 8, 1e-3, 1e-5)]
    wds, ods = speedups(rows, "violation", seed=0)
    assert wds["uniform_steps"]["mean"] == pytest.approx(12) and wds["ratio"]["mean"] == pytest.approx(3)
    assert not wds["beyond"] and ods["beyond"] and ods["uniform_steps"]["mean"] == pytest.approx(most)


def test_interrupted_comparison_goes_on_from_its_kept_rows(tmp_path, monkeypatch):
    model = et.load("countdown-exact")
    clock = et.measure(model, budget=64)
    arguments = {"samples": 4, "clock": clock, "keep": tmp_path / "rows.json"}
    et.compare(model, ["uniform"], [2, 4], **arguments)

    def refuse(*args, **kwargs):
        raise AssertionError("a finished cell was sampled again")

    monkeypatch.setattr("eigentime.experiments.trial.Trial.row", refuse)
    again = et.compare(model, ["uniform"], [2, 4], **arguments)
    assert [line["steps"] for line in again] == [2, 4]
    with pytest.raises(et.EigentimeError, match="another seed"):
        et.compare(model, ["uniform"], [2], **arguments, seed=1)
    (tmp_path / "rows.json").write_text("[]")
    with pytest.raises(et.EigentimeError, match="holds something else than expected"):
        et.compare(model, ["uniform"], [2], **arguments)


def test_kept_rows_remember_infinite_numbers(tmp_path):
    row = {"sampler": "s", "strategy": "a", "steps": 2, "samples": 4, "path_error": float("inf")}
    KeptRows(tmp_path / "k.json", seed=0).add(row)
    assert np.isinf(KeptRows(tmp_path / "k.json", seed=0).row("s", "a", 2, 4)["path_error"])


def test_kept_rows_of_other_settings_are_named(tmp_path):
    KeptRows(tmp_path / "k.json", seed=0, orders=["raster"])
    KeptRows(tmp_path / "k.json", seed=0, orders=["raster"]).add({"sampler": "s"})
    with pytest.raises(et.EigentimeError, match="another orders"):
        KeptRows(tmp_path / "k.json", seed=0)


def test_data_for_jys_may_be_an_array(tmp_path):
    model = et.load("countdown-exact")
    options = {"samples": 4, "jys_samples": 2, "clock": et.measure(model, budget=32)}
    rows = et.compare(model, ["jys"], [2], data=model.draw(8, 0).numpy(), keep=tmp_path / "rows.json", **options)
    assert rows[0]["strategy"] == "jys"
