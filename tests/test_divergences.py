"""Likelihoods under a plan, and both divergences, against enumeration."""

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.orders import make_order
from eigentime.samplers.teacher import planned_log_likelihood
from eigentime.tasks.divergences import from_data, from_samples
from worlds import random_table, states


def every(model):
    return torch.from_numpy(states(len(model.process.kernel.values), model.length))


@pytest.mark.parametrize("counts", [(4,), (1, 3), (2, 2), (1, 1, 1, 1)])
def test_likelihood_under_a_plan_is_a_law_and_that_of_its_samples(counts):
    model = random_table(3, 4, concentration=0.3)
    plan = et.Plan(counts, make_order("raster"), 4)
    x = every(model)
    log_q = planned_log_likelihood(model, plan, x)
    q = log_q.exp()
    assert q.sum().item() == pytest.approx(1.0, abs=1e-9)
    drawn = et.sample(model, plan, 20_000, seed=3)
    frequencies = torch.bincount((drawn * torch.tensor([27, 9, 3, 1])).sum(1), minlength=81) / len(drawn)
    assert ((frequencies - q).abs() < 5 * (q / len(drawn)).sqrt() + 1e-4).all()
    p = model.law.double()
    if len(counts) == 4:  # one at a time is exact
        np.testing.assert_allclose(q, p, atol=1e-9)
    split = planned_log_likelihood(model, plan, x, batch_size=7)
    np.testing.assert_allclose(split, log_q, atol=1e-12)


def test_both_divergences_cover_the_enumerated_ones():
    model = random_table(3, 4, concentration=0.3)
    plan = et.Plan((2, 2), make_order("raster"), 4)
    p, q = model.law.double(), planned_log_likelihood(model, plan, every(model)).exp()
    data, samples = model.draw(4000, 1), et.sample(model, plan, 4000, seed=2)
    forward = from_data(model, data, planned_log_likelihood(model, plan, data))
    backward = from_samples(model, samples, planned_log_likelihood(model, plan, samples))
    for found, truth in (
        (forward, (torch.xlogy(p, p) - torch.xlogy(p, q)).sum().item()),
        (backward, (torch.xlogy(q, q) - torch.xlogy(q, p)).sum().item()),
    ):
        assert truth > 0.05 and abs(found.mean - truth) < 4 * found.stderr and found.stderr < truth / 3
    # the law's own samples are no distance away
    own = planned_log_likelihood(model, et.Plan((1,) * 4, make_order("raster"), 4), data)
    assert abs(from_data(model, data, own).mean) < 1e-9


def test_what_has_no_planned_likelihood_is_refused():
    plan = et.Plan((2, 2), make_order("raster"), 4)
    with pytest.raises(et.EigentimeError, match="absorbing"):
        planned_log_likelihood(random_table(3, 4, "uniform"), plan, torch.zeros(1, 4, dtype=torch.long))
    model = random_table(3, 4)
    with pytest.raises(et.EigentimeError, match="differ"):
        planned_log_likelihood(model, plan, torch.zeros(1, 5, dtype=torch.long))
    with pytest.raises(et.EigentimeError, match="holds token 3"):
        planned_log_likelihood(model, plan, torch.full((1, 4), 3))
