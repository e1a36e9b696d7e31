"""Networks on another device: the same samples and measurements as on the CPU, and few bytes on the way back."""

import warnings

import numpy as np
import pytest
import torch

import eigentime as et
import pretend
from eigentime.models import base

SAMPLERS = ["ancestral", "euler", "tau-leaping", "remasking", "predictor-corrector", "confidence", "margin", "entropy"]
UNSCHEDULED = [et.EntropyBounded(30.0), et.Threshold(0.004), "first-hitting"]


@pytest.fixture(scope="module")
def pair():
    """A masked network on both devices, with a vocabulary large enough that rows would show."""
    size, length = 500, 24
    process = et.Process(et.Absorbing(size), et.LogLinear())

    def network():
        torch.manual_seed(0)
        trunk = torch.nn.Sequential(torch.nn.Embedding(size, 16), torch.nn.Linear(16, 16), torch.nn.Tanh())
        return et.wrap(trunk, process, length=length, time=None, head=torch.nn.Linear(16, size))

    return network(), network().to("pretend:0")


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
    pretend.refused = set() if float64 else {torch.float64}
    pretend.traffic.reset()
    calls = []
    counted = there.function.register_forward_hook(lambda *_: calls.append(1))
    try:
        found = et.sample(there, grid, 8, sampler=sampler, seed=3)
    finally:
        pretend.refused = set()
        counted.remove()
    assert torch.equal(found, expected)
    assert pretend.traffic.to_host <= 32 * expected.numel(), pretend.traffic.lines
    assert pretend.traffic.waits <= 2 + 2 * len(calls), pretend.traffic.lines  # the first call is looked at


def test_plans_given_tokens_guidance_and_shapes(pair):
    here, there = pair
    data = torch.randint(0, 499, (16, 24), generator=torch.Generator().manual_seed(1))
    clocks = [et.measure(model, data, budget=48, orders=["raster"]) for model in pair]
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
        pretend.traffic.reset()
        assert torch.equal(et.sample(there, planned, 8, **options), expected)
        assert pretend.traffic.to_host <= 32 * expected.numel(), pretend.traffic.lines


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
