"""Schedulers for diffusers: the laws of our own samplers, inside the real pipelines."""

import inspect
import subprocess
import sys
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, chisquare

import eigentime as et
from eigentime import packages
from eigentime.engines.examples import numbers, tiny_diffusion_gemma
from eigentime.orders import make_order
from eigentime.process.randomness import Purpose, uniforms

diffusers = pytest.importorskip("diffusers")
SIZE, LENGTH, MANY = 3, 2, 8_000
STATES = torch.tensor(list(product(range(SIZE), repeat=LENGTH)))


@pytest.fixture(scope="module")
def pair():
    """Two dependent tokens of three values under the uniform kernel."""
    law = np.random.default_rng(1).dirichlet(np.full(SIZE**LENGTH, 0.4)).reshape([SIZE] * LENGTH)
    return et.Table(law, et.Process(et.Uniform(SIZE), et.LogLinear(0.05)))


@pytest.fixture(scope="module")
def clock(pair):
    return et.measure(pair, budget=256)


@pytest.fixture(scope="module")
def masked_model():
    """Four dependent tokens of three values, and a mask."""
    law = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]])
    process = et.Process(et.Absorbing(4), et.LogLinear())
    return et.MarkovChain(torch.tensor([0.5, 0.3, 0.2]), law, 4, process)


@pytest.fixture(scope="module")
def masked_clock(masked_model):
    return et.measure(masked_model, budget=512, orders=["raster", "low-discrepancy"])


def logits(model, x, alpha):
    """What a network would return: here the exact posterior where so many tokens are kept."""
    t = model.process.noise.time_of_alpha(alpha).expand(len(x))
    return model(x, t)


def frequencies(x):
    places = (x * SIZE ** torch.arange(x.shape[1] - 1, -1, -1)).sum(1)
    return torch.bincount(places, minlength=SIZE ** x.shape[1]).numpy()


def walked(model, scheduler, count, generator):
    """A plain loop with the scheduler's own steps."""
    x = torch.randint(0, SIZE, (count, LENGTH), generator=generator)
    for k, alpha in enumerate(scheduler.alphas[:-1]):
        x = scheduler.step(logits(model, x, alpha), k, x, generator=generator).prev_sample
    return x


def sampler_law(model, grid):
    """The law of ancestral samples, by enumeration."""
    law = np.full(len(STATES), 1 / len(STATES))
    kernel = model.process.kernel
    for alpha_t, alpha_s in pairwise(torch.tensor(grid, dtype=torch.float64)):
        posterior = logits(model, STATES, alpha_t).exp()
        tokens = kernel.exact_law(posterior, STATES, alpha_t, alpha_s)
        step = torch.stack([tokens[:, i, STATES[:, i]] for i in range(LENGTH)]).prod(0)
        law = law @ step.numpy()
    return law


def test_importing_eigentime_imports_no_engine():
    program = (
        "import sys, eigentime as et; et.diffusers; et.gemma; "
        "assert not {'diffusers', 'transformers'} & sys.modules.keys(); "
        "assert not hasattr(et, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_walk_has_the_law_of_our_own_sampler(pair, clock):
    grid = et.schedule(clock, "ods", steps=3)
    scheduler = et.diffusers.scheduler(grid)
    found = frequencies(walked(pair, scheduler, MANY, torch.Generator().manual_seed(0)))
    expected = sampler_law(pair, scheduler.alphas)
    assert chisquare(found, expected * MANY).pvalue > 0.001
    ours = frequencies(et.sample(pair, grid, MANY, seed=1))
    assert chi2_contingency([found, ours]).pvalue > 0.001
    uniform = sampler_law(pair, np.linspace(0.05, 1, 4))
    assert chisquare(found, uniform * MANY).pvalue < 1e-6  # the test can tell grids apart


def test_on_their_grid_it_is_their_scheduler(pair):
    """α = k/K: the same posterior, the same law, and with the same random numbers the same corrector."""
    steps = 3
    theirs = diffusers.DiscreteDDIMScheduler(steps, corrector_steps=1)
    alphas = np.arange(steps + 1) / steps
    grid = et.Schedule(1 - alphas, alphas, et.LogLinear(), "theirs")
    ours = et.diffusers.scheduler(grid, masked=False, corrector_steps=1)
    assert [theirs._alpha(k) for k in range(steps + 1)] == ours.alphas
    for k in (1, 2):
        x = STATES.repeat(3000, 1)
        out = logits(pair, x, torch.tensor(alphas[k]))
        found = [
            s.step(out, k, x, temperature=1.0, generator=torch.Generator().manual_seed(k)).prev_sample
            for s in (ours, theirs)
        ]
        for state in range(len(STATES)):
            mine, other = (frequencies(x[state :: len(STATES)]) for x in found)
            seen = (mine + other) > 0
            if seen.sum() > 1:
                assert chi2_contingency([mine[seen], other[seen]]).pvalue > 1e-4
    x = STATES.repeat(50, 1)
    corrected = [
        s.step_correct(logits(pair, x, torch.tensor(alphas[1])), 0, x, generator=torch.Generator().manual_seed(5))
        for s in (ours, theirs)
    ]
    assert torch.equal(corrected[0].prev_sample, corrected[1].prev_sample)


def test_the_corrector_keeps_the_law_on_any_grid(pair, clock):
    """A leave-one-out sweep at random places leaves p_s as it is: exactly that of data noised to α_s."""
    scheduler = et.diffusers.scheduler(
        et.schedule(clock, "ods", steps=4), corrector_steps=1, corrector_selection="random"
    )
    alpha = torch.tensor(scheduler.alphas[2], dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    x0 = pair.draw(MANY, 4)
    x = pair.process.kernel.corrupt(x0, alpha, *torch.rand(2, *x0.shape, generator=generator, dtype=torch.float64))
    data = np.array([pair.draw(200_000, 0).eq(state).all(1).double().mean() for state in STATES])
    channel = pair.process.kernel.transition(alpha)
    joint = torch.stack([channel[STATES[:, i]][:, STATES[:, i]] for i in range(LENGTH)]).prod(0).numpy()
    after = scheduler.step_correct(logits(pair, x, alpha), 1, x, generator=generator).prev_sample
    assert (after != x).any()
    assert chisquare(frequencies(after), (data @ joint) * MANY).pvalue > 0.001


def test_temperature_and_generator_are_honoured(pair, clock):
    scheduler = et.diffusers.scheduler(et.schedule(clock, "ods", steps=2))
    x = STATES.repeat(20, 1)
    out = logits(pair, x, scheduler.alphas[1])
    greedy = scheduler.step(out, 1, x, temperature=0.0)
    assert torch.equal(greedy.prev_sample, out.argmax(-1))
    drawn = [scheduler.step(out, 1, x, generator=torch.Generator().manual_seed(s)).prev_sample for s in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    plain = scheduler.step(out, 1, x, return_dict=False)
    assert plain[3] is out and torch.equal(plain[0], plain[1])  # the last step goes to the data


def test_a_clock_serves_any_number_and_a_schedule_its_own(clock, tmp_path):
    scheduler = et.diffusers.scheduler(clock)
    for steps in (2, 5, 48):
        scheduler.set_timesteps(steps)
        expected = et.schedule(clock, "ods", steps=steps).alphas
        np.testing.assert_allclose(scheduler.alphas, expected, atol=1e-9)
        assert len(scheduler.timesteps) == steps
    with pytest.raises(et.EigentimeError, match="set_timesteps"):
        et.diffusers.scheduler(clock).step(torch.zeros(1, 2, SIZE), 0, torch.zeros(1, 2, dtype=torch.long))
    scheduler.save_pretrained(tmp_path / "clock")
    again = type(scheduler).from_pretrained(tmp_path / "clock")
    again.set_timesteps(48)
    assert again.alphas == scheduler.alphas
    assert (tmp_path / "clock" / "scheduler_config.json").stat().st_size < 60_000

    grid = et.schedule(clock, "ods", steps=4)
    fixed = et.diffusers.scheduler(grid, corrector_steps=2)
    fixed.set_timesteps(4)
    with pytest.raises(et.EigentimeError, match="made for 4 steps, not 5"):
        fixed.set_timesteps(5)
    fixed.save_pretrained(tmp_path / "grid")
    again = type(fixed).from_pretrained(tmp_path / "grid")
    assert again.alphas == fixed.alphas == grid.alphas.tolist()
    assert again.config.corrector_steps == 2 and again.config.strategy == "ods"
    with pytest.raises(et.EigentimeError, match="numbered 0 … 3"):
        fixed.step(torch.zeros(1, 2, SIZE), 4, torch.zeros(1, 2, dtype=torch.long))


def test_what_no_scheduler_can_follow_is_refused(pair, clock, masked_clock):
    grid = et.schedule(masked_clock, "ods", steps=2)
    recommendation = et.Recommendation(et.Candidate(et.EntropyBounded(1.0)), None, None, [], None, 0, "")
    for source, settings, words in (
        ([1.0, 0.0], {}, "made from a clock"),
        (recommendation, {}, "decides while it looks"),
        (grid, {"corrector_steps": 1}, "uniform kernel"),
        (grid, {"sampler": "euler"}, "not of 'euler'"),
        (clock, {"sampler": "counted"}, "leave `sampler` out"),
    ):
        with pytest.raises(et.EigentimeError, match=words):
            et.diffusers.scheduler(source, **settings)
    empty = type(et.diffusers.scheduler(clock))()
    with pytest.raises(et.EigentimeError, match="follows nothing yet"):
        empty.set_timesteps(4)
    with pytest.raises(et.EigentimeError, match="there is no mask"):
        et.diffusers.scheduler(grid).step(torch.zeros(1, 4, 4), 0, torch.zeros(1, 4, dtype=torch.long))


def test_a_missing_package_and_an_untested_one(clock, monkeypatch):
    monkeypatch.setattr(packages, "version", lambda name: "1.0.dev0")
    with pytest.warns(UserWarning, match=r"diffusers 1.0.dev0 has not been tried"):
        et.diffusers.scheduler(clock)
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(et.EigentimeError, match=r"pip install 'eigentime\[diffusers\]'"):
        et.diffusers.scheduler(clock)


class Counting(torch.nn.Module):
    """An exact masked model as LLaDA2's pipeline calls one: blocks of four tokens, each with a law of its own."""

    def __init__(self, model):
        super().__init__()
        self.model, self.calls = model, 0
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def forward(self, x, attention_mask=None, position_ids=None):
        self.calls += 1
        length = self.model.length
        parts = [self.model(part, torch.zeros(len(x), dtype=torch.float64)) for part in x.split(length, 1)]
        noisy = torch.cat(parts, 1).clone()
        noisy[..., 3] = 5.0  # a network's logit of the mask means nothing
        return SimpleNamespace(logits=noisy)


def llada(model, scheduler):
    pipe = diffusers.LLaDA2Pipeline(Counting(model), scheduler)
    pipe.set_progress_bar_config(disable=True)
    return pipe


@pytest.mark.parametrize("counts", [(1, 1, 2), (3, 1)])
def test_llada2_with_a_plan_has_the_plans_law(masked_model, masked_clock, counts):
    """Its own pipeline, two blocks: χ² against the law that enumeration gives."""
    chosen = et.plan(masked_clock, order="raster", counts=counts)
    pipe, count = llada(masked_model, et.diffusers.scheduler(chosen)), 6000
    prompt = torch.zeros(count, 4, dtype=torch.long)
    seen = []

    def watch(pipe, step, timestep, tensors):
        seen.append(tensors["transfer_index"].sum(1).unique().tolist())
        return {}

    out = pipe(
        input_ids=prompt,
        gen_length=8,
        block_length=4,
        num_inference_steps=len(counts),
        temperature=1.0,
        mask_token_id=3,
        generator=torch.Generator().manual_seed(0),
        output_type="seq",
        callback_on_step_end=watch,
        callback_on_step_end_tensor_inputs=["transfer_index"],
    ).sequences
    assert pipe.model.calls == 2 * len(counts)
    assert seen == [[c] for c in counts] * 2
    expected = plan_law(masked_model, counts)
    for block in out.split(4, 1):
        assert chisquare(frequencies(block), expected * count).pvalue > 0.001


def plan_law(model, counts):
    """q(x) of a plan from left to right: the product of each token's law given those of earlier steps."""
    states = torch.tensor(list(product(range(SIZE), repeat=4)))
    law, known = torch.ones(len(states), dtype=torch.float64), 0
    for stop in np.cumsum(counts):
        shown = torch.where(torch.arange(4) < known, states, 3)
        rows = model(shown, torch.zeros(len(states), dtype=torch.float64)).exp()
        law *= rows.gather(2, states[..., None]).squeeze(2)[:, known:stop].prod(1)
        known = stop
    return law.numpy()


@pytest.mark.parametrize("sampler", ["ancestral", "counted"])
def test_llada2_along_a_schedule_has_the_law_of_our_sampler(masked_model, masked_clock, sampler):
    grid = et.schedule(masked_clock, "ods", steps=2, sampler=sampler)
    scheduler, count = et.diffusers.scheduler(grid, sampler=sampler), 6000
    generator = torch.Generator().manual_seed(1)
    x = torch.full((count, 4), 3)
    for k in range(2):
        out = masked_model(x, torch.zeros(count, dtype=torch.float64))
        x = scheduler.step(out, k, x, mask_token_id=3, generator=generator).prev_sample
    ours = et.sample(masked_model, grid, count, sampler=sampler, seed=2)
    tables = np.array([frequencies(x), frequencies(ours)])
    common = tables.sum(0) >= 10
    tables = np.column_stack([tables[:, common], tables[:, ~common].sum(1) + 1])
    assert chi2_contingency(tables).pvalue > 0.001


def test_llada2_keeps_prompts_stops_when_done_and_looks_at_no_threshold(masked_model, masked_clock):
    """Three tokens of the first block are the prompt's; a clock serves any number of steps."""
    pipe = llada(masked_model, et.diffusers.scheduler(masked_clock))
    prompt = torch.tensor([[0, 1, 2]] * 5)
    common = {"gen_length": 5, "block_length": 4, "mask_token_id": 3, "output_type": "seq", "temperature": 1.0}
    drawn = [
        pipe(
            input_ids=prompt,
            num_inference_steps=3,
            generator=torch.Generator().manual_seed(9),
            threshold=threshold,
            **common,
        ).sequences
        for threshold in (0.0, 2.0)
    ]
    assert drawn[0].shape == (5, 5) and (drawn[0] < 3).all()
    assert torch.equal(*drawn)
    assert pipe.model.calls <= 2 * (3 + 3)
    with pytest.raises(et.EigentimeError, match="blocks of 4 tokens, not of 8"):
        pipe(input_ids=prompt, num_inference_steps=3, **{**common, "block_length": 8})
    pipe.scheduler.set_timesteps(3)
    with pytest.raises(et.EigentimeError, match="begins with step 0"):
        pipe.scheduler.step(torch.zeros(1, 4, 4), 1, torch.full((1, 4), 3), mask_token_id=3)
    greedy = [
        pipe(input_ids=prompt, num_inference_steps=3, sampling_method=method, **{**common, "temperature": t}).sequences
        for method, t in (("greedy", 1.0), ("multinomial", 0.0))
    ]
    expected = masked_model(torch.tensor([[0, 1, 2, 3]]), torch.zeros(1, dtype=torch.float64))[0, 3].argmax()
    assert (greedy[0][:, 0] == expected).all() and (greedy[1][:, 0] == expected).all()


def test_plans_and_masked_schedules_save_and_load(masked_clock, tmp_path):
    chosen = et.plan(masked_clock, 2, order="low-discrepancy")
    masked = torch.ones(3, 4, dtype=torch.bool)
    for name, source, settings in (
        ("plan", chosen, {}),
        ("grid", et.schedule(masked_clock, "ods", steps=2), {"sampler": "counted"}),
        ("clock", masked_clock, {}),
    ):
        scheduler = et.diffusers.scheduler(source, **settings)
        scheduler.save_pretrained(tmp_path / name)
        again = type(scheduler).from_pretrained(tmp_path / name)
        for each in (scheduler, again):
            each.set_timesteps(2, block_length=4)
        assert torch.equal(scheduler._settle(masked, 7), again._settle(masked, 7))
    assert torch.equal(et.diffusers.scheduler(chosen)._settle(masked, 7), chosen.step_of(3, 7))


def test_a_recommendation_is_what_it_recommends(masked_clock):
    chosen, grid = et.plan(masked_clock, 2), et.schedule(masked_clock, "ods", steps=3)
    for candidate, expected in (
        (et.Candidate("ancestral", chosen), {"counts": list(chosen.counts), "block_length": 4}),
        (et.Candidate("counted", grid), {"alphas": grid.alphas.tolist(), "exact_counts": True}),
    ):
        made = et.diffusers.scheduler(et.Recommendation(candidate, None, None, [], None, 0, ""))
        assert {name: made.config[name] for name in expected} == expected


def test_random_places_are_exact_in_number():
    grid = et.schedule("cosine", steps=3, process=et.Process(et.Absorbing(4), et.LogLinear()))
    scheduler = et.diffusers.scheduler(grid, sampler="counted")
    masked = uniforms(0, Purpose.DATA, 20, 12) < 0.8
    steps = scheduler._settle(masked, 3)
    for row, free in zip(steps, masked, strict=True):
        expected = np.diff([0, *np.round(grid.alphas[1:-1] * free.sum().item()), free.sum().item()])
        assert [int((row[free] == k).sum()) for k in range(3)] == expected.tolist()


@pytest.fixture(scope="module")
def gemma_pipe(clock):
    network = tiny_diffusion_gemma(canvas=8)
    pipe = diffusers.DiffusionGemmaPipeline(network, et.diffusers.scheduler(clock), numbers)
    pipe.set_progress_bar_config(disable=True)
    return pipe


SETTINGS = {
    "prompt": ["7 8 9 10 11"] * 3,
    "gen_length": 16,
    "temperature": 1.0,
    "confidence_threshold": None,
    "output_type": "seq",
}


def test_diffusion_gemma_pipeline_takes_our_steps(gemma_pipe, clock):
    """Canvas by canvas in the real pipeline: each call of `step` gets the α of the measured grid."""
    scheduler, steps = gemma_pipe.scheduler, 5
    calls, forward = [], gemma_pipe.model.forward
    taken = []
    step = scheduler.step

    def watched(*args, **kwargs):
        taken.append((kwargs["timestep"], kwargs["temperature"]))
        return step(*args, **kwargs)

    def counted(*args, **kwargs):
        calls.append(kwargs["self_conditioning_logits"] is not None)
        return forward(*args, **kwargs)

    watched.__signature__ = inspect.signature(step)
    scheduler.step = watched
    gemma_pipe.model.forward = counted
    try:
        drawn = [
            gemma_pipe(**SETTINGS, num_inference_steps=steps, generator=torch.Generator().manual_seed(s)).sequences
            for s in (0, 0, 1)
        ]
    finally:
        del scheduler.step
        gemma_pipe.model.forward = forward
    assert drawn[0].shape == (3, 16)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert taken == [(k, 1.0) for k in range(steps)] * 6
    assert calls == ([False] + [True] * (steps - 1)) * 6
    np.testing.assert_allclose(scheduler.alphas, et.schedule(clock, "ods", steps=steps).alphas, atol=1e-9)


def test_diffusion_gemma_pipeline_corrects_saves_and_loads(gemma_pipe, clock, tmp_path):
    pipe = diffusers.DiffusionGemmaPipeline(
        gemma_pipe.model, et.diffusers.scheduler(clock, corrector_steps=1, corrector_k=2), gemma_pipe.processor
    )
    pipe.set_progress_bar_config(disable=True)
    run = {**SETTINGS, "num_inference_steps": 6}
    first = pipe(**run, generator=torch.Generator().manual_seed(2)).sequences
    assert pipe.scheduler.num_inference_steps == 4  # two of the six evaluations correct
    pipe.scheduler.save_pretrained(tmp_path)
    pipe.scheduler = type(pipe.scheduler).from_pretrained(tmp_path)
    assert torch.equal(pipe(**run, generator=torch.Generator().manual_seed(2)).sequences, first)
    own = et.diffusers.scheduler(et.schedule(clock, "ods", steps=4), corrector_steps=1, corrector_k=2)
    pipe.scheduler = own
    assert torch.equal(pipe(**run, generator=torch.Generator().manual_seed(2)).sequences, first)
    with pytest.raises(et.EigentimeError, match="made for 4 steps"):
        pipe(**{**run, "num_inference_steps": 9})


def test_a_whole_pipeline_is_saved_loaded_and_may_lie_on_the_hub(masked_clock, clock, tmp_path):
    """The pipeline's own files name our class; diffusers finds it again and knows that a hub may name it."""
    from diffusers.pipelines.pipeline_loading_utils import _get_custom_components_and_folders

    class Only(diffusers.DiffusionPipeline):
        def __init__(self, scheduler):
            super().__init__()
            self.register_modules(scheduler=scheduler)

    for name, source in (("uniform", clock), ("masked", et.plan(masked_clock, 2))):
        pipe = Only(et.diffusers.scheduler(source))
        pipe.save_pretrained(tmp_path / name)
        again = Only.from_pretrained(tmp_path / name)
        assert type(again.scheduler) is type(pipe.scheduler)
        assert dict(again.scheduler.config)["strategy"] == pipe.scheduler.config.strategy
        index = Only.load_config(tmp_path / name)
        assert _get_custom_components_and_folders("owner/name", index, [])[1] == ["scheduler"]


def test_orders_that_no_file_can_hold_are_refused():
    order = make_order(lambda free, u: np.flatnonzero(free))
    with pytest.raises(et.EigentimeError):
        et.diffusers.scheduler(et.Plan((2, 2), order, 4))
