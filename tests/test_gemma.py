"""DiffusionGemma as a model: what its own network says, measured, scheduled, and sampled canvas by canvas."""

import sys

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency

import eigentime as et
from eigentime import packages
from eigentime.engines.examples import tiny_diffusion_gemma
from eigentime.measure import chain, checks
from eigentime.models.contexts import Contexts
from eigentime.samplers import Condition
from test_memory import Largest

pytest.importorskip("transformers.models.diffusion_gemma")
MODES = ("off", "once", "previous")


@pytest.fixture(scope="module")
def network():
    return tiny_diffusion_gemma(canvas=8)


@pytest.fixture(scope="module")
def context():
    return torch.randint(0, 97, (4, 21), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def canvas():
    return torch.randint(0, 97, (4, 8), generator=torch.Generator().manual_seed(1))


def now(count):
    return torch.zeros(count, dtype=torch.float64)


def theirs(network, context, canvas, told=None):
    """The network called as its documentation says, context and all."""
    with torch.no_grad():
        return network(input_ids=context, decoder_input_ids=canvas, self_conditioning_logits=told).logits


def test_it_says_what_the_network_says(network, context, canvas):
    """Beyond the sliding window too (21 tokens against 16), with self-conditioning off and once."""
    model = et.gemma.model(network)
    plain = theirs(network, context, canvas)
    torch.testing.assert_close(model(canvas, now(4), cond=context), plain.log_softmax(-1), atol=2e-5, rtol=1e-4)
    once = model.conditioned("once")
    told = theirs(network, context, canvas, plain)
    torch.testing.assert_close(once(canvas, now(4), cond=context), told.log_softmax(-1), atol=2e-5, rtol=1e-4)
    assert (told - plain).abs().max() > 0.1
    where = torch.rand(4, 8, generator=torch.Generator().manual_seed(2)) < 0.4
    rows = model(canvas, now(4), where, context)
    torch.testing.assert_close(rows, plain.log_softmax(-1)[where], atol=2e-5, rtol=1e-4)
    alone = theirs(network, torch.full((4, 1), model.beginning), canvas)
    torch.testing.assert_close(model(canvas, now(4)), alone.log_softmax(-1), atol=2e-5, rtol=1e-4)
    assert model.process.kernel.size == 97 and model.length == 8 and not model.time_dependent


def test_contexts_are_encoded_once_and_continued(network, context, canvas):
    model = et.gemma.model(network)
    for _ in range(3):
        model(canvas, now(4), cond=context)
    assert model.contexts.encoded == context.numel()
    model(canvas[:2], now(2), cond=context[[2, 2]])  # another batch of contexts that are known
    assert model.contexts.encoded == context.numel()
    longer = torch.cat([context, canvas], 1)  # only the canvas is new
    found = model(canvas, now(4), cond=longer)
    assert model.contexts.encoded == longer.numel()
    torch.testing.assert_close(found, theirs(network, longer, canvas).log_softmax(-1), atol=2e-5, rtol=1e-4)
    one = et.gemma.model(network)
    one(canvas, now(4), cond=context[:1].expand(4, -1))
    assert one.contexts.encoded == context.shape[1]


def test_contexts_give_way_where_there_is_no_room(network, context):
    small = Contexts(network.model.encoder, network.config.text_config, room=1)
    for _ in range(2):
        for row in context[:, None]:
            small.of(row, network.device)
    assert small.encoded == 2 * context.numel() and len(small._kept) == 1


def test_measured_scheduled_and_sampled_canvas_by_canvas(network, context):
    model = et.gemma.model(network)
    rng = torch.Generator().manual_seed(3)
    data = torch.randint(0, 97, (4, 8), generator=rng)
    clock = et.measure(model, data, cond=context, budget=64)
    assert model.contexts.encoded == context.numel()
    grid = et.schedule(clock, "ods", steps=4)
    assert np.isfinite(et.path_error(clock, grid).mean)
    tokens, nfe = et.generate_canvases(model, [grid, grid, grid], context, seed=5)
    assert tokens.shape == (4, 21 + 24) and nfe == 12
    assert model.contexts.encoded == context.numel() + 2 * 4 * 8
    assert torch.equal(tokens[:, :21], context)
    # each canvas is one that `sample` draws given what comes before it
    again = et.sample(model, grid, 4, cond=tokens[:, :21], seed=5)
    assert torch.equal(again, tokens[:, 21:29]) and again.nfe == 4
    ended, _ = et.generate_canvases(model, [grid] * 3, context[:1], end=int(tokens[0, 22]), seed=5)
    assert ended.shape == (1, 29)
    with pytest.raises(et.EigentimeError, match="one schedule for every canvas"):
        et.generate_canvases(model, grid, context)
    with pytest.raises(et.EigentimeError, match="what comes before a canvas"):
        et.sample(model, grid, 2, cond=torch.zeros(2))


def test_two_passes_count_as_two(network, context):
    once = et.gemma.model(network, "once")
    grid = et.schedule("uniform", steps=3, model=once)
    x = et.sample(once, grid, 2, cond=context[:2])
    assert x.nfe == 6 and x.evaluations == 12
    clock = et.measure(once, torch.zeros(4, 8, dtype=torch.long), cond=context, budget=64)
    assert clock.evaluations <= 64 and clock.evaluations % 2 == 0


def test_looking_back_is_sampled_but_not_measured(network, context):
    """`previous` as a loop of its own would do it, whatever the batches; no measurement, no certificate."""
    back = et.gemma.model(network, "previous")
    grid = et.schedule("uniform", steps=3, model=back)
    seen = [Condition().start(back, 4, 1).tokens]
    x = et.sample(back, grid, 4, cond=context, seed=1, callback=lambda s: seen.append(s.tokens))
    path, told = {}, None
    for canvas in seen[:3]:  # what a run hears at each step is what the network says when told its last logits
        heard = back.evaluate_along(path, torch.arange(4), canvas, now(4), torch.ones_like(canvas).bool(), context)
        told = theirs(network, context, canvas, told)
        torch.testing.assert_close(back.head(heard.rows).view_as(told), told, atol=1e-4, rtol=1e-4)
    split = et.sample(back, grid, 4, cond=context, seed=1, batch_size=1)
    assert (split == x).float().mean() > 0.9  # rounding may differ with the batch, memories may not
    off = et.sample(et.gemma.model(network), grid, 4, cond=context, seed=1)
    assert not torch.equal(off, x)
    for work in (
        lambda: et.measure(back, torch.zeros(4, 8, dtype=torch.long), cond=context, budget=16),
        lambda: et.schedule("jys", steps=2, model=back, data=torch.zeros(4, 8, dtype=torch.long)),
        lambda: back(x, now(4), cond=context),
    ):
        with pytest.raises(et.EigentimeError, match="depends on the path"):
            work()
    with pytest.raises(et.EigentimeError, match="one of off, once, previous"):
        back.conditioned("twice")


def test_its_own_generate_takes_our_steps(network, context):
    """With and without looking back; the law is that of our sampler on a small vocabulary."""
    tiny = tiny_diffusion_gemma(canvas=2, vocabulary=6)
    model = et.gemma.model(tiny)
    prompt = torch.tensor([[1, 2, 1]])
    grid = et.schedule("cosine", steps=3, model=model)
    count = 2000
    torch.manual_seed(0)
    with et.gemma.sampling(tiny, grid, self_conditioning="off"):
        out = tiny.generate(prompt.expand(count, -1), max_new_tokens=2, max_denoising_steps=3, eos_token_id=None)
    ours = et.sample(model, grid, count, cond=prompt.expand(count, -1), seed=3)
    tables = np.array([np.bincount(x[:, 0] * 6 + x[:, 1], minlength=36) for x in (out.sequences[:, 3:], ours)])
    common = tables.sum(0) >= 10
    tables = np.column_stack([tables[:, common], tables[:, ~common].sum(1) + 1])
    assert chi2_contingency(tables).pvalue > 0.001
    greedy = theirs(tiny, prompt, out.sequences[:1, 3:]).argmax(-1)
    assert (out.sequences[:, 3:] != greedy).any(1).float().mean() > 0.1  # drawn, not the likeliest
    assert "_prepare_sampler" not in vars(tiny)  # everything is as it was


@pytest.mark.parametrize("how", MODES)
def test_generate_is_told_what_one_asks_for(network, context, how):
    calls = []
    forward = network.forward

    def counted(*args, **kwargs):
        calls.append(kwargs["self_conditioning_logits"] is not None)
        return forward(*args, **kwargs)

    network.forward = counted
    grid = et.schedule("uniform", steps=3, model=et.gemma.model(network))
    try:
        with et.gemma.sampling(network, grid, temperature=0.7, self_conditioning=how):
            out = network.generate(context, max_new_tokens=16, max_denoising_steps=3)
    finally:
        del network.forward
    assert out.sequences.shape == (4, 37)
    assert calls == {"off": [False] * 6, "once": [False, True] * 6, "previous": [False, True, True] * 2}[how]


def test_generate_with_a_clock_serves_any_number_of_steps(network, context):
    model = et.gemma.model(network)
    clock = et.measure(model, torch.zeros(4, 8, dtype=torch.long), cond=context, budget=32)
    with et.gemma.sampling(network, clock):
        for steps in (1, 4):
            out = network.generate(context, max_new_tokens=8, max_denoising_steps=steps)
            assert out.tokens_per_forward.tolist() == [8 / steps] * 4
    grid = et.schedule(clock, "ods", steps=4)
    with et.gemma.sampling(network, grid), pytest.raises(et.EigentimeError, match="made for 4 steps, not 5"):
        network.generate(context, max_new_tokens=8, max_denoising_steps=5)
    for settings, words in (({"temperature": 0.0}, "positive"), ({"self_conditioning": "no"}, "one of off")):
        with pytest.raises(et.EigentimeError, match=words), et.gemma.sampling(network, grid, **settings):
            pass


def test_a_folder_loads(network, context, canvas, tmp_path):
    network.save_pretrained(tmp_path / "gemma")
    model = et.load(str(tmp_path / "gemma"))
    torch.testing.assert_close(
        model(canvas, now(4), cond=context), et.gemma.model(network)(canvas, now(4), cond=context), atol=1e-5, rtol=1e-4
    )
    assert model.fingerprint != model.conditioned("once").fingerprint
    with pytest.raises(et.EigentimeError, match="canvases of 8 tokens"):
        et.load(str(tmp_path / "gemma"), length=16)
    half = et.load(str(tmp_path / "gemma"), dtype="bfloat16")
    assert half(canvas, now(4), cond=context).isfinite().all()


def test_measuring_a_large_vocabulary_holds_no_rows_times_levels_times_vocabulary(monkeypatch):
    """Nothing larger than one node's worth of a few rows, and the same numbers in any pieces."""
    size, length = 5_000, 16
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Embedding(size, 8), torch.nn.Linear(8, 8), torch.nn.Tanh())
    head = torch.nn.Linear(8, size)
    process = et.Process(et.Uniform(size), et.LogLinear(1e-8))
    model = et.wrap(trunk, process, length=length, time=None, head=head)
    data = torch.randint(0, size, (2, length))
    levels = 4
    whole = et.measure(model, data, budget=16)
    monkeypatch.setattr(chain, "LEVEL_ELEMENTS", 2 * size)
    monkeypatch.setattr(chain, "LAW_ELEMENTS", 2 * size * levels)
    monkeypatch.setattr(checks, "LOOKED_ELEMENTS", 2 * size)
    with Largest() as seen:
        pieces = et.measure(model, data, budget=16)
    assert len(whole.measured.nodes) == levels
    assert seen.numel <= 2 * size < length * levels * size / 10, seen.where
    for name in ("slope", "rates", "divergence", "cross", "poisson"):
        np.testing.assert_allclose(
            getattr(pieces.measured, name), getattr(whole.measured, name), rtol=1e-5, atol=1e-9, err_msg=name
        )


def test_missing_and_untested_versions_get_a_sentence(network, tmp_path, monkeypatch):
    network.save_pretrained(tmp_path / "gemma")
    monkeypatch.setattr(packages, "version", lambda name: "6.1")
    for get in (lambda: et.gemma.model(network), lambda: et.load(str(tmp_path / "gemma"))):
        with pytest.warns(UserWarning, match=r"transformers 6.1 has not been tried; versions from 5.22 to below 5.23"):
            get()
    monkeypatch.setitem(sys.modules, "transformers", None)
    for get in (lambda: et.gemma.model(network), lambda: et.load(str(tmp_path / "gemma"))):
        with pytest.raises(et.EigentimeError, match=r"needs transformers: pip install 'eigentime\[hub\]'"):
            get()
