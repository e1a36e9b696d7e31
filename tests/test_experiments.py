"""The experiments on real data, in miniature: what they write can be read, resumed and looked at."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import eigentime as et
from eigentime.cli.app import app
from eigentime.experiments import dynamics, images, music
from eigentime.experiments.kept import timed
from eigentime.report.tiles import tile
from test_data import needs_tunes


@needs_tunes
def test_music_experiment(tmp_path):
    options = {
        "songs": 6,
        "samplers": ["tau-leaping"],
        "steps": [2, 4],
        "reference_steps": 4,
        "budget": 32,
        "jys_samples": 4,
    }
    content = music.Music(**options).run(tmp_path)
    rows = content["rows"]["tau-leaping"]
    assert {(row["strategy"], row["steps"]) for row in rows} == {(s, k) for s in music.STRATEGIES for k in (2, 4)}
    for row in rows:
        assert 0 <= row["metrics"]["outlier"]["mean"] <= 1 and 0 < row["metrics"]["hellinger"]["mean"] < 1
        assert "hellinger_4" in row["metrics"]  # distance from the reference samples
    assert content["real"]["hellinger"]["mean"] == 0
    kept = json.loads((tmp_path / "music.json").read_text())
    assert kept["provenance"]["settings"]["songs"] == 6 and len(kept["dynamics"]) == 4
    assert len(list((tmp_path / "midi").glob("*.mid"))) == 6 * (2 + len(music.STRATEGIES))
    for picture in ("music.png", "rolls.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
    assert not list(tmp_path.glob("*.partial.json"))
    arguments = ["--songs", "4", "--steps", "2", "--reference-steps", "2", "--samplers", "euler", "--budget", "16"]
    arguments += ["--jys-samples", "4", "--out", str(tmp_path / "cli")]
    result = CliRunner().invoke(app, ["reproduce", "music", *arguments], catch_exceptions=False)
    assert result.exit_code == 0 and "hellinger" in result.stdout
    with pytest.raises(et.EigentimeError, match="too few to measure on"):
        music.Music(songs=10_000).run(tmp_path)
    with pytest.raises(et.EigentimeError, match="not a network for 256 steps"):
        music.Music(model="countdown").run(tmp_path)


@needs_tunes
def test_a_network_that_continues_takes_held_out_beginnings(tmp_path):
    model = et.load("music")
    grid = et.schedule("uniform", steps=2, model=model)
    tokens = et.sample(model, grid, 3, seed=5)
    from eigentime.tasks import TASKS

    assert torch.equal(tokens[:, :32], TASKS["music"].draw(3, 5)[:, :32])
    np.save(tmp_path / "tunes.npy", tokens.numpy())
    result = CliRunner().invoke(app, ["midi", str(tmp_path / "tunes.npy"), "--out", str(tmp_path / "midi")])
    assert result.exit_code == 0 and len(list((tmp_path / "midi").glob("*.mid"))) == 3
    np.save(tmp_path / "tunes.npy", tokens.numpy() + 200)
    with pytest.raises(et.EigentimeError, match="integers from 0 to 128"):
        CliRunner().invoke(
            app, ["midi", str(tmp_path / "tunes.npy"), "--out", str(tmp_path / "midi")], catch_exceptions=False
        )


def test_image_experiment_on_digits(tmp_path):
    pytest.importorskip("sklearn")
    content = images.Images(model="digits", images=48, steps=[2, 16], budget=64).run(tmp_path)
    cells = {(row["strategy"], row["steps"]): row["metrics"]["frechet_pixels"]["mean"] for row in content["rows"]}
    assert set(cells) == {(s, k) for s in images.STRATEGIES for k in (2, 16)}
    assert all(cells[strategy, 16] < cells[strategy, 2] for strategy in images.STRATEGIES)
    assert content["real"]["frechet_pixels"]["mean"] < cells["uniform", 2]
    for picture in ("digits.png", "samples.png"):
        assert (tmp_path / picture).stat().st_size > 10_000
    assert content["judge"] == "pixels" and content["fid"] == []
    with pytest.raises(et.EigentimeError, match="not a bundled network for images"):
        images.Images(model="countdown").run(tmp_path)


def test_dynamics_of_bundled_networks(tmp_path):
    pytest.importorskip("sklearn")
    content = dynamics.Dynamics(models=["countdown", "digits"], budget=64).run(tmp_path)
    assert {found["kernel"] for found in content.values()} == {"absorbing"}
    assert (tmp_path / "dynamics.png").stat().st_size > 10_000
    with pytest.raises(et.EigentimeError, match="not a bundled network"):
        dynamics.Dynamics(models=["nothing"]).run(tmp_path)


def test_images_as_one_picture():
    sheet = tile(np.arange(3 * 12).reshape(3, 12) % 17, (3, 2, 2), 16, columns=2)
    assert sheet.shape == (5, 5, 3) and (sheet[2] == 1).all() and sheet.min() >= 0 and sheet.max() <= 1
    assert sheet[0, 0].tolist() == [0, 4 / 16, 8 / 16]
    assert tile(np.zeros((1, 64)), (1, 8, 8), 16).shape == (8, 35, 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["images", "--quick", "--full"], "Choose one"),
        (["images", "--fid", "uniform"], "uniform:64"),
        (["images", "--images", "3"], "at least 16"),
        (["music", "--songs", "1"], "at least 4"),
        (["music", "--samplers", "magic"], "Unknown sampler"),
        (["music", "--steps", "3"], "powers of two"),
        (["images", "--strategies", "jys"], "leave it out"),
        (["images", "--model", "digits", "--fid", "uniform:8"], "CIFAR-10's shape"),
        (["dynamics", "--models", "nothing"], "not a bundled network"),
        (["mnist", "--model", "digits"], "not a bundled network of MNIST"),
        (["mnist", "--images", "3"], "at least 32 images"),
        (["mnist", "--steps", "3"], "powers of two"),
    ],
)
def test_bad_requests_get_a_sentence(arguments, sentence):
    with pytest.raises(et.EigentimeError, match=sentence):
        CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=False)


def test_what_an_interrupted_run_took_is_not_forgotten(tmp_path, monkeypatch):
    path, now = tmp_path / "run.partial.took.json", iter([0.0, 30.0, 100.0, 112.0, 112.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    with pytest.raises(KeyboardInterrupt), timed(path):
        raise KeyboardInterrupt
    with timed(path) as took:
        found = took()
    assert found["seconds"] == 30.0 + 12.0 and found["processor_seconds"] >= 0
    path.write_text("not json")
    monkeypatch.undo()
    with timed(path) as took:
        assert took()["seconds"] < 1
