"""dllm, dInfer, Diffulex and Fast-dLLM: their loops follow a plan through the interfaces that they publish."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
import published
from eigentime.engines import diffulex, dinfer, dllm, fast_dllm, tested
from eigentime.engines.reveals import reveals
from eigentime.orders import make_order
from laws import law_of_steps, p_value
from worlds import random_table

MASK, BLOCK, ROWS = 3, 4, 800
PLAN = et.Plan((1, 1, 2), make_order([2, 0, 3, 1]), BLOCK)
STEPS = [1, 2, 0, 2]
"""At which evaluation PLAN reveals each place."""
PROCESS = et.Process(et.Absorbing(MASK + 1), et.LogLinear())
needs_checkouts = pytest.mark.skipif(
    published.CHECKOUTS is None, reason="$EIGENTIME_ENGINES names no folder with checkouts of the engines"
)


@pytest.fixture(scope="module")
def world():
    return random_table(MASK, BLOCK)


@pytest.fixture(scope="module")
def law(world):
    return law_of_steps(world.law.numpy().reshape((MASK,) * BLOCK), STEPS)


def network(world):
    """Logits of independent blocks, each with the law of the world."""

    def logits(x):
        blocks = x.reshape(-1, BLOCK)
        found = world(blocks, torch.full((len(blocks),), 0.5, dtype=torch.float64)).float()
        found = torch.where((blocks == MASK)[..., None], found, 77.0)  # of known tokens, which nobody may read
        return found.reshape(*x.shape, -1)

    return logits


def masked(*shape):
    return torch.full(shape, MASK)


# dllm


@pytest.fixture(params=["published", pytest.param("checkout", marks=needs_checkouts)])
def dllm_counts(request):
    """Tokens per step as dllm computes them: (scheduler, masks, steps) → list."""
    dllm.scheduler_class.cache_clear()
    if request.param == "published":
        with published.modules(
            dllm={}, dllm__core={}, dllm__core__schedulers={"BaseAlphaScheduler": published.BaseAlphaScheduler}
        ):
            yield published.dllm_counts
    else:
        with published.dllm_files():
            own = import_module("dllm.core.samplers.utils").get_num_transfer_tokens
            yield lambda scheduler, masks, steps: own(torch.ones(1, masks).bool(), steps, scheduler)[0].tolist()
    dllm.scheduler_class.cache_clear()


def test_dllm_takes_a_schedule_as_a_curve_through_its_points(dllm_counts):
    grid = et.schedule("cosine", steps=8, process=PROCESS)
    scheduler = dllm.scheduler(grid)
    hoped = np.append(grid.alphas[:-1], 1.0)
    for k, alpha in enumerate(hoped):
        assert scheduler.alpha(1 - k / 8) == pytest.approx(alpha, abs=1e-6)
    middle = scheduler.alpha(torch.tensor([1 - 2.5 / 8]))
    assert middle.item() == pytest.approx((hoped[2] + hoped[3]) / 2, abs=1e-6)
    slope = scheduler.alpha_derivative(1 - 2.5 / 8)
    assert slope == pytest.approx(-(hoped[3] - hoped[2]) * 8, abs=1e-5)


def test_dllm_reveals_the_plans_counts(dllm_counts):
    plan = et.Plan((1, 2, 5, 8, 16), make_order("random"), 32)
    assert dllm_counts(dllm.scheduler(plan), 32, 5) == [1, 2, 5, 8, 16]


def test_dllm_reveals_a_schedules_counts_whatever_they_are(dllm_counts):
    @settings(max_examples=60, deadline=None)
    @given(st.sets(st.integers(1, 999), max_size=12), st.integers(1, 300))
    def check(inner, length):
        times = [1.0, *sorted((n / 1000 for n in inner), reverse=True), 0.0]
        grid = et.Schedule.from_times(times, PROCESS)
        counts = [count for count in grid.counts(length).tolist() if count]
        assert dllm_counts(dllm.scheduler(grid, block_size=length), length, grid.steps) == counts

    check()


def test_dllm_finds_the_scheduler_by_name(dllm_counts):
    made = dllm.scheduler(PLAN)
    own = type(made)((0.0, 0.25, 1.0))
    assert type(made).__name__ == "EigentimeAlphaScheduler" and own.alpha(0.5) == 0.25


def test_a_missing_engine_gets_a_sentence():
    dllm.scheduler_class.cache_clear()
    for call in (lambda: dllm.scheduler(PLAN), lambda: diffulex.follow(PLAN, "llada")):
        with pytest.raises(et.EigentimeError, match=r"is not installed; get it from github.com/"):
            call()


def test_untested_versions_get_a_warning(monkeypatch):
    monkeypatch.setattr(tested.metadata, "version", lambda package: "7.0")
    with pytest.warns(UserWarning, match=r"dinfer 7\.0 is installed; eigentime was tested with 0\.1\."):
        dinfer.Decoder(PLAN, MASK, eos_id=0)


def test_only_plans_and_schedules_are_followed():
    with pytest.raises(et.EigentimeError, match="follows a plan or a schedule, not list"):
        reveals([1, 2, 3])


# dInfer


@pytest.mark.parametrize("dropping", [True, False])
def test_dinfer_draws_from_the_plans_law(world, law, dropping):
    x = masked(ROWS // 2, 2 * BLOCK)
    published.dinfer_generate(network(world), dinfer.Decoder(PLAN, MASK, eos_id=-1), x, BLOCK, dropping)
    assert p_value(x.reshape(-1, BLOCK), law) > 1e-3
    assert p_value(x.reshape(-1, BLOCK), world.law.numpy().reshape(law.shape)) < 1e-6


def test_dinfer_keeps_counts_and_places_with_prompts_of_different_lengths(world):
    seen, x = [], torch.tensor([[MASK] * 4, [0, 1, MASK, MASK], [2, 2, 2, 2]])
    logits = network(world)

    def watched(part):
        seen.append((len(part), (part == MASK).sum(1).tolist()))
        return logits(part)

    decoder = dinfer.Decoder(PLAN, MASK, eos_id=-1, temperature=0.0)
    published.dinfer_generate(watched, decoder, x, BLOCK)
    assert seen == [(2, [4, 2]), (2, [3, 1]), (1, [2]), (1, [0])]  # complete rows are dropped after two evaluations
    assert x[1, :2].tolist() == [0, 1] and x[2].tolist() == [2, 2, 2, 2] and not (x == MASK).any()
    assert decoder.temperature == 0.0


def test_dinfer_says_when_a_block_was_not_opened(world):
    decoder = dinfer.Decoder(PLAN, MASK, eos_id=-1)
    with pytest.raises(et.EigentimeError, match="call block_init for every block"):
        decoder.decode(torch.zeros(1, BLOCK, 4), 0, BLOCK, masked(1, BLOCK))
    decoder.block_init(masked(1, BLOCK), 0)
    with pytest.raises(et.EigentimeError, match="call block_init for every block"):
        decoder.decode(torch.zeros(1, BLOCK, 4), 0, BLOCK, torch.tensor([[MASK, 0, MASK, MASK]]))


@needs_checkouts
def test_dinfers_own_loop_follows_the_plan(world, law):
    with published.dinfer_files():
        loops = import_module("dinfer.decoding.generate_uniform")
        factory = import_module("dinfer.decoding.utils").BlockIteratorFactory()
        logits, found = network(world), []

        def model(x):
            return SimpleNamespace(logits=logits(x))

        model.device = torch.device("cpu")
        for rows in (1, 200):
            decoder = dinfer.Decoder(PLAN, MASK, eos_id=-1)
            engine = loops.BlockWiseDiffusionLLM(model, decoder, factory, early_stop=False, maximum_unroll=1)
            prompt = torch.zeros(rows, BLOCK, dtype=torch.long)
            tokens = engine.generate(prompt, gen_length=2 * BLOCK, block_length=BLOCK)
            assert engine.num_forwards == 2 * PLAN.evaluations
            found.append(tokens[:, BLOCK:].reshape(-1, BLOCK))
        assert p_value(torch.cat(found), law) > 1e-3


# Diffulex


@pytest.fixture
def registry():
    published.AutoSampler.SAMPLER_MAPPING = {"llada": (published.DiffulexSampler, True), "old": (lambda: None, False)}
    with published.modules(
        diffulex={}, diffulex__sampler={}, diffulex__sampler__auto_sampler={"AutoSampler": published.AutoSampler}
    ):
        yield published.AutoSampler.SAMPLER_MAPPING


def test_diffulex_keeps_the_plans_places(registry, world, law):
    made = diffulex.follow(PLAN, "llada")
    assert registry["llada"] == (made, True)
    sampler, logits = made(), network(world)
    assert isinstance(sampler, published.DiffulexSampler)
    torch.manual_seed(0)
    waiting = [published.diffulex_request(i, [MASK] * (2 * BLOCK), BLOCK, MASK) for i in range(ROWS // 4)]
    for step in range(2 * PLAN.evaluations):  # the second block waits until the first is complete
        sampler(waiting, logits)
        for request in waiting:
            known = [token != MASK for token in request.token_ids]
            assert known == [at <= step for at in STEPS] + [at + 3 <= step for at in STEPS]
    assert p_value(torch.tensor([request.token_ids for request in waiting]).reshape(-1, BLOCK), law) > 1e-3


def test_diffulex_forgets_what_is_done_and_what_was_left(registry, monkeypatch):
    monkeypatch.setattr(diffulex, "REMEMBERED", 5)
    kept = diffulex.BlockWalks(reveals(PLAN), 0)
    for name in range(20):
        (block,) = published.diffulex_request(name, [MASK] * BLOCK, BLOCK, MASK).dllm_blocks
        assert kept.accepted(block).tolist() == [2]  # and then it is aborted
    assert len(kept.walks) == 5
    request = published.diffulex_request("x", [MASK, 0, MASK, 1], BLOCK, MASK)
    (block,) = request.dllm_blocks
    while not block.is_complete:
        for index in kept.accepted(block).tolist():
            request.token_ids[block.mask_token_relative_ids[index]] = 1
    assert request.token_ids == [1, 0, 1, 1] and ("x", 0) not in kept.walks


def test_diffulex_without_the_interface_is_refused(registry):
    with pytest.raises(et.EigentimeError, match=r"no sampler for 'dream'; known are llada, old"):
        diffulex.follow(PLAN, "dream")
    with pytest.raises(et.EigentimeError, match="take a newer Diffulex"):
        diffulex.follow(PLAN, "old")()
    registry["edits"] = (type("Edits", (published.DiffulexSampler,), {"_build_block_writes_map": None}), False)
    with pytest.raises(et.EigentimeError, match='sampling_mode="naive"'):
        diffulex.follow(PLAN, "edits")


@needs_checkouts
@pytest.mark.parametrize("name", ["llada", "llada2", "dream"])
def test_diffulexs_own_samplers_follow_the_plan(world, law, name):
    """Its samplers as they are, with its own blocks, the model's own configuration or none, and rows that speak of the
    next token where the family's do."""
    rows = 100
    logits, length = network(world), 2 * BLOCK
    with published.diffulex_files([length] * rows) as registry:
        theirs = registry.SAMPLER_MAPPING[name][0]
        diffulex.follow(PLAN, name)
        config = SimpleNamespace(model_name=name, sampling_mode="naive", hf_config=None)
        sampler = registry.from_config(config)
        assert type(sampler).__module__ == theirs.__module__ and len(list(sampler.parameters())) == 0
        found = []
        for turn in range(8):
            torch.manual_seed(turn)
            waiting = [
                published.diffulex_own_request(i + rows * turn, [MASK] * length, BLOCK, MASK) for i in range(rows)
            ]
            for step in range(2 * PLAN.evaluations):
                answers = logits(torch.tensor([request.token_ids for request in waiting]))
                if name == "dream":  # row i speaks of token i + 1
                    answers = answers.roll(-1, 1)
                written = sampler(waiting, answers.flatten(0, 1).float(), torch.ones(rows))
                for request in waiting:
                    _write(request, written)
                    known = [token != MASK for token in request.token_ids]
                    assert known == [at <= step for at in STEPS] + [at + 3 <= step for at in STEPS]
            found += [request.token_ids for request in waiting]
        assert p_value(torch.tensor(found).reshape(-1, BLOCK), law) > 1e-3


def _write(request, written):
    """As Diffulex' scheduler does it."""
    name = str(request.req_id)
    for number, places in written.true_local_ids_map[name].items():
        accepted, tokens = (each[name][number] for each in (written.accepted_ids_map, written.sampled_tokens_map))
        for place, index in zip(places, accepted, strict=True):
            request.dllm_blocks[int(number)].write_token(int(tokens[index]), place)


# Fast-dLLM


@pytest.mark.parametrize("window", ["all", "rest", "block"])
def test_fast_dllm_draws_from_the_plans_law(world, law, window):
    x = torch.cat([torch.ones(ROWS // 2, BLOCK, dtype=torch.long), masked(ROWS // 2, 2 * BLOCK)], 1)
    with fast_dllm.follow(PLAN, published.FAST_DLLM, seed=3):
        forwards = published.fast_dllm_generate(network(world), x, BLOCK, BLOCK, PLAN.evaluations, MASK, window)
    assert forwards == 2 * PLAN.evaluations
    assert (x[:, :BLOCK] == 1).all()
    assert p_value(x[:, BLOCK:].reshape(-1, BLOCK), law) > 1e-3
    assert published.FAST_DLLM.get_transfer_index is None  # as before


def test_fast_dllm_keeps_counts_and_places(world):
    transfer = fast_dllm.Transfer(PLAN)
    rows = torch.tensor([[MASK] * 4, [0, MASK, MASK, 0]])
    counts = transfer.get_num_transfer_tokens(rows == MASK, 3)
    assert counts.tolist() == [[1, 1, 2, 0], [1, 1, 0, 0]]
    for step, places in enumerate(([2], [0], [1, 3], [])):
        tokens, chosen = transfer.get_transfer_index(
            network(world)(rows), 0.0, "random", rows == MASK, rows, counts[:, step]
        )
        assert chosen[0].nonzero().squeeze(1).tolist() == places
        assert chosen.sum(1).tolist() == counts[:, step].tolist()
        assert torch.equal(tokens[~chosen], rows[~chosen])
        rows = torch.where(chosen, tokens, rows)
    assert not (rows == MASK).any()


def test_fast_dllm_says_what_does_not_fit(world):
    transfer, rows = fast_dllm.Transfer(PLAN), masked(1, BLOCK)
    with pytest.raises(et.EigentimeError, match="takes 3 evaluations per block, the loop 8"):
        transfer.get_num_transfer_tokens(rows == MASK, 8)
    counts = transfer.get_num_transfer_tokens(rows == MASK, 3)
    asked = (network(world)(rows), 1.0, "random", rows == MASK, rows)
    with pytest.raises(et.EigentimeError, match="leave threshold=None"):
        transfer.get_transfer_index(*asked, None, 0.9)
    with pytest.raises(et.EigentimeError, match=r"has \[3\] masks left in its rows, the plan \[4\]"):
        transfer.get_transfer_index(*asked[:3], torch.tensor([[True, True, True, False]]), rows, counts[:, 0])
    with pytest.raises(et.EigentimeError, match=r"give Fast-dLLM's module"), fast_dllm.follow(PLAN, torch):
        pass


@needs_checkouts
@pytest.mark.parametrize("loop", ["generate", "generate_with_prefix_cache", "generate_with_dual_cache"])
def test_fast_dllms_own_loops_follow_the_plan(world, law, loop):
    logits = network(world)

    class Model:
        device = torch.device("cpu")

        def __call__(self, x, **settings):
            return SimpleNamespace(logits=logits(x), past_key_values=[])

    found = []
    with published.fast_dllm_files() as module, fast_dllm.follow(PLAN, module):
        for _ in range(150):
            prompt = torch.zeros(1, BLOCK, dtype=torch.long)
            x, nfe = getattr(module, loop)(
                Model(), prompt, steps=6, gen_length=8, block_length=BLOCK, temperature=1.0, mask_id=MASK
            )
            assert nfe == 2 * PLAN.evaluations
            found.append(x[:, BLOCK:].reshape(-1, BLOCK))
    assert p_value(torch.cat(found), law) > 1e-3
