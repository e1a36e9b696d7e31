"""Blocks, windows, language models that bring their own code, and the evaluation harness."""

import json

import numpy as np
import pytest
import torch

import eigentime as et
from lookalikes import MASK, lookalike
from test_checkpoints import tiny_bert
from test_samplers import frequencies
from worlds import clean_law, random_table

REMOTE = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput


class TinyConfig(PretrainedConfig):
    model_type = "{kind}"

    def __init__(self, vocab_size=12, width=8, **kwargs):
        self.vocab_size, self.width = vocab_size, width
        super().__init__(**kwargs)


class TinyModel(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.width)
        self.out = nn.Linear(config.width, config.vocab_size)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        hidden = self.embed(input_ids)
        return MaskedLMOutput(logits=self.out(hidden + hidden.mean(1, keepdim=True)))
"""


def remote_model(folder, kind, **config):
    """A folder as the hub holds LLaDA and Dream: weights, a configuration and Python code."""
    folder.mkdir()
    (folder / "modeling_tiny.py").write_text(REMOTE.format(kind=kind))
    torch.manual_seed(0)
    weights = {
        "embed.weight": torch.randn(12, 8),
        "out.weight": torch.randn(12, 8),
        "out.bias": torch.randn(12),
    }
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    auto = {"AutoConfig": "modeling_tiny.TinyConfig", "AutoModel": "modeling_tiny.TinyModel"}
    described = {"model_type": kind, "auto_map": auto, "vocab_size": 12, "architectures": ["TinyModel"], **config}
    (folder / "config.json").write_text(json.dumps(described))
    hidden = weights["embed.weight"]
    return lambda x: (hidden[x] + hidden[x].mean(1, keepdim=True)) @ weights["out.weight"].T + weights["out.bias"]


@pytest.mark.parametrize(("kind", "shifted"), [("llada", False), ("Dream", True)])
def test_language_models_that_bring_their_own_code(tmp_path, monkeypatch, kind, shifted):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    expected = remote_model(tmp_path / kind, kind, mask_token_id=11, max_sequence_length=32)
    with pytest.raises(et.EigentimeError, match="trust_remote_code=True"):
        et.load(str(tmp_path / kind), length=10)
    model = et.load(str(tmp_path / kind), length=10, trust_remote_code=True)
    assert model.length == 10 and model.process.kernel.mask == 11
    x = torch.randint(0, 11, (2, 10), generator=torch.Generator().manual_seed(1))
    x[:, 3:7] = 11
    logits = expected(x)
    if shifted:
        logits = torch.cat([logits[:, :1], logits[:, :-1]], 1)
    logits[..., 11] = -torch.inf
    rows = model(x, torch.zeros(2), x == 11)
    assert torch.allclose(rows, logits.log_softmax(-1)[x == 11], atol=1e-5)
    data = torch.randint(0, 11, (16, 10), generator=torch.Generator().manual_seed(2))
    schedules = []
    for start in (4, 7):  # a prompt of four tokens, two blocks of three
        block = et.Block(model, start, start + 3)
        clock = et.measure(block, data[:, start : start + 3], cond=data[:, :start], budget=64)
        schedules.append(et.schedule(clock, "ods", steps=2))
    assert [counts.sum() for counts in et.block_counts(schedules, 3)] == [3, 3]
    tokens, nfe = et.generate_blocks(model, schedules, data[:3, :4])
    assert tokens.shape == (3, 10) and nfe == 4
    assert torch.equal(tokens[:, :4], data[:3, :4]) and (tokens != 11).all()


def test_blocks_of_one_token_are_drawn_from_the_exact_law():
    model = random_table(3, 3, "absorbing", concentration=0.5)
    size, law = model.process.kernel.size, clean_law(model).reshape((model.process.kernel.size,) * 3)
    first = model.process.kernel.values[1]
    grid = et.schedule("uniform", steps=1, model=model)
    tokens, nfe = et.generate_blocks(model, [grid, grid], first.expand(20_000, 1))
    assert nfe == 2
    expected = np.zeros_like(law)
    expected[first] = law[first] / law[first].sum()
    noise = 5 * np.sqrt(expected.ravel() * (1 - expected.ravel()) / 20_000) + 1e-9
    assert (np.abs(frequencies(tokens, size) - expected.ravel()) < noise).all()


def test_a_block_is_measured_as_it_is_generated():
    """Entropy of a block given what comes before it, with what comes after unknown: chain rule."""
    model = random_table(2, 3, "absorbing", concentration=0.5)
    law = clean_law(model).reshape((3,) * 3)[:2, :2, :2]
    pair = law.sum(2)
    expected = -(pair * np.log(pair / pair.sum(1, keepdims=True))).sum()
    data = model.draw(4096, 0)
    clock = et.measure(et.Block(model, 1, 2), data[:, 1:2], cond=data[:, :1], budget=4096, tolerance=0.0)
    entropy = et.cumulative(clock, "nonadiabatic_data")
    assert entropy.mean[-1] == pytest.approx(expected, abs=0.05)


def test_blocks_refuse_what_they_cannot_do():
    model = random_table(3, 4, "absorbing")
    grid = et.schedule("uniform", steps=1, model=model)
    with pytest.raises(et.EigentimeError, match="within the 4 tokens"):
        et.Block(model, 3, 6)
    with pytest.raises(et.EigentimeError, match="needs the 2 tokens before it"):
        et.sample(et.Block(model, 2, 4), grid, 2)
    with pytest.raises(et.EigentimeError, match="split evenly"):
        et.generate_blocks(model, [grid, grid], torch.zeros(1, 1, dtype=torch.long))
    with pytest.raises(et.EigentimeError, match="holds token 3"):
        et.generate_blocks(model, [grid], torch.full((1, 1), 3))
    with pytest.raises(et.EigentimeError, match="`cond` cannot be given"):
        et.generate_blocks(model, [grid], torch.zeros(1, 1, dtype=torch.long), cond=torch.zeros(1))
    with pytest.raises(et.EigentimeError, match="list with one schedule"):
        et.generate_blocks(model, grid, torch.zeros(1, 1, dtype=torch.long))
    stopped, _ = et.generate_blocks(model, [grid] * 3, torch.zeros(1, 1, dtype=torch.long), callback=lambda state: True)
    assert stopped.shape == (1, 2)
    with pytest.raises(et.EigentimeError, match="masked model"):
        et.Block(random_table(3, 4, "uniform"), 0, 2)


def test_the_harness_bound_is_the_likelihood_of_an_exact_model():
    pytest.importorskip("lm_eval")
    from eigentime.harness import MaskedHarness

    model = random_table(3, 4, "absorbing", concentration=2.0)
    law = clean_law(model).reshape((4,) * 4)
    judge = MaskedHarness(model, Letters(), mc_samples=4000)
    x = model.draw(1, 3)[0]
    before = law[tuple(x[:1])].sum()
    assert judge.elbo(x[:1], x[1:]) == pytest.approx(np.log(law[tuple(x)] / before), abs=0.02)


def test_the_harness_fills_the_blocks_that_prompts_begin(tmp_path, monkeypatch):
    pytest.importorskip("lm_eval")
    from eigentime.harness import MaskedHarness, Question

    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    model = et.load(lookalike(tmp_path / "sdar", "sdar", block_size=2), length=8, trust_remote_code=True)
    judge, prompt = MaskedHarness(model, tokenizer=object(), steps=6), torch.tensor([1, 4, 2])
    asked = Question(0, tuple(prompt.tolist()), 4, 0.0, ())
    answer = judge._answers([asked])[0]  # one known token and one to draw, then two, and one of two
    assert answer.shape == (4,) and judge.evaluations == 6
    whole = torch.cat([prompt, torch.full((5,), MASK)])[None]
    surest = model(whole, torch.zeros(1), whole == MASK)[0].argmax()
    assert answer[0] == surest and (answer != MASK).all()


def test_windows_go_on_where_the_last_one_ended():
    """A deterministic chain: whatever the window, each token follows from the one before it."""
    step = torch.roll(torch.eye(5, dtype=torch.float64), 1, 1)
    process = et.Process(et.Absorbing(6), et.LogLinear())
    model = et.MarkovChain(torch.full((5,), 0.2), step, 8, process)
    grid = et.schedule("uniform", steps=64, model=model)
    tokens, nfe = et.generate_windows(model, grid, 6, length=20, stride=4, seed=2)
    assert tokens.shape == (6, 20) and nfe == 64 * 4
    follows = tokens[:, 1:] == (tokens[:, :-1] + 1) % 5
    assert follows[:, 7:].all()  # what is generated after the first window has its context
    with pytest.raises(et.EigentimeError, match=r"8 \+ k·5"):
        et.generate_windows(model, grid, 2, length=20, stride=5)


class Letters:
    """A tokenizer of letters: a is 4."""

    name_or_path = "letters"

    def encode(self, text, add_special_tokens=False):
        return [4 + ord(letter) - ord("a") for letter in text.replace(" ", "p")]

    def decode(self, tokens, skip_special_tokens=True):
        return "".join(chr(ord("a") + max(0, int(token) - 4)) for token in tokens)


def test_the_evaluation_harness(tmp_path):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    from eigentime.harness import MaskedHarness

    assert get_model("eigentime") is MaskedHarness
    tiny_bert(tmp_path / "bert")
    model = et.load(str(tmp_path / "bert"))
    judge = MaskedHarness(model, Letters(), steps=4, max_gen_toks=6, mc_samples=64)

    def ask(*arguments):
        return [Instance("loglikelihood", {}, arguments, 0)]

    ((value, greedy),) = judge.loglikelihood(ask("abc", "d"), disable_tqdm=True)
    x = torch.tensor([[4, 5, 6, 3]])
    rows = model(x, torch.ones(1), x == 3)
    assert value == pytest.approx(rows[0, 7].item(), abs=1e-5)  # one token: the bound is exact
    assert greedy == (rows.argmax().item() == 7)
    ((longer, _),) = judge.loglikelihood(ask("abcdefghijklmnop", "defg"), disable_tqdm=True)  # the context is cut
    assert longer < 0
    (rolled,) = judge.loglikelihood_rolling(ask("abcdefghijklm"), disable_tqdm=True)
    assert -200 < rolled < 0
    spent = judge.evaluations
    (text,) = judge.generate_until(ask("abc", {"until": ["q"], "max_gen_toks": 6}), disable_tqdm=True)
    assert len(text) <= 6 and "q" not in text and judge.evaluations == spent + 4
    (empty,) = judge.generate_until(ask("", {"until": [], "max_gen_toks": 12, "do_sample": False}), disable_tqdm=True)
    again = judge.generate_until(ask("", {"until": [], "max_gen_toks": 12, "do_sample": False}), disable_tqdm=True)
    assert [empty] == again and len(empty) == 12
    for bad, sentence in (({"steps": 0}, "steps must be"), ({"mc_samples": "many"}, "mc_samples must be")):
        with pytest.raises(et.EigentimeError, match=sentence):
            MaskedHarness(model, Letters(), **bad)
    with pytest.raises(TypeError, match="stepz"):
        MaskedHarness(model, Letters(), stepz=3)
    with pytest.raises(et.EigentimeError, match="longer than"):
        judge.generate_until(ask("a", {"max_gen_toks": 13}), disable_tqdm=True)
    blockwise = MaskedHarness(model, Letters(), steps=2, block_length=2)
    with pytest.raises(et.EigentimeError, match="too few for 3 blocks"):
        blockwise.generate_until(ask("a", {"max_gen_toks": 6}), disable_tqdm=True)
    with pytest.raises(et.EigentimeError, match="not a masked model"):
        MaskedHarness(random_table(2, 3, "uniform"), Letters())


def test_code_for_another_transformers_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    source = lookalike(tmp_path / "Dream", "dream")
    (code,) = (tmp_path / "Dream").glob("*.py")
    code.write_text(code.read_text() + "\nraise KeyError('default')\n")
    with pytest.raises(
        et.EigentimeError, match=r"cannot load .*KeyError: 'default'.*want another version than .*: 4.57"
    ):
        et.load(source, length=8, trust_remote_code=True)
