"""Schedules in the forms other samplers take, and files that travel with a model."""

import time
from itertools import pairwise

import numpy as np
import pytest

import eigentime as et


@pytest.fixture
def process():
    return et.Process(et.Absorbing(5), et.LogLinear())


def test_exports_keep_the_schedule(process):
    grid = et.schedule("cosine", steps=8, process=process)
    steps = et.diffusers_timesteps(grid)
    assert len(steps) == 8 and steps[0] == 999 and all(a > b for a, b in pairwise(steps))
    assert np.allclose(np.array(steps) / 999, grid.times[:-1], atol=1e-3)
    flow = et.flow_matching_grid(grid)
    assert flow[0] == 0 and flow[-1] == 1 and np.allclose(flow, grid.alphas)
    assert np.allclose(et.flow_matching_grid(grid, exponent=2.0) ** 2, grid.alphas)
    assert np.array_equal(et.published_grid(grid), grid.times[:-1])
    early = et.schedule([1.0, 0.5, 0.01], process=process)  # a published grid: the denoising evaluation is extra
    assert np.array_equal(et.published_grid(early), early.times) and et.flow_matching_grid(early)[-1] == 1
    assert [counts.sum() for counts in et.block_counts([grid, grid], 16)] == [16, 16]
    with pytest.raises(et.EigentimeError, match="too coarse"):
        et.diffusers_timesteps(et.schedule("uniform", steps=64, process=process), train_steps=32)
    with pytest.raises(et.EigentimeError, match="exponent must be"):
        et.flow_matching_grid(grid, exponent=0)


def test_published_steps_of_sedd_are_those_of_our_grid(process):
    """Absorbing, log-linear: SEDD's analytic step between neighbours of the exported grid reveals what ours does."""
    grid = et.schedule("cosine", steps=6, process=process)
    times = et.published_grid(grid)
    for k in range(len(times) - 1):
        sigma = process.noise.sigma(times[k : k + 2]).numpy()
        chance = (np.exp(sigma[0] - sigma[1]) - 1) / (np.exp(sigma[0]) - 1)  # (e^Δσ - 1)·Σ s, Σ s = 1/(e^σ - 1)
        ours = (grid.alphas[k + 1] - grid.alphas[k]) / (1 - grid.alphas[k])
        assert chance == pytest.approx(ours, abs=2e-3)


def test_sharing_in_a_folder(tmp_path, process):
    clock = et.measure(et.load("countdown-exact"), budget=64, orders=["raster"])
    grid, plan = et.schedule(clock, "ods", steps=4), et.plan(clock, 4)
    for thing in (clock, grid, plan):
        thing.save_pretrained(tmp_path / "model")
    assert et.Clock.from_pretrained(tmp_path / "model").fingerprint == clock.fingerprint
    assert np.array_equal(et.Schedule.from_pretrained(tmp_path / "model").times, grid.times)
    assert et.Plan.from_pretrained(tmp_path / "model").counts == plan.counts
    grid.save_pretrained(tmp_path / "model", name="ods-4.json")
    assert et.Schedule.from_pretrained(tmp_path / "model", name="ods-4.json").steps == 4


def test_sharing_through_the_hub(tmp_path, process, monkeypatch):
    """The calls that reach the hub, answered by a folder."""
    hub = pytest.importorskip("huggingface_hub")
    grid = et.schedule("uniform", steps=3, process=process)
    made = []

    class Api:
        def create_repo(self, repository, exist_ok):
            made.append((repository, exist_ok))

        def upload_file(self, *, path_or_fileobj, path_in_repo, repo_id):
            (tmp_path / path_in_repo).write_bytes(path_or_fileobj.read_bytes())
            return f"{repo_id}/{path_in_repo}"

    monkeypatch.setattr(hub, "HfApi", Api)
    monkeypatch.setattr(hub, "hf_hub_download", lambda repository, file, revision: str(tmp_path / file))
    assert grid.push_to_hub("owner/name") == "owner/name/schedule.json" and made == [("owner/name", True)]
    assert np.array_equal(et.Schedule.from_pretrained("owner/name").times, grid.times)


def test_hub_out_of_reach_is_one_sentence(tmp_path, process, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the hub's own library waits between its five tries
    with pytest.raises(et.EigentimeError, match="neither in a folder nor to be had"):
        et.Schedule.from_pretrained("owner/name")
    with pytest.raises(et.EigentimeError, match="hf auth login"):
        et.schedule("uniform", steps=3, process=process).push_to_hub("owner/name")
