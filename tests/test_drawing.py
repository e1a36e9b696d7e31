"""Draws in two levels follow their law, whatever the precision and the vocabulary."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms


def long_tailed(rows, size, seed=0):
    """Logits of a few likely tokens anywhere and a tail of tiny probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1, (rows, size)) - 14
    for row in range(rows):
        logits[row, rng.choice(size, 40, replace=False)] += np.linspace(14, 2, 40)
    return torch.from_numpy(logits).log_softmax(-1)


def pooled_chi_square(counts, expected):
    """p-value of observed counts, cells that expect fewer than 5 pooled."""
    few = expected < 5
    observed = np.append(counts[~few], counts[few].sum())
    hoped = np.append(expected[~few], expected[few].sum())
    observed, hoped = observed[hoped > 0], hoped[hoped > 0]
    statistic = ((observed - hoped) ** 2 / hoped).sum()
    return chi2.sf(statistic, len(hoped) - 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_law_of_draws_at_a_large_vocabulary(dtype):
    rows, size, each = 64 if dtype == torch.float32 else 16, 131_072, 1600  # CPUs add half precision up slowly
    exact = long_tailed(rows, size).exp()
    law = (exact / exact.amax(-1, keepdim=True)).to(dtype)  # any positive scale
    truth = law.double() / law.double().sum(-1, keepdim=True)
    values = []
    for row in range(rows):
        u = uniforms(7, Purpose.DRAW, each, 1, step=row).squeeze(1)
        drawn = draw(law[row].expand(each, -1), u).numpy()
        p = truth[row].numpy()
        assert (p[drawn] > 0).all()
        values.append(pooled_chi_square(np.bincount(drawn, minlength=size), each * p))
    # uniform p-values: by Fisher's method their logarithms add up to a chi-square
    assert chi2.sf(-2 * np.log(values).sum(), 2 * rows) > 1e-4


@given(size=st.integers(1, 300), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_two_levels_draw_what_one_does(size, seed):
    """From equal probabilities and uniforms, but for draws so close to a border that rounding turns them."""
    rng = np.random.default_rng(seed)
    law = torch.from_numpy(rng.dirichlet(np.full(size, 0.3), 500)).float()
    law[:, rng.integers(size)] = 0.0
    law[:, 0] += (law.sum(-1) == 0).float()
    u = torch.from_numpy(rng.random(500))
    found, expected = draw(law, u), draw(law.double(), u)
    assert found.min() >= 0 and found.max() < size
    assert (law.gather(1, found[:, None]) > 0).all()
    assert (found != expected).sum() <= 1


def test_ends_of_the_unit_interval_and_impossible_tokens():
    law = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]])
    u = torch.tensor([0.0, 0.25 - 1e-9, 0.25 + 1e-9, 1 - 2**-53], dtype=torch.float64)
    assert draw(law.expand(4, -1), u).tolist() == [1, 1, 3, 3]
    tiny = torch.full((1, 1000), 1e-30)
    tiny[0, 500] = 0.0
    drawn = draw(tiny.expand(4000, -1), uniforms(0, Purpose.DRAW, 4000, 1).squeeze(1))
    assert not (drawn == 500).any() and drawn.unique().numel() > 900
    assert draw(law.half().expand(2, 2, -1), torch.zeros(2, 2, dtype=torch.float64)).shape == (2, 2)


def test_a_probability_of_a_billionth_is_not_lost():
    """One of 10^-9 beside a certain one: the uniforms that fall on it find it, and only those."""
    law = torch.zeros(1, 50_000)
    law[0, 3], law[0, 49_000] = 1.0, 1e-9
    u = torch.tensor([1 - 2e-9, 1 - 0.5e-9], dtype=torch.float64)
    assert draw(law.expand(2, -1), u).tolist() == [3, 49_000]
