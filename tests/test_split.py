"""Models in two parts give what whole ones do, and run their heads only where they are asked."""

import math

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.models.base import SplitModel
from eigentime.models.checkpoints.masked_lm import SplitMaskedLM
from test_checkpoints import tiny_bert


class Counting(torch.nn.Linear):
    """A head that remembers how many rows it saw."""

    seen = 0

    def forward(self, rows):
        self.seen += rows.reshape(-1, rows.shape[-1]).shape[0]
        return super().forward(rows)


def parts(size=12, width=8):
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Embedding(size, width), torch.nn.Linear(width, width), torch.nn.Tanh())
    return trunk, Counting(width, size)


@pytest.mark.parametrize("predicts", ["logits", "score"])
def test_a_wrapped_head_changes_nothing_but_the_work(predicts):
    trunk, head = parts()
    process = et.Process(et.Absorbing(12), et.LogLinear())
    options = {"length": 6, "predicts": predicts, "time": None}
    if predicts == "score":  # of a masked token they add up to α / (1 - α) = 1e-3 at t = 1
        head.bias.data -= math.log(11e3)
    whole = et.wrap(torch.nn.Sequential(trunk, head), process, **options)
    split = et.wrap(trunk, process, head=head, **options)
    assert isinstance(split, SplitModel) and split.splits and not whole.splits
    data = torch.randint(0, 11, (16, 6), generator=torch.Generator().manual_seed(1))
    clocks = [et.measure(model, data, budget=48) for model in (whole, split)]
    np.testing.assert_allclose(clocks[0].measured.cross, clocks[1].measured.cross, rtol=1e-6)
    grid = et.schedule(clocks[0], "ods", steps=3)
    assert torch.equal(*(et.sample(model, grid, 32, seed=1, normalise=True) for model in (whole, split)))
    head.seen = 0
    et.sample(split, grid, 32, seed=1, normalise=True)
    assert head.seen == 32 * 6  # every token once, and only when it is drawn
    x = data[:2].clone()
    x[:, ::2] = 11
    t = torch.full((2,), 0.5, dtype=torch.float64)
    assert torch.allclose(split(x, t), whole(x, t)) and torch.allclose(split(x, t, x == 11), whole(x, t)[x == 11])
    assert split.fingerprint != et.wrap(trunk, process, head=parts()[1].half().float(), **options).fingerprint


def test_a_head_that_does_not_fit_gets_a_sentence():
    trunk, head = parts()
    process = et.Process(et.Absorbing(12), et.LogLinear())
    data = torch.zeros(4, 6, dtype=torch.long)
    with pytest.raises(et.EigentimeError, match=r"returned shape .*expected a tensor of shape"):
        et.measure(et.wrap(trunk, process, length=6, time=None, head=lambda rows: rows), data, budget=16)
    with pytest.raises(et.EigentimeError, match=r"\(batch, length, width\)"):
        et.measure(et.wrap(lambda x: x.float(), process, length=6, time=None, head=head), data, budget=16)


def test_masked_language_models_split_and_say_the_same(tmp_path):
    network = tiny_bert(tmp_path / "bert")
    model = et.load(str(tmp_path / "bert"))
    assert isinstance(model, SplitMaskedLM)
    x = torch.randint(4, 20, (3, 12), generator=torch.Generator().manual_seed(0))
    x[:, ::3] = 3
    with torch.no_grad():
        logits = network(input_ids=x).logits.masked_fill(torch.arange(20) == 3, -torch.inf)
    t = torch.zeros(3, dtype=torch.float64)
    assert torch.allclose(model(x, t), logits.log_softmax(-1), atol=1e-5)
    rows = torch.cat([block for _, block in model.evaluate(x, t, x == 3).pieces()])
    assert torch.allclose(rows.log_softmax(-1), logits.log_softmax(-1)[x == 3], atol=1e-5)


def test_nobody_attends_to_padding(tmp_path):
    tiny_bert(tmp_path / "bert", pad_token_id=1, initializer_range=0.5)
    model = et.load(str(tmp_path / "bert"))
    x = torch.randint(4, 20, (3, 12), generator=torch.Generator().manual_seed(0))
    x[:, ::3] = 3
    t, padded = torch.zeros(3, dtype=torch.float64), x.clone()
    padded[:, 8:] = 1
    found = model(padded, t)[:, :8]
    short = et.load(str(tmp_path / "bert"), length=8)
    assert torch.allclose(found, short(x[:, :8], t), atol=1e-5)
    assert not torch.allclose(found, model(x, t)[:, :8], atol=1e-3)


def test_what_transformers_is_handed(tmp_path):
    tiny_bert(tmp_path / "bert")
    folder = str(tmp_path / "bert")
    model = et.load(folder, device_map={"": "cpu"}, attn_implementation="eager", dtype="float16")
    assert model.network.config._attn_implementation == "eager" and model.network.dtype == torch.float16
    assert isinstance(model, SplitMaskedLM)
    grid = et.schedule("uniform", steps=2, model=model)
    model.process.check_tokens(et.sample(model, grid, 2), "samples")
    for bad in ({"quantization_config": {"quant_method": "unheard-of"}}, {"device_map": {"": "toaster"}}):
        with pytest.raises(et.EigentimeError, match="transformers cannot load"):
            et.load(folder, **bad)
    with pytest.raises(et.EigentimeError, match="leave `device` out"):
        et.load(folder, device_map="auto", device="cpu")
    with pytest.raises(et.EigentimeError, match="`device_map` is for models that transformers loads"):
        et.load("countdown", device_map="auto")


def test_a_language_model_that_changes_its_logits_stays_whole(tmp_path):
    import transformers

    from eigentime.models.checkpoints.masked_lm import MaskedLM, split

    class Capped(transformers.BertForMaskedLM):
        def forward(self, *args, **kwargs):
            output = super().forward(*args, **kwargs)
            output.logits = torch.tanh(output.logits)
            return output

    network = Capped(tiny_bert(tmp_path / "bert").config).eval()
    process = et.Process(et.Absorbing(20, mask=3), et.LogLinear())
    model = split(MaskedLM(network, process, 12, "capped"))
    assert not model.splits and isinstance(network.get_output_embeddings(), torch.nn.Linear)


def test_blocks_of_a_split_model_are_split():
    model = et.load("countdown")
    block = et.Block(model, 64, 128)
    assert block.splits and block.device == model.device
    x0 = et.load("countdown-exact").draw(2, 0)
    x, t = x0[:, 64:128].clone(), torch.full((2,), 0.5, dtype=torch.float64)
    x[:, ::2] = 32
    whole = torch.cat([x0[:, :64], x, torch.full((2, 128), 32)], 1)
    expected = model(whole, t)[:, 64:128][x == 32]
    rows = torch.cat([part for _, part in block.evaluate(x, t, x == 32, x0[:, :64]).pieces()])
    assert torch.allclose(rows.log_softmax(-1), expected, atol=1e-5)


def test_devices_and_precisions():
    model = et.load("countdown", device="cpu", dtype="float16")
    single = et.load("countdown")
    x = et.load("countdown-exact").draw(2, 0)
    x[:, ::2] = 32
    t = torch.full((2,), 0.5, dtype=torch.float64)
    half = model(x, t, x == 32)
    assert half.dtype == torch.float32 and model.to("cpu") is model
    assert not torch.equal(half, single(x, t, x == 32))
    assert torch.allclose(half.exp(), single(x, t, x == 32).exp(), atol=0.02)
    grid = et.schedule("cosine", steps=3, model=model)
    model.process.check_tokens(et.sample(model, grid, 2), "samples")
    for options, message in (
        ({"device": "cuda"}, "no device 'cuda' here"),
        ({"device": "toaster"}, "no device 'toaster'"),
        ({"dtype": "float8"}, "must be one of float16"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            et.load("countdown", **options)
    with pytest.raises(et.EigentimeError, match="double precision"):
        et.load("countdown-exact", dtype="float16")
    with pytest.raises(et.EigentimeError, match="lives on the CPU"):
        et.load("countdown-exact").to("meta")
