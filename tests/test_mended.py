"""Defects that were mended once, so that they stay mended."""

import copy
import io
from dataclasses import replace

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.cli.own import function_named
from eigentime.models import Trained
from eigentime.models.ddit import DDiTConfig
from eigentime.models.trained import build
from eigentime.report.figures import comparison_figure
from worlds import random_table


def test_a_masks_own_score_does_not_hide_the_others():
    """With very much noise the mask's column, a log-score of 0, is far above all that data can hold."""
    process = et.Process(et.Absorbing(5), et.Exponential())
    data = torch.randint(0, 4, (8, 4), generator=torch.Generator().manual_seed(0))

    def score(x, sigma):
        rows = (-sigma[:, None, None] - np.log(4)).expand(*x.shape, 5).clone()  # α/(1-α)·¼ where α is tiny
        rows[..., 4] = 0.0
        return rows

    clock = et.measure(et.wrap(score, process, length=4, predicts="score", time="sigma"), data, budget=32)
    assert np.isfinite(clock.measured.entropy).all()
    assert clock.measured.entropy[:, 0].sum() / clock.measured.masked[:, 0].sum() == pytest.approx(np.log(4), rel=1e-5)


def test_no_mask_is_drawn_by_a_network_of_cavities_on_mixed_noise():
    torch.manual_seed(0)
    network = build(DDiTConfig(8, 16, 1, 2, head="cavity", time_conditioned=True))
    model = Trained(network, et.Process(et.Mixture(8), et.LogLinear()), 6, "mixed", {})
    assert et.sample(model, et.schedule("uniform", steps=4, model=model), 50).max() < 7


def test_log_probabilities_may_include_the_masks():
    process = et.Process(et.Absorbing(6), et.LogLinear())
    even = et.wrap(
        lambda x: torch.zeros(*x.shape, 6).log_softmax(-1), process, length=8, time=None, predicts="posterior"
    )
    assert et.sample(even, et.schedule("uniform", steps=2, model=even), 4).max() < 5


def test_samples_are_copied_and_saved_like_a_tensor():
    model = et.load("binomial-exact")
    x = et.sample(model, et.schedule("uniform", steps=2, model=model), 4)
    again = copy.deepcopy(x)
    assert torch.equal(again, x) and again.nfe == x.nfe and again.data_ptr() != x.data_ptr()
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer), x)


def test_measuring_on_own_samples_keeps_the_prompts_of_the_task(monkeypatch):
    model = et.load("countdown")
    task = copy.copy(model.task)
    object.__setattr__(task, "given", 8)
    model.task = task
    clock = et.measure(model, "self", budget=32, samples=4)
    assert clock.free == 248


def test_networks_that_are_no_numbers_get_a_sentence_from_ordered_leaps_too():
    process = et.Process(et.Uniform(6), et.LogLinear())
    seen = []

    def breaks(x):
        seen.append(1)
        return torch.full((*x.shape, 6), float("nan") if len(seen) > 1 else 0.0)

    model = et.wrap(breaks, process, length=4, time=None)
    grid = et.schedule("uniform", steps=3, model=model)
    with pytest.raises(et.EigentimeError, match="NaN or infinity"):
        et.sample(model, grid, 4, sampler=et.TauLeaping(ordinal=True))


def test_evaluations_that_ran_out_of_memory_are_not_the_samplers():
    process = et.Process(et.Absorbing(12), et.LogLinear())
    torch.manual_seed(0)
    trunk, head, failures = torch.nn.Embedding(12, 8), torch.nn.Linear(8, 12), [2]

    def forgetful(rows):
        if failures[0] and len(rows) > 8:
            failures[0] -= 1
            raise torch.OutOfMemoryError("out of memory")
        return head(rows)

    model = et.wrap(trunk, process, length=8, time=None, head=forgetful)
    with torch.no_grad():
        x = et.sample(model, None, 16, sampler=et.Threshold(1.1))
    assert x.nfe == 8


def test_an_axis_within_one_decade_has_labels():
    model = random_table(3, 4)
    clock = et.measure(model, model.draw(32, 1), budget=64)
    rows = et.compare(model, ["uniform", "ods"], [2, 3], samples=8, clock=clock, data=model.draw(32, 1))
    for number, row in enumerate(rows):
        row["path_error"] = {"mean": 0.25 + 0.05 * number, "stderr": 0.01}
    figure = comparison_figure(rows, clock, None, 2)
    figure.draw_without_rendering()
    panel = figure.axes[0]
    labels = [label.get_text() for minor in (False, True) for label in panel.get_yticklabels(minor=minor)]
    shown = [place for place in panel.get_yticks(minor=True) if panel.get_ylim()[0] <= place <= panel.get_ylim()[1]]
    assert shown and any(labels)
    assert [label.get_text() for label in panel.get_xticklabels()] == ["2", "3"]
    assert not panel.get_xticklabels(minor=True)


def test_a_clocks_fingerprint_knows_what_its_orders_measured():
    model = random_table(3, 4)
    clock = et.measure(model, model.draw(32, 1), budget=64, orders=["raster"])
    profile = clock.orders["raster"]
    other = replace(clock, orders={**clock.orders, "raster": replace(profile, entropy=profile.entropy * 1.5)})
    assert other.fingerprint != clock.fingerprint


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path):
    for folder, number in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "namesake.py").write_text(f"def build():\n    return {number}\n")
    found = [function_named(f"{tmp_path / folder}/namesake.py:build", "model") for folder in ("a", "b")]
    assert [each() for each in found] == [1, 2]
