"""Our networks against the outputs of the official implementations, and the folder they are kept in."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import eigentime as et
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.mlp import MLP, MLPConfig
from eigentime.models.trained import Trained, load_folder, save_folder

FIXTURES = Path(__file__).parent / "fixtures"


def published(name):
    """The network of a fixture with the weights under their published names."""
    weights = load_file(FIXTURES / name / "weights.safetensors")
    weights = {key.removeprefix("backbone."): value for key, value in weights.items()}
    config = DDiTConfig(
        size=len(weights["vocab_embed.embedding"]),
        width=64,
        blocks=2,
        heads=4,
        cond_width=32,
        head="score" if name.startswith("sedd") else "posterior",
        time_conditioned=name != "mdlm_notime",
        scale_by_sigma=name == "sedd_absorb",
    )
    network = DDiT(config)
    assert set(network.state_dict()) == set(weights)
    network.load_state_dict(weights)
    return network.eval()


@pytest.mark.parametrize("name", ["sedd_absorb", "sedd_uniform"])
@torch.no_grad()
def test_score_network_is_the_published_one(fixture, name):
    arrays, _ = fixture(name)
    x, sigmas = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_sigma"])
    network = published(name)
    scores = torch.stack([network(x, sigma) for sigma in sigmas])
    assert torch.allclose(scores, torch.from_numpy(arrays["out_log_score"]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["mdlm_time", "mdlm_notime"])
@torch.no_grad()
def test_posterior_network_is_the_published_one(fixture, name):
    arrays, _ = fixture(name)
    x, network = torch.from_numpy(arrays["in_x"]), published(name)
    logits = torch.stack([network(x, torch.full((len(x),), float(sigma))) for sigma in arrays["out_sigma"]])
    assert torch.allclose(logits, torch.from_numpy(arrays["out_logits"]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["sedd_absorb", "sedd_uniform"])
def test_score_entropy_is_the_published_one(fixture, name):
    arrays, _ = fixture(name)
    x, x0 = torch.from_numpy(arrays["in_x"]), torch.from_numpy(arrays["in_x0"])
    log_scores = torch.from_numpy(arrays["out_log_score"])
    kernel = et.Absorbing(log_scores.shape[-1]) if name == "sedd_absorb" else et.Uniform(log_scores.shape[-1])
    alpha = torch.exp(-torch.from_numpy(arrays["in_sigma"]).double())
    for k, log_score in enumerate(log_scores):
        rows = kernel.score_entropy(log_score, x0, x, alpha[k][:, None].expand(x.shape))
        expected = arrays["out_score_entropy_f64"][k]
        at = kernel.masked(x).numpy() if name == "sedd_absorb" else np.ones(x.shape, bool)
        assert np.allclose(rows.numpy()[at], expected[at], rtol=1e-5)
        assert (expected[~at] == 0).all()


@pytest.mark.parametrize("name", ["sedd_absorb", "mdlm_time"])
def test_where_runs_the_projection_only_on_the_rows_asked(fixture, name):
    arrays, _ = fixture(name)
    network = published(name)
    process = et.Process(et.Absorbing(network.config.size), et.LogLinear())
    model = Trained(network, process, 16, "tiny", {})
    x, t = torch.from_numpy(arrays["in_x"]), torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    where = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    rows = []
    network.output_layer.linear.register_forward_hook(lambda module, inputs, output: rows.append(inputs[0].shape))
    some = model(x, t, where)
    assert rows == [(int(where.sum()), 64)]
    assert torch.allclose(some, model(x, t)[where], atol=1e-6)
    blocks = torch.cat([block for _, block in model.evaluate(x, t, where).pieces()])
    assert torch.equal(blocks if model.predicts == "score" else blocks.log_softmax(-1), some)


def test_mlp_reads_the_whole_sequence_and_the_noise():
    torch.manual_seed(0)
    network = MLP(MLPConfig(size=5, length=3, width=16, layers=2, scale_by_sigma=False))
    x, sigma = torch.tensor([[0, 1, 2], [0, 1, 3]]), torch.tensor([0.1, 0.1])
    scores = network(x, sigma)
    assert scores.shape == (2, 3, 5)
    assert not torch.allclose(scores[0, 0], scores[1, 0])
    assert not torch.allclose(scores, network(x, 10 * sigma))
    assert (scores.gather(-1, x[..., None]) == 0).all()


def test_folder_round_trip_and_its_refusals(tmp_path):
    torch.manual_seed(0)
    process = et.Process(et.Uniform(5), et.Geometric(0.01, 5.0))
    network = MLP(MLPConfig(size=5, length=1, width=8, layers=1, scale_by_sigma=False))
    model = Trained(network, process, 1, "tiny", {"recipe": {"steps": 3}})
    save_folder(model, tmp_path / "model")
    again = et.load(str(tmp_path / "model"))
    x, t = torch.tensor([[0], [3]]), torch.tensor([0.3, 0.7], dtype=torch.float64)
    assert torch.equal(model(x, t), again(x, t))
    assert again.process.spec() == process.spec() and again.about == model.about

    config = json.loads((tmp_path / "model" / "config.json").read_text())
    unsealed = {key: value for key, value in config.items() if key != "sha256"}
    for name, content, message in (
        ("config.json", json.dumps(config | {"format": "other"}), "not a model folder"),
        ("config.json", json.dumps(config | {"length": 7}), "was changed after it was written"),
        ("config.json", "{", "does not describe a model"),
        (
            "config.json",
            json.dumps(unsealed | {"network": config["network"] | {"width": 9}}),
            "does not hold the weights",
        ),
        ("model.safetensors", "truncated", "does not hold the weights"),
    ):
        kept = (tmp_path / "model" / name).read_bytes()
        (tmp_path / "model" / name).write_text(content)
        with pytest.raises(et.EigentimeError, match=message):
            load_folder(tmp_path / "model")
        (tmp_path / "model" / name).write_bytes(kept)
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(et.EigentimeError, match=r"model\.safetensors is missing"):
        load_folder(tmp_path / "model")
    with pytest.raises(et.EigentimeError, match="neither a file, a folder, a hub id nor one of"):
        et.load("no-such-model")
