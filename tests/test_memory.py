"""Memory follows the network: whatever is done, no tensor of ours is larger than one bounded block of rows."""

import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import eigentime as et
from eigentime.models import base, batching
from eigentime.models.batching import BatchSize
from eigentime.orders import make_order

SIZE, LENGTH, SAMPLES, WIDTH = 50_258, 64, 8, 8
EVERY = SAMPLES * LENGTH * SIZE
"""Numbers that nobody needs at once."""
MASKED = [
    *("ancestral", "euler", "tau-leaping", "trapezoidal", "predictor-corrector"),
    *("remasking", "confidence", "margin", "entropy"),
    *(et.EntropyBounded(1000.0), et.Threshold(1e-9), et.Klass(1e-9, 10.0, 1), "first-hitting"),
]


class Largest(TorchDispatchMode):
    """The largest tensor that any operation makes; views of what is there do not count."""

    def __init__(self):
        super().__init__()
        self.numel, self.where = 0, ""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        known = {one.untyped_storage().data_ptr() for one in tree_flatten(args)[0] if isinstance(one, torch.Tensor)}
        for one in tree_flatten(result)[0]:
            if isinstance(one, torch.Tensor) and one.untyped_storage().data_ptr() not in known:
                numel = one.untyped_storage().nbytes() // one.element_size()
                if numel > self.numel:
                    self.numel, self.where = numel, f"{function} {tuple(one.shape)}"
        return result


def network(kernel, whole=False):
    torch.manual_seed(0)
    trunk = torch.nn.Sequential(torch.nn.Embedding(SIZE, WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
    head = torch.nn.Linear(WIDTH, SIZE)
    process = et.Process(kernel, et.LogLinear())
    if whole:
        return et.wrap(torch.nn.Sequential(trunk, head), process, length=LENGTH, time=None)
    return et.wrap(trunk, process, length=LENGTH, time=None, head=head)


def largest(work):
    with Largest() as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        work()
    return seen


@pytest.fixture(scope="module")
def masked():
    return network(et.Absorbing(SIZE))


@pytest.fixture(scope="module")
def data():
    return torch.randint(0, SIZE - 1, (SAMPLES, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("sampler", MASKED, ids=str)
def test_samplers_of_masked_models_make_one_bounded_block(masked, sampler):
    scheduled = isinstance(sampler, str) and sampler != "first-hitting"
    grid = et.schedule("uniform", steps=3, model=masked) if scheduled else None
    seen = largest(lambda: et.sample(masked, grid, SAMPLES, sampler=sampler))
    assert SIZE < seen.numel <= base.ROW_ELEMENTS < EVERY / 3, seen.where


@pytest.mark.parametrize("sampler", ["ancestral", "euler", "tau-leaping", "trapezoidal", "predictor-corrector"])
def test_samplers_without_a_mask_too(sampler):
    model = network(et.Uniform(SIZE))
    grid = et.schedule("uniform", steps=2, model=model)
    seen = largest(lambda: et.sample(model, grid, SAMPLES, sampler=sampler))
    assert SIZE < seen.numel <= base.ROW_ELEMENTS, seen.where


def test_plans_guidance_shapes_measuring_and_jys(masked, data):
    grid = et.schedule("uniform", steps=2, model=masked)
    plan = et.Plan((20, 44), make_order("raster"), LENGTH)
    prompt = {"given": data, "fixed": torch.arange(LENGTH) < 8}
    for work in (
        lambda: et.sample(masked, plan, SAMPLES),
        lambda: et.sample(masked, grid, SAMPLES, **prompt, guidance=1.5),
        lambda: et.sample(masked, grid, SAMPLES, temperature=0.8, top_p=0.9),
        lambda: et.measure(masked, data, budget=24, orders=["raster"]),
        lambda: et.schedule("jys", steps=2, model=masked, data=data),
    ):
        seen = largest(work)
        assert SIZE < seen.numel <= base.ROW_ELEMENTS, seen.where


def test_a_network_without_a_separate_head_makes_its_own_output_and_no_more(data):
    model = network(et.Absorbing(SIZE), whole=True)
    grid = et.schedule("uniform", steps=2, model=model)
    for work in (
        lambda: et.sample(model, grid, SAMPLES, batch_size=2),
        lambda: et.measure(model, data, budget=24, batch_size=2),
    ):
        seen = largest(work)
        assert seen.numel <= 2 * LENGTH * SIZE, seen.where


def test_batches_follow_sizes_and_free_memory(masked, monkeypatch):
    whole = network(et.Absorbing(SIZE), whole=True)
    monkeypatch.setattr(batching, "free_memory", lambda device: 2**30)
    assert BatchSize(masked).value == 32  # rows are made as they are needed
    assert BatchSize(whole).value == 2**28 // (4 * LENGTH * (3 * SIZE + 24 * WIDTH))
    monkeypatch.setattr(batching, "free_memory", lambda device: 2**20)
    assert BatchSize(whole).value == 1
    assert BatchSize(whole, 7).value == 7
    for bad in (0, 1.5, "many"):
        with pytest.raises(et.EigentimeError, match="batch_size must be"):
            BatchSize(whole, bad)


class Forgetful(torch.nn.Module):
    """Runs out of memory for more sequences than it likes."""

    def __init__(self, most):
        super().__init__()
        self.table, self.most, self.seen = torch.nn.Embedding(12, 12), most, []

    def forward(self, x):
        self.seen.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 GiB")
        return self.table(x)


@pytest.mark.parametrize("kernel", [et.Absorbing(12), et.Uniform(12)], ids=["absorbing", "uniform"])
def test_memory_that_runs_out_halves_the_batch_and_loses_nothing(kernel):
    process = et.Process(kernel, et.LogLinear())
    torch.manual_seed(0)
    network = Forgetful(100)
    model = et.wrap(network, process, length=6, time=None)
    data = torch.randint(0, 11, (16, 6), generator=torch.Generator().manual_seed(1))
    grid = et.schedule("uniform", steps=3, model=model)
    expected = et.sample(model, grid, 16), et.measure(model, data, budget=64, tolerance=0.0)
    network.most, network.seen = 3, []
    x = et.sample(model, grid, 16)
    info = x.info
    assert torch.equal(x, expected[0]) and info.batch_size in (2, 3)
    failed = [count for count in network.seen if count > 3]
    assert failed == sorted(set(failed), reverse=True)  # what was too much is not tried again
    clock = et.measure(model, data, budget=64, tolerance=0.0)
    assert clock.evaluations == expected[1].evaluations
    for strategy in ("ods", "wds"):
        grids = [et.schedule(one, strategy, steps=3).times for one in (clock, expected[1])]
        assert grids[0] == pytest.approx(grids[1])
    times = [et.schedule("jys", steps=2, model=model, data=data, seed=1).times]
    network.most = 100
    times.append(et.schedule("jys", steps=2, model=model, data=data, seed=1).times)
    assert times[0] == pytest.approx(times[1])
    network.most = 0
    with pytest.raises(et.EigentimeError, match="ran out with a single sequence"):
        et.sample(model, grid, 4)


def test_other_errors_are_not_taken_for_memory():
    def broken(x):
        raise RuntimeError("a bug of the network")

    model = et.wrap(broken, et.Process(et.Absorbing(12), et.LogLinear()), length=6, time=None)
    with pytest.raises(et.EigentimeError, match="a bug of the network"):
        et.sample(model, et.schedule("uniform", steps=2, model=model), 4)
