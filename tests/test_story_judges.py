"""Both divergences from a known law as the stories experiment measures them, against enumeration."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.experiments.calibrated import Rule, evaluations_of, setting_for
from eigentime.experiments.divergent import Divergent
from eigentime.experiments.stories import StoryTelling
from eigentime.experiments.trial import ADAPTIVE, Cell
from eigentime.orders import make_order
from eigentime.report.side_by_side import Told, as_html, as_markdown
from eigentime.report.stories import agreement, line_of
from eigentime.report.stories import evaluations_of as evaluations_shown
from eigentime.samplers.teacher import log_likelihood
from worlds import random_table, states

MANY = 3000


def every(model):
    return torch.from_numpy(states(len(model.process.kernel.values), model.length))


def kl(p, q):
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum().item()


@pytest.fixture(scope="module")
def trial():
    """A network that is wrong about the data: an exact model of another law."""
    law, model = random_table(3, 4, seed=1, concentration=2.0), random_table(3, 4, seed=2, concentration=2.0)
    return Divergent(
        model,
        et.measure(model, budget=64, orders=["raster"]),
        seed=3,
        judge=lambda x, log_p: {"surprise": -log_p - law.entropy},
        law=law,
        held_out=law.draw(MANY, 5),
        references=2,
    )


def agrees(value, truth):
    return abs(value["mean"] - truth) < 4 * value["stderr"] and value["stderr"] < abs(truth) / 4


@pytest.mark.parametrize(
    "cell",
    [
        Cell(ADAPTIVE, 0, MANY, et.EntropyBounded(1.5)),
        Cell("uniform", 2, MANY, "entropy"),
        Cell("plan-raster", 2, MANY),
    ],
    ids=lambda cell: cell.strategy,
)
def test_divergences_of_a_sampler_with_a_law_of_its_own(trial, cell):
    row, planned = trial.row(cell), trial.planned(cell)
    sampler = "ancestral" if isinstance(planned, et.Plan) else cell.sampler
    p, q = trial.law.law.double(), log_likelihood(trial.model, every(trial.law), planned, sampler).exp()
    assert row["exact"]
    assert agrees(row["metrics"]["kl_data"], kl(p, q)) and agrees(row["metrics"]["kl_samples"], kl(q, p))
    assert agrees(row["metrics"]["reverse"], kl(q, trial.model.law.double())), "one at a time is the model's own law"
    assert agrees(row["metrics"]["surprise"], -(torch.xlogy(q, p)).sum().item() - trial.law.entropy)
    assert np.mean(row["nats"]) == pytest.approx(row["metrics"]["kl_data"]["mean"], abs=1e-3)


def test_divergences_are_bounds_where_chance_chooses_places(trial):
    """Two steps, each token in the first with probability 1/2: a mixture over all sixteen sets."""
    trial = replace(trial, jys={2: et.schedule([1.0, 0.5, 0.0], process=trial.model.process)})
    row = trial.row(Cell("jys", 2, MANY))
    p, x, chance = trial.law.law.double(), every(trial.law), trial.jys[2].alphas[1]
    mixture, forward, backward = torch.zeros(len(x), dtype=torch.float64), 0.0, 0.0
    for chosen in states(2, 4).astype(bool):
        first = int(chosen.sum())
        counts = tuple(count for count in (first, 4 - first) if count)
        order = [*np.flatnonzero(chosen).tolist(), *np.flatnonzero(~chosen).tolist()]
        q = log_likelihood(trial.model, x, et.Plan(counts, make_order(order), 4)).exp()
        weight = chance**first * (1 - chance) ** (4 - first)
        mixture += weight * q
        forward, backward = forward + weight * kl(p, q), backward + weight * kl(q, p)
    assert not row["exact"]
    assert agrees(row["metrics"]["kl_data"], forward) and forward >= kl(p, mixture)
    assert agrees(row["metrics"]["kl_samples"], backward) and backward >= kl(mixture, p)


def test_without_masks_samples_are_judged_and_no_divergence_is_claimed():
    model = random_table(3, 4, "uniform")
    trial = Divergent(
        model,
        et.measure(model, budget=64),
        judge=lambda x, log_p: {"seen": log_p},
        law=model,
        held_out=model.draw(8, 5),
    )
    row = trial.row(Cell("uniform", 2, 8))
    assert set(row["metrics"]) == {"seen"} and "nats" not in row


def test_rules_are_set_to_take_as_many_evaluations_as_they_should():
    model = random_table(3, 5, seed=1)
    rule, data = Rule(et.EntropyBounded, 20.0, 0.01), model.draw(64, 3)
    costs = evaluations_of(model, rule, data, 3.5)
    assert costs == sorted(costs) and costs[0] == 1 and costs[-1] > 3.5 and all(cost <= 3.5 for cost in costs[:-1])
    setting = setting_for(rule, costs, 2.5)
    assert setting_for(rule, costs, 9.0) is None and setting_for(rule, costs, 0.5) is None
    near = evaluations_of(model, Rule(et.EntropyBounded, setting, setting), data, 0.0)[0]
    assert near == pytest.approx(2.5, abs=0.5)


def row_of(strategy, sampler, steps, nfe, **means):
    metrics = {name: {"mean": mean, "stderr": 1.0} for name, mean in means.items()}
    return {"strategy": strategy, "sampler": sampler, "steps": steps, "nfe": nfe, "metrics": metrics} | {
        "path_error": {"mean": means.get("kl_data", np.nan), "stderr": 1.0}
    }


def test_certificates_are_compared_among_as_many_evaluations():
    rows = [
        row_of("uniform", "ancestral", 4, 4, kl_data=4.0, kl_samples=1.0, reverse=1.0),
        row_of("ods", "ancestral", 4, 4, kl_data=3.0, kl_samples=2.0, reverse=2.0),
        row_of("uniform", "entropy", 4, 4, kl_data=2.0, kl_samples=3.0, reverse=3.0),
        row_of("adaptive", "threshold (confidence 0.1)", 0, 4.3, kl_data=1.0, kl_samples=4.0, reverse=4.0),
        row_of("adaptive", "prefix (factor 3)", 0, 5.66, kl_data=9.0, kl_samples=9.0, reverse=0.0),  # between 4 and 8
    ]
    assert list(map(line_of, rows)) == ["uniform", "ods", "entropy", "threshold", "prefix"]
    assert list(map(evaluations_shown, rows)) == [4, 4, 4, 4, 0]
    found = agreement(rows)
    assert found["kl_data, kl_samples"]["4"] == {"ways": 4, "rank_correlation": -1.0}
    assert found["reverse, kl_samples"]["4"]["rank_correlation"] == 1.0


def test_pages_hold_what_was_told_and_nothing_else():
    real = Told("the law itself", None, [["Once", " <b>"]], [[0.1, 1.0]])
    told = [Told("ods", k, [["Once", " a|b", "\n<script>"]], [[0.1, 2.0, 11.0]]) for k in (4, 8)]
    page = as_html(real, told, 1, "stories")
    assert "<script>" not in page and "&lt;script&gt;" in page and page.count("6.50 nats per token") == 2
    assert "title='11.0 nats'" in page and "0.1 nats" not in page
    text = as_markdown(real, told, 1, "stories")
    assert "| 4 evaluations | |" in text and "| ods (6.5) | a\\|b <script> |" in text and "“Once …”" in text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "text"}, "not a network of stories; they are stories, stories-sedd, stories-uniform"),
        ({"samples": 4}, "at least 8, not 4"),
        ({"steps": [4, 12]}, "not in 12"),
        ({"steps": [256]}, "not in 256"),
    ],
)
def test_what_cannot_be_told_is_refused_in_a_sentence(settings, message):
    with pytest.raises(et.EigentimeError, match=message):
        StoryTelling(**settings).check()
