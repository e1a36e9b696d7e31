"""Networks on another device: the same samples and measurements as on the CPU, and few bytes on the way back."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import eigentime as et
import pretend
from eigentime.models import Trained, base
from eigentime.models.ddit import DDiTConfig
from eigentime.models.trained import build
from eigentime.models.unet import UNetConfig
from eigentime.process.randomness import Purpose, uniforms
from eigentime.training.losses import LOSSES

WITHOUT_A_MASK = ["ancestral", "euler", "tau-leaping", "trapezoidal", "predictor-corrector"]
SAMPLERS = [*WITHOUT_A_MASK, "remasking", "confidence", "margin", "entropy"]
UNSCHEDULED = [et.EntropyBounded(30.0), et.Threshold(0.004), et.Klass(0.004, 1.0, 1), "first-hitting"]
SIZE, LENGTH = 500, 24


def both(kernel, predicts="logits"):
    """A network on both devices, with a vocabulary large enough that rows would show."""
    process = et.Process(kernel, et.LogLinear())

    def network():
        torch.manual_seed(0)
        trunk = torch.nn.Sequential(torch.nn.Embedding(SIZE, 16), torch.nn.Linear(16, 16), torch.nn.Tanh())
        head = torch.nn.Linear(16, SIZE)
        return et.wrap(trunk, process, length=LENGTH, predicts=predicts, time=None, head=head)

    return network(), network().to("pretend:0")


@pytest.fixture(scope="module")
def pair():
    return both(et.Absorbing(SIZE))


@contextmanager
def counted(model, float64=True):
    """Traffic of what is done inside, and in `calls` how often the network was called."""
    pretend.refused = set() if float64 else {torch.float64}
    pretend.traffic.reset()
    pretend.traffic.calls = 0
    hook = model.function.register_forward_hook(lambda *_: setattr(pretend.traffic, "calls", pretend.traffic.calls + 1))
    try:
        yield pretend.traffic
    finally:
        pretend.refused = set()
        hook.remove()


def assert_few(traffic, tokens):
    """At most 32 bytes on the way back for a token, and two waits for a call of the network and two at its first."""
    assert traffic.to_host <= 32 * tokens, traffic.lines
    assert traffic.waits <= 2 + 2 * traffic.calls, traffic.lines


def test_a_network_moves_and_says_where_it_is(pair):
    assert pair[1].device.type == "pretend" and pair[0].device.type == "cpu"
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2) + torch.ones(2, device="pretend")


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("sampler", [*SAMPLERS, *UNSCHEDULED], ids=str)
def test_samples_are_the_same_and_only_tokens_come_back(pair, sampler, float64, monkeypatch):
    """Not more than two waits for each call of the network, though its rows come in many blocks."""
    monkeypatch.setattr(base, "ROW_ELEMENTS", 500 * 16)
    here, there = pair
    grid = et.schedule("uniform", steps=6, model=here) if sampler in SAMPLERS else None
    expected = et.sample(here, grid, 8, sampler=sampler, seed=3)
    with counted(there, float64) as traffic:
        found = et.sample(there, grid, 8, sampler=sampler, seed=3)
    assert torch.equal(found, expected)
    assert_few(traffic, expected.numel())


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("sampler", [*WITHOUT_A_MASK, "ordinal"])
@pytest.mark.parametrize("predicts", ["logits", "score"])
def test_kernels_without_a_mask(sampler, predicts, float64, monkeypatch):
    monkeypatch.setattr(base, "ROW_ELEMENTS", SIZE * 16)
    here, there = both(et.Uniform(SIZE), predicts)
    grid = et.schedule("uniform", steps=6, model=here)
    options = {"sampler": et.TauLeaping(ordinal=True)} if sampler == "ordinal" else {"sampler": sampler}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = et.sample(here, grid, 4, seed=3, **options)
        with counted(there, float64) as traffic:
            found = et.sample(there, grid, 4, seed=3, **options)
    assert (found != expected).sum() <= 1  # rows of 500 values that are added up in another order
    assert_few(traffic, expected.numel())


@pytest.mark.parametrize("float64", [True, False])
def test_plans_given_tokens_guidance_and_shapes(pair, float64):
    here, there = pair
    data = torch.randint(0, 499, (16, 24), generator=torch.Generator().manual_seed(1))
    clocks = [et.measure(here, data, budget=48, orders=["raster"])]
    with counted(there, float64):
        clocks.append(et.measure(there, data, budget=48, orders=["raster"]))
    np.testing.assert_allclose(clocks[0].measured.cross, clocks[1].measured.cross, rtol=1e-6)
    plan, fixed = et.plan(clocks[0], steps=4), torch.arange(24) < 4
    grid = et.schedule(clocks[0], "ods", steps=4)
    conditioned = {"given": data[:8], "fixed": fixed}
    for planned, options in (
        (plan, {}),
        (plan, conditioned),
        (grid, {**conditioned, "guidance": 1.5}),
        (grid, {"temperature": 0.8, "top_p": 0.9}),
        (grid, {"top_k": 5}),
    ):
        expected = et.sample(here, planned, 8, **options)
        with counted(there, float64) as traffic:
            assert torch.equal(et.sample(there, planned, 8, **options), expected)
        assert_few(traffic, expected.numel())


def test_bundled_networks_of_every_kind():
    for name in ("countdown", "countdown-sedd", "countdown-uniform"):
        here, there = et.load(name), et.load(name, device="pretend:0")
        grid = et.schedule("uniform", steps=2, model=here)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected, found = (et.sample(model, grid, 2, seed=1) for model in (here, there))
        assert (expected != found).any(1).sum() <= 1
        data = et.load("countdown-exact").draw(4, 0)
        first, second = (et.measure(model, data, budget=16) for model in (here, there))
        np.testing.assert_allclose(first.measured.cross, second.measured.cross, rtol=2e-3, atol=1e-4)


def test_a_plain_function_whose_rows_are_elsewhere():
    """It cannot say where it lives; samplers look at its rows."""
    process = et.Process(et.Absorbing(40), et.LogLinear())
    table = torch.randn(40, 40, generator=torch.Generator().manual_seed(0))
    moved = table.to("pretend:0")
    here = et.wrap(lambda x: table[x], process, length=6, time=None)
    there = et.wrap(lambda x: moved[x.to("pretend:0")], process, length=6, time=None)
    grid = et.schedule("uniform", steps=3, model=here)
    for sampler in ("ancestral", "confidence", "entropy", et.Threshold(0.1), et.Klass(0.1, 1.0, 1)):
        planned = grid if isinstance(sampler, str) else None
        first, second = (et.sample(model, planned, 4, sampler=sampler) for model in (here, there))
        assert torch.equal(first, second)


@pytest.mark.parametrize("predicts", ["logits", "score"])
def test_measuring_without_a_mask_where_there_is_no_float64(predicts):
    process = et.Process(et.Uniform(6), et.LogLinear())

    def network():
        torch.manual_seed(0)
        return et.wrap(torch.nn.Embedding(6, 6), process, length=4, predicts=predicts, time=None)

    data = torch.randint(0, 6, (8, 4), generator=torch.Generator().manual_seed(1))
    expected = et.measure(network(), data, budget=32)
    pretend.refused = {torch.float64}
    try:
        found = et.measure(network().to("pretend:0"), data, budget=32)
    finally:
        pretend.refused = set()
    np.testing.assert_allclose(found.measured.slope, expected.measured.slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("float64", [True, False])
def test_jys_sums_as_it_goes(pair, float64, monkeypatch):
    """A number per block comes back, whatever the vocabulary; the network is asked as often as on the CPU."""
    monkeypatch.setattr(base, "ROW_ELEMENTS", SIZE * 64)
    for here, there in (pair, both(et.Uniform(SIZE)), both(et.Uniform(SIZE), "score")):
        data = torch.randint(0, SIZE - 1, (4, LENGTH), generator=torch.Generator().manual_seed(1))
        expected = et.schedule("jys", steps=2, model=here, data=data)
        with counted(there, float64) as traffic:
            found = et.schedule("jys", steps=2, model=there, data=data)
        # in single precision a flat maximum may be found one point of the grid further
        np.testing.assert_allclose(found.times, expected.times, atol=0 if float64 else 2 / 1024)
        if float64:
            assert found.provenance["evaluations"] == expected.provenance["evaluations"]
        assert traffic.to_host <= 16 * traffic.calls, traffic.lines
        assert traffic.waits <= 2 + 2 * traffic.calls, traffic.lines


@pytest.mark.parametrize("float64", [True, False])
def test_blocks_and_windows(pair, float64):
    here, there = pair
    grid = et.schedule("uniform", steps=3, model=here)
    prompt = torch.randint(0, SIZE - 1, (4, 8), generator=torch.Generator().manual_seed(1))
    expected = et.generate_blocks(here, [grid, grid], prompt, seed=1)
    with counted(there, float64) as traffic:
        found = et.generate_blocks(there, [grid, grid], prompt, seed=1)
    assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
    assert_few(traffic, found[0].numel())
    windows = [et.generate_windows(model, grid, 2, 36, 12, seed=1)[0] for model in pair]
    assert torch.equal(*windows)


def test_classes_guide_there():
    torch.manual_seed(0)
    config = UNetConfig(8, (1, 8, 8), 32, classes=3, time_conditioned=True)
    process = et.Process(et.Absorbing(8), et.LogLinear())
    models = [Trained(build(config), process, 64, "classes", {}) for _ in range(2)]
    models[1].network.load_state_dict(models[0].network.state_dict())
    models[1].to("pretend:0")
    grid, classes = et.schedule("uniform", steps=3, model=models[0]), torch.tensor([0, 1, 1, 0])
    samples = [et.sample(model, grid, 4, cond=classes, guidance=2.0) for model in models]
    assert (samples[0] != samples[1]).any(1).sum() <= 1


@pytest.mark.parametrize("head", LOSSES)
@pytest.mark.parametrize("float64", [True, False])
def test_losses_and_their_gradients(head, float64):
    kernel = et.Uniform(SIZE) if head == "cavity" else et.Absorbing(SIZE)
    process = et.Process(kernel, et.LogLinear())
    config = DDiTConfig(size=SIZE, width=16, blocks=1, heads=2, cond_width=8, head=head, time_conditioned=True)
    torch.manual_seed(0)
    network = build(config)
    other = build(config)
    other.load_state_dict(network.state_dict())
    x0 = torch.randint(0, SIZE - 1, (4, LENGTH), generator=torch.Generator().manual_seed(1))
    t = torch.tensor([0.1, 0.4, 0.7, 1.0], dtype=torch.float64)
    numbers = [uniforms(4, purpose, *x0.shape) for purpose in (Purpose.CORRUPT, Purpose.REPLACE)]
    x = process.corrupt(x0, t, *numbers)
    expected = LOSSES[head](network, process, x0, x, t, 0)
    other.to("pretend:0")
    pretend.refused = set() if float64 else {torch.float64}
    try:
        found = LOSSES[head](moved(other), process, x0, x, t, 0)
        assert found.device.type == "pretend"
        found.sum().backward()
    finally:
        pretend.refused = set()
    expected.sum().backward()
    np.testing.assert_allclose(found.detach().cpu(), expected.detach(), rtol=1e-4)
    for here, there in zip(network.parameters(), other.parameters(), strict=True):
        if here.grad is not None:
            assert torch.allclose(there.grad.cpu(), here.grad, rtol=1e-3, atol=1e-4 * here.grad.abs().max().item())


def moved(network):
    """As the training loop calls it."""
    return lambda *inputs: network(*(one.to("pretend:0") for one in inputs))
