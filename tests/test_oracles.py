from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.models.markov import OFF_SUPPORT
from worlds import make_kernel


def random_chain(order, kernel, length=4, values=3, seed=0):
    """A chain and the table of the same law."""
    rng = np.random.default_rng(seed)
    initial = rng.dirichlet(np.ones(values**order)).reshape((values,) * order)
    transition = rng.dirichlet(np.ones(values), size=(values,) * order)
    law = initial
    for _ in range(length - order):
        law = law[..., None] * transition.reshape((1,) * (law.ndim - order) + transition.shape)
    process = et.Process(make_kernel(kernel, values), et.LogLinear())
    return et.MarkovChain(initial, transition, length, process), et.Table(law, process)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("kernel", ["absorbing", "uniform", "rate-matrix"])
def test_forward_backward_equals_enumeration(order, kernel):
    chain, table = random_chain(order, kernel)
    size = chain.process.kernel.size
    x = torch.cartesian_prod(*[torch.arange(size)] * 4)
    for t in (0.1, 0.6, 1.0):
        times = torch.full((len(x),), t, dtype=torch.float64)
        np.testing.assert_allclose(chain(x, times).exp(), table(x, times).exp(), atol=100 * OFF_SUPPORT)
    assert chain.entropy == pytest.approx(table.entropy, abs=1e-12)


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_table_posterior_is_bayes(kernel):
    _, table = random_chain(1, kernel, length=3)
    process, law = table.process, table.law.reshape(3, 3, 3).numpy()
    x, t = torch.tensor([[0, 2, 1]]), 0.4
    if kernel == "absorbing":
        x[0, 1] = process.kernel.mask
    transition = process.transition(0.0, t).numpy()
    joint = law * np.einsum("a,b,c->abc", *(transition[:3, token] for token in x[0]))
    expected = joint.sum((0, 2)) / joint.sum()
    row = table(x, torch.tensor([t]).double(), where=torch.tensor([[False, True, False]])).exp()
    np.testing.assert_allclose(row[0, :3], expected, atol=1e-12)


def test_draws_have_the_right_frequencies_and_repeat():
    for model in (*random_chain(2, "uniform", length=3), et.Independent([0.1, 0.2, 0.7], _process())):
        x = model.draw(20_000, seed=1)
        assert torch.equal(x, model.draw(20_000, seed=1))
        assert not torch.equal(x, model.draw(20_000, seed=2))
        if isinstance(model, et.Table):
            index = (x * torch.tensor([9, 3, 1])).sum(1)
            observed = np.bincount(index, minlength=27) / len(x)
            np.testing.assert_allclose(observed, model.law, atol=0.015)


def _process():
    return et.Process(et.Uniform(3), et.LogLinear())


def test_a_chain_survives_states_off_its_support():
    model = et.load("countdown-exact")
    x = torch.full((1, 256), 32)
    x[0, 10], x[0, 11] = 5, 9  # impossible
    rows = model(x, torch.tensor([0.5]).double()).exp()
    assert torch.isfinite(rows).all()
    np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-9)


@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_where_returns_rows_in_order(seed):
    _, table = random_chain(1, "uniform")
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 3, (5, 4), generator=generator)
    where = torch.rand(5, 4, generator=generator) < 0.5
    t = torch.rand(5, generator=generator, dtype=torch.float64) * 0.9 + 0.05
    assert torch.equal(table(x, t)[where], table(x, t, where))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: et.Table(np.ones((2, 3)), _process()), "shape"),
        (lambda: et.Table(np.full((3, 3), 0.2), _process()), "sum to one"),
        (lambda: et.Independent([0.5, 0.5], _process()), "2 values"),
        (lambda: et.MarkovChain(np.ones(3) / 3, np.ones((2, 2)) / 2, 5, _process()), "MarkovChain"),
        (lambda: et.Independent([np.nan, 0.5, 0.5], _process()), "finite"),
        (lambda: et.load("nonsense"), "Unknown model"),
        (lambda: et.load("countdown-exact", "gaussian"), "Unknown kernel"),
    ],
)
def test_bad_models_are_refused(make, word):
    with pytest.raises(et.EigentimeError, match=word):
        make()


def test_wrapping_a_network():
    process = et.Process(et.Absorbing(5, mask=4), et.LogLinear())
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5))
    model = et.wrap(network, process, length=6, time=None)
    x = torch.full((2, 6), 4)
    rows = model(x, torch.ones(2).double()).exp()
    assert not model.time_dependent
    np.testing.assert_allclose(rows.sum(-1).detach(), 1.0, atol=1e-6)
    assert (rows[..., 4] == 0).all()
    seen = {}

    def timed(x, time):
        seen["time"] = time
        return torch.zeros(*x.shape, 5)

    for convention, expected in (("t", 0.5), ("sigma", process.noise.sigma(0.5)), ("alpha", process.noise.alpha(0.5))):
        et.wrap(timed, process, length=6, time=convention)(x, torch.tensor([0.5, 0.5]).double())
        np.testing.assert_allclose(seen["time"], float(expected), rtol=1e-6)
    with pytest.raises(et.EigentimeError, match="returned shape"):
        et.wrap(lambda x: torch.zeros(2, 6, 7), process, length=6, time=None)(x, torch.ones(2).double())
    with pytest.raises(et.EigentimeError, match="NaN"):
        et.wrap(lambda x: torch.full((2, 6, 5), torch.nan), process, length=6, time=None)(x, torch.ones(2).double())
    with pytest.raises(et.EigentimeError, match="returned dict"):
        et.wrap(lambda x: {"a": 1}, process, length=6, time=None)(x, torch.ones(2).double())
    with pytest.raises(et.EigentimeError, match="predicts='logits'"):
        et.wrap(lambda x: torch.ones(2, 6, 5), process, length=6, time=None, predicts="posterior")(
            x, torch.ones(2).double()
        )
    like_transformers = et.wrap(lambda x: SimpleNamespace(logits=torch.zeros(2, 6, 5)), process, length=6, time=None)
    np.testing.assert_allclose(like_transformers(x, torch.ones(2).double()).exp()[..., :4], 0.25)
    with pytest.raises(et.EigentimeError, match="predicts"):
        et.wrap(network, process, length=6, predicts="noise")


@pytest.mark.parametrize("kernel", ["absorbing", "uniform"])
def test_ising_equals_enumeration(kernel):
    process = et.Process(make_kernel(kernel, 2), et.LogLinear())
    grid = et.Ising(3, 2, 0.4, process)
    spins = 2 * torch.cartesian_prod(*[torch.arange(2)] * 6).double() - 1
    pairs = [(0, 1), (2, 3), (4, 5), (0, 2), (1, 3), (2, 4), (3, 5)]
    weights = torch.exp(0.4 * sum(spins[:, i] * spins[:, j] for i, j in pairs))
    table = et.Table((weights / weights.sum()).reshape((2,) * 6), process)
    x = torch.cartesian_prod(*[torch.arange(process.kernel.size)] * 6)
    for t in (0.2, 0.8):
        times = torch.full((len(x),), t, dtype=torch.float64)
        np.testing.assert_allclose(grid(x, times).exp(), table(x, times).exp(), atol=1e-12)
    assert grid.entropy == pytest.approx(table.entropy, abs=1e-12)
    observed = grid.draw(20_000, 3).double().mul(2).sub(1)
    for i, j in pairs[:3]:
        expected = (table.law * spins[:, i] * spins[:, j]).sum()
        assert (observed[:, i] * observed[:, j]).mean() == pytest.approx(expected.item(), abs=0.03)
    with pytest.raises(et.EigentimeError, match="columns"):
        et.Ising(2, 30, 0.4, process)


def test_log_likelihoods_agree_and_average_to_the_entropy():
    for order in (1, 2):
        chain, table = random_chain(order, "absorbing")
        x = table.draw(20_000, 1)
        np.testing.assert_allclose(chain.log_likelihood(x), table.log_likelihood(x), atol=1e-5)
        assert -table.log_likelihood(x).mean() == pytest.approx(table.entropy, abs=0.05)
    process = et.Process(et.Absorbing(3), et.LogLinear())
    for model in (et.Ising(3, 3, 0.3, process), et.Independent([[0.2, 0.8], [0.6, 0.4]], process)):
        assert -model.log_likelihood(model.draw(20_000, 2)).mean() == pytest.approx(model.entropy, abs=0.05)
