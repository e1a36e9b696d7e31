"""Blocks, prefixes and caches: language models as published, asked in every way in which blocks are generated."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.models.checkpoints.key_values import Kept
from eigentime.orders import make_order
from eigentime.samplers import Condition, run
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
    where = torch.arange(8).expand(4, 8) >= 4
    future = x.masked_fill(torch.arange(8) >= 6, MASK)
    for lengths in ((8, 5, 8, 6), (8, 6, 4, 8)):  # blocks begin at different places, or all at the same
        padded = x.masked_fill(torch.arange(8) < 8 - torch.tensor(lengths)[:, None], -1)
        rows = ask(model, padded, where).view(4, 4, -1)
        blocks = ask(et.Block(model, 4, 6), x[:, 4:6], cond=padded[:, :4])
        for row, length in enumerate(lengths):
            assert torch.allclose(rows[row], ask(model, x[row : row + 1, 8 - length :])[0, -4:], atol=1e-12)
            everywhere = ask(model, padded)[row, 8 - length :]
            assert torch.allclose(everywhere, ask(model, x[row : row + 1, 8 - length :])[0], atol=1e-12)
            alone = ask(model, future[row : row + 1, 8 - length :])[0, -4:-2]
            assert torch.allclose(blocks[row], alone, atol=1e-12)


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


def greedy(model, prompts, blocks, length=2):
    plan = et.Plan((1,) * length, make_order(range(length)), length)
    return et.generate_blocks(model, [plan] * blocks, prompts, temperature=0.0)[0]


@pytest.mark.parametrize("name", ["llada", "dream", "llada2", "sdar"])
def test_prompts_of_different_lengths_are_continued_as_each_alone(loaded, name):
    """Networks trained in blocks count them from the prompt's first token, so that the last one may be begun."""
    tokens = torch.randint(0, MASK, (5,), generator=torch.Generator().manual_seed(5)).tolist()
    prompts = [tokens, tokens[:2], tokens[1:4], tokens[:4], []]
    block = 2 if name in ("llada2", "sdar") else 1
    whole = [len(prompt) // block * block for prompt in prompts]
    found = greedy(loaded(name, length=max(whole) + 4), prompts, 2)
    for row, prompt, full in zip(found, prompts, whole, strict=True):
        alone = greedy(loaded(name, length=full + 4), [prompt], 2)[0]
        padding = max(whole) - full
        assert (row[:padding] == -1).all() and row[padding:].tolist() == alone.tolist()
        assert alone[: len(prompt)].tolist() == prompt and (alone != MASK).all()


ENDING = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.0, 0.0, 1.0]], dtype=torch.float64)


def ending_chain(length):
    """Three values of which the last one, 2, never goes away: the law of texts that end."""
    return et.MarkovChain(torch.tensor([0.5, 0.4, 0.1]), ENDING, length, et.Process(et.Absorbing(4), et.LogLinear()))


def test_after_a_known_end_nothing_is_open():
    """All states of four tokens, masked or not: `Ending` says without the network what the exact posterior says."""
    chain = ending_chain(4)
    x = torch.tensor([s for s in itertools.product(range(4), repeat=4) if chance(ENDING, s) > 0])
    t, where = torch.zeros(len(x), dtype=torch.float64), x == 3
    model = et.Ending(chain, 2)
    assert torch.allclose(model(x, t, where).exp(), chain(x, t, where).exp(), atol=1e-8)  # the chain allows 1e-9
    blind = et.wrap(lambda x: torch.zeros(*x.shape, 4), chain.process, length=4, time=None)
    rows, over = et.Ending(blind, 2)(x, t, where).exp(), model.over(x)[where]
    assert (rows[over] == torch.tensor([0.0, 0.0, 1.0, 0.0])).all() and torch.allclose(
        rows[~over, :3], torch.tensor(1 / 3)
    )
    late = et.Ending(blind, 2, start=2)  # end tokens of a prompt end nothing
    assert torch.equal(late.over(torch.tensor([[2, 0, 0, 0], [2, 0, 2, 0]])).any(1), torch.tensor([False, True]))
    assert et.Ending(blind, 2).cut(torch.tensor([[0, 2, 1, 3]])).tolist() == [[0, 2, 2, 2]]


def chance(step, state):
    """That data look like this where they are not masked (3)."""
    law = torch.tensor([0.5, 0.4, 0.1], dtype=torch.float64)
    for number, value in enumerate(state):
        law = law @ step if number else law
        law = law if value == 3 else law * (torch.arange(3) == value)
    return law.sum().item()


def test_prompts_are_refused_in_a_sentence(loaded):
    model, prompts = loaded("dream"), [[1, 2], [3]]
    grid = et.schedule("uniform", steps=1, model=model)
    for options, said in (
        ({"prompt": prompts, "guidance": 2.0}, "one length"),
        ({"prompt": [[1, MASK], [3]]}, "holds token 6"),
        ({"prompt": [[[1]], [[2], [3]]]}, "a list of tokens"),
        ({"prompt": prompts, "end": MASK}, "must be one of the values"),
        ({"prompt": torch.tensor([1, 2])}, r"the shape \(N, P\)"),
        ({"prompt": []}, "at least one prompt"),
        ({"prompt": [1, 2]}, "each a list of tokens"),
    ):
        with pytest.raises(et.EigentimeError, match=said):
            et.generate_blocks(model, [grid] * 2, **options)
    chain = ending_chain(4)
    with pytest.raises(et.EigentimeError, match="takes no padding"):
        et.generate_blocks(chain, [et.schedule("uniform", steps=1, model=chain)] * 2, [[1, 0], [1]])
    with pytest.raises(et.EigentimeError, match="predicts posteriors"):
        et.Ending(random_table(3, 4, "uniform"), 1)


def test_the_law_of_texts_that_end_sums_to_one():
    """One token at a time from the left no token is drawn after the end. Elsewhere some are, before it is known: then
    texts whose ends are full of end tokens are not all that is drawn."""
    blind = et.wrap(lambda x: torch.randn(4, 4, generator=torch.Generator().manual_seed(0))[x], ending_chain(3).process,
                    length=3, time=None)  # fmt: skip
    model, x = et.Ending(blind, 2), torch.tensor(list(itertools.product(range(3), repeat=3)))
    canonical = model.cut(x).unique(dim=0)
    left, right = (et.Plan((1, 1, 1), make_order(order), 3) for order in (range(3), [2, 1, 0]))
    cost = et.nll(blind, canonical, planned=left, end=2)
    assert np.exp(-cost.nats.values).sum() == pytest.approx(1.0, abs=1e-5) and not cost.exact
    assert np.exp(-et.nll(blind, canonical, planned=right, end=2).nats.values).sum() < 0.99
    for sampler, planned in (("ancestral", right), (et.Klass(0.4, 0.5, 1), None)):
        _, info = run(model, planned, len(x), sampler=sampler, condition=Condition(teacher=x))
        assert info.record.logs.sum(1).exp().sum().item() == pytest.approx(1.0, abs=1e-5)  # whatever follows the end
    ends_at = (canonical == 2).long().argmax(1) + 1
    spent = torch.where((canonical == 2).any(1), ends_at, 3).double()
    assert cost.taught.mean == pytest.approx(spent.mean().item())
    again = et.nll(blind, x, planned=left, end=2)  # whatever stands after the end
    number = [canonical.tolist().index(row) for row in model.cut(x).tolist()]
    assert again.nats.values == pytest.approx(cost.nats.values[number])


def test_what_is_drawn_block_by_block_ends(loaded):
    chain, prompt = ending_chain(8), torch.tensor([[0, 2], [1, 0], [2, 1]]).repeat(40, 1)
    grid = et.schedule("uniform", steps=1, model=chain)
    free = et.wrap(lambda x: torch.zeros(*x.shape, 4), chain.process, length=8, time=None)
    tokens, nfe = et.generate_blocks(free, [grid] * 6, prompt, end=2, seed=3)
    answers = tokens[:, 2:]
    first = torch.where((answers == 2).any(1), (answers == 2).long().argmax(1), 5)
    assert (answers == 2).any(1).double().mean() > 0.5 and torch.equal(tokens[:, :2], prompt)
    assert torch.equal(answers == 2, (torch.arange(6) >= first[:, None]) & (answers == 2).any(1, keepdim=True))
    assert nfe == pytest.approx((first + 1).double().mean().item())  # one evaluation for each token up to the end
    cost = et.nll(free, tokens, planned=grid, fixed=torch.arange(8) < 2, block_length=1, end=2, references=1)
    assert cost.nats.values == pytest.approx((first + 1).double().numpy() * np.log(3), abs=1e-5)
    assert cost.taught.mean == pytest.approx(nfe)


def test_costs_of_padded_prompts_are_those_of_each_alone(loaded):
    x = torch.randint(0, MASK, (2, 8), generator=torch.Generator().manual_seed(6))
    padded, fixed = x.clone(), torch.arange(8).expand(2, 8) < 4
    padded[0, :2] = -1
    grid = et.schedule("uniform", steps=2, model=loaded("sdar"))
    cost = et.nll(loaded("sdar"), padded, "confidence", grid, fixed=fixed, block_length=2, references=1)
    for number, skipped in enumerate((2, 0)):
        model = loaded("sdar", length=8 - skipped)
        alone = et.nll(model, x[number : number + 1, skipped:], "confidence", grid,
                       fixed=fixed[:1, skipped:], block_length=2, references=1)  # fmt: skip
        assert cost.nats.values[number] == pytest.approx(alone.nats.values[0], abs=1e-9)


def copies(*places):
    """Six coins, of which some are copies of others: (copy, original), …"""
    law = np.zeros((2,) * 6)
    for coins in itertools.product(range(2), repeat=6):
        law[coins] = all(coins[copy] == coins[original] for copy, original in places)
    return et.Table(law / law.sum(), et.Process(et.Absorbing(3), et.LogLinear()))


@pytest.mark.parametrize(("places", "extra"), [(((2, 1), (5, 4)), 0.0), (((2, 1), (4, 3)), np.log(2))])
def test_one_measurement_says_whether_one_plan_serves_all_blocks(places, extra):
    """Two blocks of three coins; a plan of two steps is exact where a coin and its copy are in different ones."""
    model = copies(*places)
    clocks = et.measure_blocks(model, model.draw(16, 0), block_length=3, orders=["raster"], budget=64)
    first, second = clocks.plans(2)
    assert clocks.starts == (0, 3) and first.counts == (2, 1) and first.order.name == "raster"
    assert second.counts == ((2, 1) if extra == 0 else (1, 2))
    shared = clocks.sharing(2)
    assert shared.extra[0].mean == pytest.approx(extra, abs=1e-6) and shared.serves == (extra == 0)
    said = "serves all 2 blocks" if extra == 0 else r"does not serve all blocks: in block 2 it costs 0.693 nats more"
    assert re.search(said, str(shared))
    assert clocks.sharing(2, "ods").extra[0].mean == pytest.approx(0.0, abs=0.1)  # places play no part


def test_blocks_are_measured_on_the_texts_that_reach_them():
    chain = ending_chain(6)
    data = chain.draw(200, 0)
    clocks = et.measure_blocks(chain, data, block_length=2, end=2, orders=["farthest"], budget=32)
    alive = [1.0, *((data[:, :start] != 2).all(1).double().mean().item() for start in (2, 4))]
    assert clocks.reached == pytest.approx(alive)
    # what the first block has learned of places is measured in the others as it is; one step knows no places
    assert [len(clock.orders) for clock in clocks.clocks] == [2, 3, 3]
    assert clocks.sharing(1).serves and [each.mean for each in clocks.sharing(1).extra] == pytest.approx([0.0, 0.0])
    with pytest.raises(et.EigentimeError, match="do not split"):
        et.measure_blocks(chain, data, block_length=4)
    with pytest.raises(et.EigentimeError, match="nothing can be measured"):
        et.measure_blocks(chain, data, block_length=2, fixed=torch.ones(6, dtype=torch.bool))


PAGE = (Path(__file__).parent.parent / "docs" / "blocks.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
PUBLISHED = {
    "GSAI-ML/LLaDA-8B-Instruct": "llada",
    "Dream-org/Dream-v0-Instruct-7B": "dream",
    "inclusionAI/LLaDA2.0-mini": "llada2",
    "JetLM/SDAR-1.7B-Chat": "sdar",
    "LLaDA-with-Fast-dLLM": "fast-llada",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=PUBLISHED)
def test_the_page_runs_as_it_stands(example, tmp_path, monkeypatch):
    """With folders in which small networks stand for the published ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    name = re.search(r'et.load\("(.*?)"', example)[1]
    lookalike(tmp_path / name, PUBLISHED[name], eos_token_id=5)
    np.save("texts.npy", np.random.default_rng(0).integers(0, MASK, (32, 32)))
    said = {}
    exec(compile(example, "blocks.md", "exec"), said)
    assert len(example.strip().splitlines()) <= 10
    if "tokens" in said:
        tokens, end = said["tokens"], said.get("end", 5)
        assert tokens.shape[1] == 32 and said["nfe"] > 0 and (tokens < MASK).all()
        if "end=" in example:
            answers = tokens[:, 16:].tolist()
            assert all(set(row[row.index(end) :]) == {end} for row in answers if end in row)
