"""Blocks, prefixes and caches: language models as published, asked in every way in which blocks are generated."""

import itertools

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.models.checkpoints.key_values import Kept
from lookalikes import MASK, lookalike
from worlds import random_table

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Look-alikes by name, computing in double precision; blocks of two tokens where there are some."""
    folder, models = tmp_path_factory.mktemp("models"), {}

    def get(name, length=8, **config):
        key = (name, length, *sorted(config.items()))
        if key not in models:
            place = folder / str(len(models)) / name
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HF_MODULES_CACHE", str(folder / "modules"))
                source = lookalike(place, name, **{"block_size": 2, **config})
                models[key] = et.load(source, length=length, trust_remote_code=True)
            models[key].cast(torch.float64)
        return models[key]

    return get


def sequences(count, length, seed=0, masked=0.4):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randint(0, MASK, (count, length), generator=draw)
    return x.masked_fill(torch.rand(count, length, generator=draw) < masked, MASK)


def ask(model, x, where=None, cond=None):
    return model(x, torch.zeros(len(x), dtype=torch.float64), where, cond)


def everywhere(x):
    return torch.ones_like(x, dtype=torch.bool)


def direct(model, x, mask=None, **told):
    """Log-posteriors of the network asked by hand."""
    if mask is not None:
        told |= {"attention_mask": mask, "position_ids": torch.arange(x.shape[1])[None]}
    with torch.no_grad():
        rows = model.network(input_ids=x, **told).logits
        rows = rows if rows.shape[-1] == MASK + 1 else model.projection(rows)
    if model.family.shifted:
        rows = torch.cat([rows[:, :1], rows[:, :-1]], 1)
    rows[..., MASK] = -torch.inf
    return rows.log_softmax(-1)


def block_causal(length, block, additive):
    sees = torch.tensor([[j // block <= i // block for j in range(length)] for i in range(length)])[None, None]
    return torch.where(sees, 0.0, -torch.inf).double() if additive else sees


@pytest.mark.parametrize(("name", "splits"), [("llada2", True), ("sdar", True), ("sdar", False)])
def test_blocks_do_not_see_later_ones_and_earlier_ones_are_computed_once(loaded, name, splits):
    model = loaded(name, splits=splits)
    x = sequences(3, 8)
    x[:, :4] = x[:, :4].masked_fill(x[:, :4] == MASK, 1)  # finished
    expected = direct(model, x, block_causal(8, 2, name == "llada2"))
    assert torch.allclose(ask(model, x, everywhere(x)).view(3, 8, -1), expected, atol=1e-12)
    changed = x.clone()
    changed[:, 6:] = 0
    assert torch.allclose(ask(model, changed)[:, :6], expected[:, :6], atol=1e-12)
    mask, assumed, finished = block_causal(8, 2, name == "llada2"), x[:, :6].clone(), x[:, :6].clamp(max=2)
    assumed[:, 4:] = assumed[:, 4:].clamp(max=3)
    expected_then = direct(model, torch.cat([assumed, x[:, 6:]], 1), mask)
    expected_later = direct(model, torch.cat([finished, x[:, 6:]], 1), mask)
    assert model.taking is not None
    computed = []
    hook = model.network.register_forward_pre_hook(
        lambda _, __, told: computed.append(tuple(told["input_ids"].shape)), with_kwargs=True
    )
    try:
        block, later = et.Block(model, 4, 6), et.Block(model, 6, 8)
        assert torch.allclose(ask(block, x[:, 4:6], cond=x[:, :4]), expected[:, 4:6], atol=1e-12)
        assert torch.allclose(ask(block, assumed[:, 4:], cond=x[:, :4]), expected_then[:, 4:6], atol=1e-12)
        assert torch.allclose(ask(block, x[1:2, 4:6], cond=x[1:2, :4]), expected[1:2, 4:6], atol=1e-12)
        assert computed == [(3, 4), (3, 2), (3, 2), (1, 2)]  # the prefix once, then the block alone, each time
        ask(block, finished[:, 4:], cond=finished[:, :4])
        computed.clear()
        assert torch.allclose(ask(later, x[:, 6:], cond=finished), expected_later[:, 6:], atol=1e-12)
        assert computed == [(3, 2), (3, 2)]  # of the next block's prefix only what is new
    finally:
        hook.remove()


def test_blocks_that_are_not_the_networks_own_are_exact_too(loaded):
    model = loaded("sdar")
    x = sequences(2, 8, seed=3)
    for start, stop in ((1, 4), (3, 8), (5, 6), (0, 3)):
        future = x.masked_fill(torch.arange(8) >= stop, MASK)
        expected = direct(model, future, block_causal(8, 2, False))
        rows = ask(et.Block(model, start, stop), x[:, start:stop], cond=x[:, :start])
        assert torch.allclose(rows, expected[:, start:stop], atol=1e-12)


PADDED = ("llada", "llada-mended", "fast-llada", "dream", "fast-dream", "llada2", "sdar")


@pytest.mark.parametrize("name", PADDED)
def test_a_batch_of_prompts_of_different_lengths_is_each_of_them_alone(loaded, name):
    model, x = loaded(name), sequences(4, 8, seed=1)
    assert model.pads == (name in ("llada-mended", "dream", "llada2", "sdar"))
    lengths = (8, 5, 8, 6)
    padded = x.clone()
    for row, length in zip(padded, lengths, strict=True):
        row[: 8 - length] = -1
    where = torch.arange(8).expand(4, 8) >= 4
    rows = ask(model, padded, where).view(4, 4, -1)
    for row, (tokens, length) in enumerate(zip(x, lengths, strict=True)):
        alone = ask(model, tokens[None, 8 - length :])[0, -4:]
        assert torch.allclose(rows[row], alone, atol=1e-12)
    blocks = ask(et.Block(model, 4, 6), x[:, 4:6], cond=padded[:, :4])
    future = torch.cat([padded[:, :6], torch.full((4, 2), MASK)], 1)
    assert torch.allclose(blocks, ask(model, future, where)[:].view(4, 4, -1)[:, :2], atol=1e-12)


def test_padding_stands_at_the_beginning(loaded):
    model, x = loaded("dream"), sequences(2, 8)
    x[0, 3] = -1
    with pytest.raises(et.EigentimeError, match="before a prompt"):
        ask(model, x, everywhere(x))


def fast_loop(model, x, start, stop, kind):
    """Log-posteriors of a block as Fast-dLLM's loop finds them: its calls, made by hand."""
    begin, network = x.clone(), model.network
    begin[:, start:] = MASK
    shift = int(model.family.shifted)
    with torch.no_grad():
        past = network(input_ids=begin, use_cache=True).past_key_values
        if kind == "prefix":
            past = [tuple(part[..., : start - shift, :] for part in layer) for layer in past]
            rows = network(input_ids=x[:, start - shift :], past_key_values=past, use_cache=True).logits
        else:
            place = torch.zeros_like(x[:1], dtype=torch.bool)
            place[:, start - shift : stop] = True
            dual = {"dual_cache": True} if shift else {}
            window = x[:, start - shift : stop]
            rows = network(
                input_ids=window, past_key_values=past, use_cache=True, replace_position=place, **dual
            ).logits
        rows = model.projection(rows)[:, : stop - start]  # with a shift the first row speaks of the block's first token
    rows[..., MASK] = -torch.inf
    return rows.log_softmax(-1)


@pytest.mark.parametrize("kind", ["prefix", "dual"])
@pytest.mark.parametrize("name", ["fast-llada", "fast-dream"])
def test_approximate_caches_are_fast_dllms(loaded, name, kind):
    model, x = loaded(name), sequences(3, 8, seed=2)
    x[:, :3] = x[:, :3].masked_fill(x[:, :3] == MASK, 1)
    x[:, 6:] = MASK
    block = et.Block(model.cached(kind), 3, 6)
    found = ask(block, x[:, 3:6], cond=x[:, :3])
    assert torch.allclose(found, fast_loop(model, x, 3, 6, kind), atol=1e-12)
    exact = ask(et.Block(model, 3, 6), x[:, 3:6], cond=x[:, :3])
    assert not torch.allclose(found, exact, atol=1e-4)
    masked = torch.full((3, 3), MASK)  # nothing of the block is known: nothing is stale
    exact = ask(et.Block(model, 3, 6), masked, cond=x[:, :3])
    assert torch.allclose(ask(block, masked, cond=x[:, :3]), exact, atol=1e-12)


@pytest.mark.parametrize("kind", ["prefix", "dual"])
def test_caches_of_transformers_own_kind_do_the_same(loaded, kind):
    ours, theirs = loaded("dream").cached(kind), loaded("fast-dream").cached(kind)
    x = sequences(3, 8, seed=4)
    rows = [ask(et.Block(model, 3, 6), x[:, 3:6], cond=x[:, :3].clamp(max=5)) for model in (ours, theirs)]
    assert torch.allclose(*rows, atol=1e-12)


AFTER_ONE = torch.tensor(list(itertools.product([3], *[range(MASK)] * 3)))
"""All sequences of four tokens that begin with this one, which is given."""


@pytest.mark.parametrize("kind", [None, "prefix", "dual"])
@pytest.mark.parametrize("sampler", ["confidence", et.EntropyBounded(0.3)])
def test_what_a_cache_changes_is_certified_with_it(loaded, kind, sampler):
    """All sequences: the law of what is sampled through the cache sums to one, and knows of the cache."""
    plain = loaded("fast-dream", length=4)
    model = plain if kind is None else plain.cached(kind)
    grid = et.schedule("uniform", steps=2, model=model) if sampler == "confidence" else None
    settings = {"block_length": 2, "fixed": torch.arange(4) < 1, "references": 1, "batch_size": 256}
    cost = et.nll(model, AFTER_ONE, sampler, grid, **settings)
    assert cost.exact and np.exp(-cost.nats.values).sum() == pytest.approx(1.0, abs=1e-9)
    if kind is not None:
        other = et.nll(plain, AFTER_ONE, sampler, grid, **settings)
        assert np.abs(cost.nats.values - other.nats.values).max() > 1e-4
        prompt = AFTER_ONE[::9, :2]
        drawn = et.sample(et.Block(model, 2, 4), grid, len(prompt), sampler=sampler, cond=prompt)
        taught = et.nll(et.Block(model, 2, 4), drawn, sampler, grid, cond=prompt, references=1)
        assert np.allclose(drawn.log_q, -taught.nats.values, atol=1e-9)


def test_caches_are_refused_in_a_sentence(loaded):
    with pytest.raises(et.EigentimeError, match="Fast-dLLM"):
        loaded("llada").cached("prefix")
    with pytest.raises(et.EigentimeError, match="exact and always used"):
        loaded("sdar").cached("dual")
    with pytest.raises(et.EigentimeError, match="prefix and dual"):
        loaded("dream").cached("both")
    with pytest.raises(et.EigentimeError, match="no keys and values"):
        random_table(3, 4).cached("prefix")


def test_what_is_kept_stays_within_bounds_and_is_never_taken_for_another():
    kept = Kept(most=2 * 2 * 4 * 8)  # two sequences of four tokens, keys and values of one number each
    x = torch.arange(12).view(3, 4)
    layers = [(x[..., None].double(), -x[..., None].double())]
    kept.put("here", x, layers)
    assert kept.get("here", x)[1] == [2] and kept.get("there", x)[1] == [0, 1, 2]
    found, _ = kept.get("here", x[[1, 0]])
    assert torch.equal(found[0][0].squeeze(-1), x[[1, 0]].double())
    for place in ("there", "everywhere"):  # only the last place and the one before it stay
        kept.put(place, x[:1], [(keys[:1], values[:1]) for keys, values in layers])
    assert kept.places == ["there", "everywhere"] and kept.bytes == 2 * 2 * 4 * 8
    kept.put("everywhere", x, layers)  # what is needed now goes before what was needed then
    assert kept.places == ["everywhere"] and kept.get("everywhere", x)[1] == [2]


def test_block_lengths_are_the_users_the_configurations_or_the_familys(loaded, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    assert loaded("llada2", block_size=None).block == 32 and loaded("sdar", block_size=None).block == 4
    source = lookalike(tmp_path / "sdar", "sdar", block_length=8)
    assert et.load(source, length=8, trust_remote_code=True).block == 8
    assert et.load(source, length=8, block_length=2, trust_remote_code=True).block == 2
    for name, source in (("llada", lookalike(tmp_path / "llada", "llada")), ("a network", "countdown")):
        with pytest.raises(et.EigentimeError, match="block_length"):
            et.load(source, block_length=2, trust_remote_code=name == "llada", length=8 if name == "llada" else None)
