"""Published checkpoints: loaded as they are, to the numbers of the official implementations, and nothing executed."""

import io
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import eigentime as et
from eigentime.models.checkpoints.tauldr import gaussian_rates
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.unet import Residual

FIXTURES = Path(__file__).parent / "fixtures"


def put(tmp_path, name, weights="model.safetensors"):
    """A fixture as a folder of the published layout."""
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(FIXTURES / name / "config.json", folder / "config.json")
    if weights == "model.safetensors":
        shutil.copy(FIXTURES / name / "weights.safetensors", folder / weights)
    elif (FIXTURES / name / "checkpoint.pt").exists():
        shutil.copy(FIXTURES / name / "checkpoint.pt", folder / weights)
    else:
        torch.save(load_file(FIXTURES / name / "weights.safetensors"), folder / weights)
    return folder


def full(x, value):
    return torch.full((len(x),), float(value), dtype=torch.float64)


@pytest.mark.parametrize(("name", "kernel"), [("sedd_absorb", "absorbing"), ("sedd_uniform", "uniform")])
def test_sedd(fixture, tmp_path, name, kernel):
    model = et.load(str(put(tmp_path, name, "pytorch_model.bin")))
    arrays, _ = fixture(name)
    assert model.process.kernel.name == kernel and model.predicts == "score" and model.length == 16
    x, sigma = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_sigma"][4])
    t = model.process.noise.time_of_sigma(sigma.double())
    assert torch.allclose(model(x, t), torch.from_numpy(arrays["out_log_score"][4]), atol=5e-5)


@pytest.mark.parametrize("name", ["mdlm_time", "mdlm_notime"])
def test_mdlm(fixture, tmp_path, name):
    model = et.load(str(put(tmp_path, name)))
    arrays, _ = fixture(name)
    x = torch.from_numpy(arrays["in_x"])
    masked = x == 31
    for k, t in enumerate(arrays["in_t"]):
        rows = model(x, full(x, t), masked).exp()
        assert torch.allclose(rows, torch.from_numpy(arrays["out_log_p"][k]).exp()[masked], atol=1e-5)


def test_udlm_and_its_classes(fixture, tmp_path):
    model = et.load(str(put(tmp_path, "udlm_dit")))
    arrays, _ = fixture("udlm_dit")
    assert model.process.kernel.name == "uniform" and model.predicts == "posterior"
    x, classes, noise = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_cond"]), model.process.noise
    for k, (t, dt) in enumerate(zip(arrays["in_t"], arrays["in_dt"], strict=True)):
        sigma = noise.sigma(full(x, t)).float()
        logits = model.network(x, sigma)
        assert torch.allclose(logits, torch.from_numpy(arrays["out_logits"][k]), atol=2e-5)
        hidden = model.network.hidden(x, sigma, classes)
        assert torch.allclose(model.network.head(hidden), torch.from_numpy(arrays["out_logits_cond"][k]), atol=2e-5)
        at, to = (noise.alpha(full(x, value))[:, None].expand(x.shape) for value in (t, float(t) - dt))
        law = model.process.kernel.exact_law(model(x, full(x, t)).exp(), x, at, to)
        assert np.allclose(law, arrays["out_posterior"][k], atol=5e-6)


def test_jump_your_steps_countdown_network(fixture, tmp_path):
    folder = tmp_path / "jys"
    folder.mkdir()
    arrays, _ = fixture("jys_klub_ddit")
    shutil.copy(FIXTURES / "jys_klub_ddit" / "config.json", folder / "config.json")
    torch.save(load_file(FIXTURES / "jys_klub_ddit" / "weights.safetensors"), folder / "ckpt.pt")
    model = et.load(str(folder))
    x, t = torch.from_numpy(arrays["in_x_t1"][1]), float(arrays["in_t123"][1, 0])
    assert torch.allclose(model(x, full(x, t)), torch.from_numpy(arrays["out_log_score_t1"][1]), atol=5e-5)


def test_tauldr_piano_with_its_averaged_weights_and_integer_time(fixture, tmp_path):
    model = et.load(str(put(tmp_path, "tauldr_piano", "checkpoint.pt")))
    arrays, _ = fixture("tauldr_piano")
    x = torch.from_numpy(arrays["in_x"])
    for k, t in enumerate(arrays["in_t"]):
        rows = model(x, full(x, t)).exp()
        assert torch.allclose(rows, torch.from_numpy(arrays["out_p0t_ema"][k]), atol=1e-5)
    assert torch.equal(model(x, full(x, 0.1)), model(x, full(x, 0.9)))
    rates = model.process.generator(0.3)
    assert torch.allclose(rates[0, 1], torch.tensor(0.03, dtype=torch.float64))


def test_tauldr_cifar_with_its_averaged_weights(fixture, tmp_path):
    model = et.load(str(put(tmp_path, "tauldr_cifar", "checkpoint.pt")))
    arrays, _ = fixture("tauldr_cifar")
    x = torch.from_numpy(arrays["in_x"])
    for k, t in enumerate(arrays["in_t"]):
        assert np.allclose(
            model.network.network(x, full(x, t).float()).detach(), arrays["out_net_out_ema"][k], atol=2e-5
        )
        expected = torch.from_numpy(arrays["out_logits_ema"][k]).softmax(-1)
        assert torch.allclose(model(x, full(x, t)).exp(), expected, atol=1e-5)


def test_residual_block_with_many_groups(fixture):
    arrays, _ = fixture("tauldr_cifar")
    block = Residual(160, 16, 24, 0.0)
    prefix = "in_res_w."
    block.load_state_dict({k.removeprefix(prefix): torch.from_numpy(arrays[k]) for k in arrays.files if prefix in k})
    found = block(torch.from_numpy(arrays["in_res_x"]), torch.from_numpy(arrays["in_res_temb"]))
    assert np.allclose(found.detach(), arrays["out_res_y"], atol=2e-5)


def test_guidance_unet(fixture, tmp_path):
    arrays, _ = fixture("guidance_unet")
    model = et.load(str(put(tmp_path, "guidance_unet")))
    network = model.network
    x, classes = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_cond"])
    zero, sigma = torch.zeros(2), torch.from_numpy(arrays["in_sigma"])
    for name, time, cond in (("sigma0", zero, None), ("sigma0_cond", zero, classes), ("sigma_cond", sigma, classes)):
        out = network.network(x, time, cond)
        assert np.allclose(out.detach(), arrays[f"out_net_out_{name}"], atol=2e-5)
        found = network.head(torch.stack([part.flatten(1) for part in out.chunk(2, 1)], -1)).softmax(-1)
        assert torch.allclose(found, torch.from_numpy(arrays[f"out_logits_{name}"]).softmax(-1), atol=5e-6)
    masked = x == 256
    rows = model(x, full(x, arrays["in_t"]), masked, classes).exp()
    published = torch.from_numpy(arrays["out_log_p_cond"])[masked].exp()
    published[:, 256:] = 0.0  # we give ids that no image holds no mass; the reference leaves a little on two of them
    assert torch.allclose(rows, published / published.sum(-1, keepdim=True), atol=1e-5)


@pytest.mark.parametrize("name", ["gauss", "gauss256"])
def test_gaussian_rates_of_tauldr(fixture, name):
    arrays, config = fixture("tauldr_rates")
    made = gaussian_rates(config[name]["S"], config[name]["rate_sigma"], config[name]["Q_sigma"])
    stored = arrays[f"out_{name}_rate_matrix"]
    off = ~np.eye(len(made), dtype=bool)
    assert np.allclose(made[off], stored[off], rtol=1e-5, atol=1e-7)


def test_training_checkpoint_takes_the_averaged_weights(tmp_path):
    folder = put(tmp_path, "sedd_absorb")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    network = DDiT(DDiTConfig(32, 64, 2, 4, 32, head="score", time_conditioned=True))
    weights = {name: weights[name] for name in network.state_dict()}  # safetensors sorts its names
    shadow = [weights[name] + 1 for name, _ in network.named_parameters()]
    state = {"model": weights, "ema": {"decay": 0.9999, "num_updates": 3, "shadow_params": shadow}, "step": 7}
    torch.save(state, folder / "checkpoint.pth")
    model = et.load(str(folder))
    assert torch.equal(model.network.vocab_embed.embedding, weights["vocab_embed.embedding"] + 1)
    torch.save({**state, "ema": {"shadow_params": shadow[:-1]}}, folder / "checkpoint.pth")
    with pytest.raises(et.EigentimeError, match="averaged weights do not fit"):
        et.load(str(folder))


class Foreign:
    """Stands for a class of a package that is not installed where the checkpoint is read."""

    def __init__(self):
        self._content = {"model": {"length": 16, "n_heads": 4}, "parameterization": "subs"}


def test_lightning_checkpoint_with_foreign_objects_inside(tmp_path):
    weights = load_file(FIXTURES / "mdlm_notime" / "weights.safetensors")
    torch.save({"state_dict": weights, "hyper_parameters": {"config": Foreign()}}, tmp_path / "mdlm.ckpt")
    model = et.load(str(tmp_path / "mdlm.ckpt"))
    assert model.length == 16 and not model.time_dependent and model.network.config.heads == 4


def settings_of(folder, **settings):
    """The folder with another configuration."""
    (folder / "config.json").write_text(json.dumps(settings))
    return str(folder)


def test_duo_as_its_repository_and_its_hub_describe_it(tmp_path):
    folder = put(tmp_path, "udlm_dit")
    weights = {k: v for k, v in load_file(folder / "model.safetensors").items() if "cond_map" not in k}
    save_file(weights, folder / "model.safetensors")
    model = {"length": 16, "n_heads": 4}
    for name in ("duo", "duo_base", "distillation"):
        algo = {"name": name, "parameterization": "mean", "time_conditioning": True}
        noise = {"type": "log-linear", "eps": "1e-4"}  # as YAML reads 1e-4
        loaded = et.load(settings_of(folder, algo=algo, noise=noise, model=model))
        assert isinstance(loaded.process.kernel, et.Uniform) and loaded.process.noise == et.LogLinear(1e-4)
        assert loaded.network.config.head == "cavity" and loaded.time_dependent
        loaded = et.load(settings_of(folder, algo=algo, noise={"type": "cosine", "eps": 1e-3}, model=model))
        assert loaded.process.noise == et.DuoCosine(1e-3)
    assert et.load(settings_of(folder, algo={"name": "duo"}, model=model)).process.noise == et.LogLinear()
    hub = {"model_type": "duo", "model_length": 16, "n_heads": 4, "time_conditioning": True}
    assert et.load(settings_of(folder, **hub)).process.noise == et.LogLinear()
    masked = put(tmp_path, "mdlm_notime")
    loaded = et.load(settings_of(masked, algo={"name": "mdlm"}, noise={"type": "cosine", "eps": 0.01}, model=model))
    assert loaded.process.absorbing and loaded.process.noise == et.DuoCosine(0.01)
    with pytest.raises(et.EigentimeError, match="does not say of which kind"):
        et.load(settings_of(folder, algo={"name": "d3pm", "parameterization": "mean"}, model=model))


def test_what_a_configuration_says_of_the_noise_is_honoured_or_refused(tmp_path):
    folder = put(tmp_path, "mdlm_notime")
    known = json.loads((folder / "config.json").read_text())
    for noise, expected in (
        ({"type": "loglinear", "eps": 0.01, "sigma_min": 1e-4, "sigma_max": 20}, et.LogLinear(0.01)),
        ({"type": "cosine", "eps": 0.02}, et.Cosine(0.02)),
        ({"type": "cosinesqr"}, et.Cosine(power=2)),
        ({"type": "geometric", "sigma_min": 0.01, "sigma_max": 5}, et.Geometric(0.01, 5.0)),
        ({"type": "linear", "sigma_min": 0, "sigma_max": 3}, et.Linear(0.0, 3.0)),
    ):
        assert et.load(settings_of(folder, **known, noise=noise)).process.noise == expected
    for noise, message in (
        ({"type": "sigmoid"}, "'sigmoid' of this checkpoint is not known"),
        ({"type": "loglinear", "warp": 2}, "'warp', which is not known"),
        ({"type": "loglinear", "eps": "small"}, "not a number"),
        ({"type": "loglinear", "eps": 2}, "above 0 and below 1"),
        (["loglinear"], "section of settings"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            et.load(settings_of(folder, **known, noise=noise))
    folder = put(tmp_path, "jys_klub_ddit")
    known = json.loads((folder / "config.json").read_text())
    assert et.load(settings_of(folder, **{**known, "eps": 0.03})).process.noise == et.LogLinear(0.03)
    folder = put(tmp_path, "guidance_unet")
    known = json.loads((folder / "config.json").read_text())
    assert et.load(str(folder)).process.noise == et.LogLinear()
    assert et.load(settings_of(folder, **known, noise={"type": "cosine", "eps": 0.02})).process.noise == et.Cosine(0.02)
    with pytest.raises(et.EigentimeError, match="Duo"):
        et.load(settings_of(folder, **known, algo={"name": "duo"}))


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.ckpt"])
def test_nothing_in_a_pickle_is_executed(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": {"a": torch.zeros(1)}, "trap": Evil()}, tmp_path / name)
    with pytest.raises(et.EigentimeError, match="no known family"):
        et.load(str(tmp_path / name))
    buffer = io.BytesIO()
    pickle.dump(Evil(), buffer)
    (tmp_path / name).write_bytes(buffer.getvalue())
    with pytest.raises(et.EigentimeError):
        et.load(str(tmp_path / name))
    assert not (tmp_path / "executed").exists()


def test_damaged_checkpoints_get_one_sentence(tmp_path):
    folder = put(tmp_path, "mdlm_notime")
    whole = load_file(folder / "model.safetensors")
    key = "backbone.blocks.0.norm1.weight"

    def saved(weights):
        save_file(weights, folder / "model.safetensors")

    def cut(count):
        content = (FIXTURES / "mdlm_notime" / "weights.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(content[:count])

    config = json.loads((folder / "config.json").read_text())
    for damage, message in (
        (lambda: cut(1000), "not a whole safetensors file"),
        (lambda: saved({k: v for k, v in whole.items() if k != key}), "lacks blocks.0.norm1.weight"),
        (lambda: saved({k.replace("norm1", "norm9"): v for k, v in whole.items()}), "does not fit this kind"),
        (lambda: saved({**whole, key: torch.ones(3)}), "has shape"),
        (lambda: saved({"weight": torch.ones(3)}), "no known family"),
        (lambda: (folder / "config.json").write_text(json.dumps({"model_length": 16})), "not say of which kind"),
        (lambda: (folder / "config.json").write_text("{"), "not a readable configuration"),
    ):
        saved(whole)
        (folder / "config.json").write_text(json.dumps(config))
        damage()
        with pytest.raises(et.EigentimeError, match=message) as failure:
            et.load(str(folder))
        assert "\n" not in str(failure.value)


def test_hub_ids_offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(et.EigentimeError, match=r"not in the local hub cache.*hf download kuleshov-group/mdlm-owt"):
        et.load("kuleshov-group/mdlm-owt")
    with pytest.raises(et.EigentimeError, match="no checkpoint"):
        et.load("./nowhere/at/all")


@pytest.mark.parametrize("name", ["sedd_absorb", "mdlm_notime", "udlm_dit", "tauldr_piano"])
def test_everything_works_on_a_loaded_checkpoint(tmp_path, name):
    model = et.load(str(put(tmp_path, name, "checkpoint.pt" if name.startswith("tauldr") else "model.safetensors")))
    data = torch.randint(0, 16, (8, model.length), generator=torch.Generator().manual_seed(0))
    clock = et.measure(model, data, budget=64)
    grid = et.schedule(clock, "wds", steps=2)
    tokens = et.sample(model, grid, 2)
    assert tokens.shape == (2, model.length)
    model.process.check_tokens(tokens, "samples")


def tiny_bert(folder, **config):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    settings = transformers.BertConfig(vocab_size=20, max_position_embeddings=12, mask_token_id=3, **shape, **config)
    network = transformers.BertForMaskedLM(settings)
    network.save_pretrained(folder)
    return network.eval()


def test_a_bert_is_a_masked_model(tmp_path):
    network = tiny_bert(tmp_path / "bert")
    model = et.load(str(tmp_path / "bert"))
    assert model.length == 12 and model.process.kernel.mask == 3 and not model.time_dependent
    x = torch.randint(4, 20, (2, 12))
    x[:, ::2] = 3
    with torch.no_grad():
        logits = network(input_ids=x).logits
    logits[..., 3] = -torch.inf
    assert torch.allclose(model(x, full(x, 0.5), x == 3), logits.log_softmax(-1)[x == 3], atol=1e-6)
    clock = et.measure(model, torch.randint(4, 20, (8, 12)), budget=64, orders=["low-discrepancy"])
    assert (et.sample(model, et.plan(clock, 3), 2) != 3).all()
    assert et.load(str(tmp_path / "bert"), length=8).length == 8


def test_code_that_comes_along_is_not_run_unasked(tmp_path):
    tiny_bert(tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    trap = {"AutoModelForMaskedLM": "modeling.Trap"}
    (tmp_path / "bert" / "config.json").write_text(json.dumps({**config, "auto_map": trap}))
    (tmp_path / "bert" / "modeling.py").write_text("open('executed', 'w')")
    with pytest.raises(et.EigentimeError, match="trust_remote_code=True"):
        et.load(str(tmp_path / "bert"))


def test_masked_models_that_do_not_say_enough(tmp_path):
    tiny_bert(tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    del config["mask_token_id"]
    (tmp_path / "bert" / "config.json").write_text(json.dumps(config))
    with pytest.raises(et.EigentimeError, match="which of its 20 tokens is the mask"):
        et.load(str(tmp_path / "bert"))
    (tmp_path / "bert" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(et.EigentimeError, match="transformers cannot load"):
        et.load(str(tmp_path / "bert"))


def test_roberta_positions_begin_behind_the_padding(tmp_path):
    transformers = pytest.importorskip("transformers")
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.RobertaConfig(vocab_size=20, max_position_embeddings=14, mask_token_id=3, **shape)
    transformers.RobertaForMaskedLM(config).save_pretrained(tmp_path / "roberta")
    model = et.load(str(tmp_path / "roberta"))
    assert model.length == 12
    assert model(torch.full((1, 12), 3), torch.ones(1).double()).shape == (1, 12, 20)


def test_a_bert_under_another_name_with_its_word_list(tmp_path):
    network = tiny_bert(tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    del config["mask_token_id"]
    (tmp_path / "bert" / "config.json").write_text(json.dumps({**config, "architectures": ["AntiBERTy"]}))
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(["[PAD]", "[MASK]", *"ABCDEFGHIJKLMNOPQR"]))
    model = et.load(str(tmp_path / "bert"))
    assert model.process.kernel.mask == 1
    x = torch.full((1, 12), 1)
    with torch.no_grad():
        logits = network(input_ids=x).logits
    logits[..., 1] = -torch.inf
    assert torch.allclose(model(x, full(x, 0.5), x == 1), logits.log_softmax(-1)[0], atol=1e-6)
    (tmp_path / "bert" / "vocab.txt").write_text("nothing")
    with pytest.raises(et.EigentimeError, match="is the mask"):
        et.load(str(tmp_path / "bert"))
