"""Language models with the Python files that their makers published and small random weights, loaded as users do.

The files come from checkouts of Fast-dLLM and dllm in the folder named by $EIGENTIME_ENGINES; they want transformers 4
(4.57) and einops.
"""

import json
import shutil
import warnings
from importlib.util import find_spec

import pytest
import torch

import eigentime as et
import published
from eigentime.engines import fast_dllm
from eigentime.orders import make_order

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.skipif(
    published.CHECKOUTS is None or not transformers.__version__.startswith("4.") or find_spec("einops") is None,
    reason="needs checkouts in $EIGENTIME_ENGINES, transformers 4 and einops",
)
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"num_key_value_heads": 1, "max_position_embeddings": 64, "pad_token_id": 0, "eos_token_id": 0}
LLADA = {"d_model": 32, "n_heads": 2, "n_kv_heads": 2, "n_layers": 2, "mlp_hidden_size": 64, "max_sequence_length": 64}
LLADA |= {"block_type": "llama", "rope": True, "layer_norm_type": "rms", "activation_type": "silu", "pad_token_id": 0}
LLADA |= {"include_bias": False, "weight_tying": False, "init_device": "cpu", "use_cache": False, "eos_token_id": 0}
EXPERTS = {"head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "topk_group": 1}
EXPERTS |= {"num_shared_experts": 1, "n_group": 1, "first_k_dense_replace": 1, "partial_rotary_factor": 0.5}
MAKERS = {
    "llada": ("Fast-dLLM/llada/model", "llada", "LLaDAConfig", "LLaDAModelLM", LLADA),
    "Dream": ("Fast-dLLM/dream/model", "dream", "DreamConfig", "DreamModel", {**SMALL, "tie_word_embeddings": False}),
    "llada2_moe": (
        "dllm/dllm/pipelines/llada2/models",
        "llada2_moe",
        "LLaDA2MoeConfig",
        "LLaDA2MoeModelLM",
        {**SMALL, **EXPERTS},
    ),
}


def folder(place, kind, size=21):
    """A checkpoint of such a family, as the hub has them: files, configuration, weights."""
    source, name, config, network, shape = MAKERS[kind]
    shutil.copytree(published.CHECKOUTS / source, place, ignore=lambda _, names: {n for n in names if "token" in n})
    auto = {"AutoConfig": f"configuration_{name}.{config}"}
    auto |= dict.fromkeys(("AutoModel", "AutoModelForCausalLM"), f"modeling_{name}.{network}")
    said = {"model_type": kind, "vocab_size": size, "embedding_size": size, "mask_token_id": size - 1, **shape}
    (place / "config.json").write_text(json.dumps({**said, "auto_map": auto, "architectures": [network]}))
    made = transformers.AutoConfig.from_pretrained(place, trust_remote_code=True)
    torch.manual_seed(0)
    random_network = transformers.AutoModel.from_config(made, trust_remote_code=True)
    for parameter in random_network.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, 0, 0.3)
    random_network.save_pretrained(place)
    kept = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**kept, "mask_token_id": size - 1, "auto_map": auto}))
    return str(place)


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))

    def get(kind, length=16, **settings):
        source = folder(tmp_path / kind, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return et.load(source, length=length, trust_remote_code=True, **settings), source

    return get


def ask(model, x, cond=None):
    return model(x, torch.zeros(len(x), dtype=torch.float64), None, cond)


@pytest.mark.parametrize("kind", MAKERS)
def test_it_says_what_the_published_network_says(loaded, kind):
    """Block-causal masks for LLaDA2, Dream's shift; a block alone, with what is kept of the prefix, says the same."""
    model, source = loaded(kind, **({"block_length": 4} if kind == "llada2_moe" else {}))
    draw, mask = torch.Generator().manual_seed(1), model.process.kernel.mask
    x = torch.randint(0, 20, (3, 16), generator=draw)
    x[:, 8:] = x[:, 8:].masked_fill(torch.rand(3, 8, generator=draw) < 0.5, mask)
    x[:, 12:] = mask
    told = {}
    if model.block:
        block = torch.arange(16) // 4
        hidden = torch.zeros(16, 16).masked_fill(block[None] > block[:, None], torch.finfo(torch.float32).min)
        told = {"attention_mask": hidden.expand(3, 1, -1, -1), "position_ids": torch.arange(16).expand(3, -1)}
    network = transformers.AutoModel.from_pretrained(source, trust_remote_code=True).eval()
    with torch.no_grad():
        rows = network(input_ids=x, **told).logits
    if kind == "Dream":
        rows = torch.cat([rows[:, :1], rows[:, :-1]], 1)
    rows[..., mask] = -torch.inf
    expected = rows.log_softmax(-1)
    torch.testing.assert_close(ask(model, x), expected, atol=1e-5, rtol=1e-4)
    inside = ask(et.Block(model, 8, 12), x[:, 8:12], x[:, :8])
    torch.testing.assert_close(inside, expected[:, 8:12], atol=1e-5, rtol=1e-4)
    assert model.taking is not None  # keys and values are kept in the way of these files
    prompts, grid = [x[0, :8], x[1, :5], x[2, :7]], et.schedule("uniform", steps=2, model=model)
    tokens, nfe = et.generate_blocks(model, [grid] * 2, prompts, seed=1)
    assert not (tokens == mask).any() and nfe == 4
    for row, prompt in zip(tokens, prompts, strict=True):
        assert torch.equal(row[row >= 0][: len(prompt)], prompt)  # padding stands before it


class Watched:
    """A network that remembers what it was asked and what it said."""

    def __init__(self, network):
        self.network, self.device, self.said = network, network.device, []

    def __call__(self, x, **settings):
        answer = self.network(x, **settings)
        self.said.append((x.clone(), answer.logits.clone()))
        return answer


@pytest.mark.parametrize(
    ("kind", "loop"), [("prefix", "generate_with_prefix_cache"), ("dual", "generate_with_dual_cache")]
)
def test_fast_dllms_loop_is_told_what_is_certified(loaded, kind, loop):
    """Its own loop and its own network along a plan: at every evaluation the posteriors are those of our model with
    this cache, which `nll` certifies; those of the network without one are others."""
    model, source = loaded("llada", length=12)
    plan, mask = et.Plan((1, 2, 1), make_order([1, 0, 3, 2]), 4), model.process.kernel.mask
    network = Watched(transformers.AutoModel.from_pretrained(source, trust_remote_code=True).eval())
    settings = {"steps": 6, "gen_length": 8, "block_length": 4, "temperature": 1.0, "mask_id": mask}
    with published.fast_dllm_files() as module, fast_dllm.follow(plan, module, seed=1):
        tokens, nfe = getattr(module, loop)(network, torch.tensor([[7, 3, 9, 1]]), **settings)
    assert nfe == 6 and not (tokens == mask).any()
    stale = 0.0
    for number, (x, logits) in enumerate(network.said):
        start = 4 + 4 * (number // 3)
        first = 0 if number % 3 == 0 else start  # which tokens the loop shows
        now, said = x[:, start - first :][:, :4], logits[:, start - first :][:, :4]
        said[..., mask] = -torch.inf
        kept, exact = (
            ask(et.Block(each, start, start + 4), now, tokens[:, :start]).exp() for each in (model.cached(kind), model)
        )
        torch.testing.assert_close(kept, said.softmax(-1), atol=1e-5, rtol=1e-4)
        stale = max(stale, float((kept - exact).abs().max()))
    assert stale > 0.01
