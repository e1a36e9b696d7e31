import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import eigentime as et
from eigentime.cli import main


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["eigentime", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def test_from_measuring_to_samples(run, tmp_path):
    code, out, err = run("measure", "countdown-exact", "--budget", "80", "--out", "c.safetensors", "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert summary["evaluations"] <= 80
    assert summary["quantities"]["W1 bound, activity"]["mean"] == "inf"
    code, out, _ = run("schedule", "c.safetensors", "--strategy", "ods", "--steps", "4", "--out", "g.json", "--json")
    assert code == 0 and len(json.loads(out)["times"]) == 5
    assert json.loads(out)["path_error"]["mean"] == pytest.approx(46, rel=0.25)
    arguments = ("sample", "countdown-exact", "--schedule", "g.json", "--num-samples", "5", "--json", "--out", "x.npy")
    code, out, _ = run(*arguments)
    assert code == 0 and json.loads(out)["nfe"] == 4
    tokens = np.load(tmp_path / "x.npy")
    assert tokens.shape == (5, 256) and json.loads(out)["tokens"] == tokens.tolist()
    _, again, _ = run(*arguments)
    assert json.loads(again) == json.loads(out)


def test_texts_for_people(run):
    code, out, _ = run("measure", "binomial-exact", "--kernel", "uniform", "--budget", "200")
    assert code == 0 and "sequence evaluations" in out and "1024 × 1024" in " ".join(out.split())
    code, out, _ = run("schedule", "clock.safetensors", "--strategy", "wds", "--steps", "3")
    assert code == 0 and "Foresti" in out and "nats" in out
    code, out, _ = run("schedule", "binomial-exact", "--strategy", "cosine", "--steps", "3")
    assert code == 0 and "MaskGIT" in out
    code, out, _ = run("sample", "binomial-exact", "--strategy", "uniform", "--steps", "3", "--num-samples", "20")
    assert code == 0 and "hellinger" in out
    code, out, _ = run("models", "--json")
    names = {row["name"] for row in json.loads(out)}
    assert code == 0 and {"binomial-exact", "countdown-exact", "countdown", "countdown-uniform"} < names
    code, out, _ = run("models")
    assert code == 0 and "et.wrap" in out


def test_compare_writes_rows(run, tmp_path):
    code, out, err = run(
        *("compare", "binomial-exact", "--kernel", "uniform", "--strategies", "uniform,jys,eds,ods", "--steps", "2,4"),
        *("--samples", "64", "--jys-samples", "32", "--json", "rows.json", "--figure", "f.png"),
    )
    assert code == 0, err
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["strategy"], row["steps"]) for row in rows] == [
        (strategy, steps) for strategy in ("uniform", "jys", "eds", "ods") for steps in (2, 4)
    ]
    for row in rows:
        assert {"strategy", "steps", "nfe", "seconds", "sampler", "metrics", "path_error"} <= set(row)
        assert set(row["metrics"]["hellinger"]) == {"mean", "stderr"} == set(row["path_error"])
        assert row["nfe"] == row["steps"]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "path error in nats" in out


def test_conditioning_from_a_file(run, tmp_path):
    given = np.full(256, -1)
    given[:3] = [5, 4, 3]
    np.save(tmp_path / "given.npy", given)
    code, out, _ = run(
        *("sample", "countdown-exact", "--strategy", "uniform", "--steps", "2", "--num-samples", "3"),
        *("--given", "given.npy", "--json"),
    )
    assert code == 0
    assert np.array(json.loads(out)["tokens"])[:, :3].tolist() == [[5, 4, 3]] * 3


COMMANDS = ["measure", "schedule", "plan", "sample", "compare", "demo", "models", "train", "nll", "recommend", "report"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0 and f"eigentime {command}" in " ".join(out.split()).split("Example:")[1]


BAD = [
    (["measure", "nonsense"], "Unknown model"),
    (["measure", "countdown-exact", "--kernel", "odd"], "Unknown kernel"),
    (["measure", "countdown-exact", "--out", "no/such/folder.safetensors"], "does not exist"),
    (["measure", "countdown-exact", "--data", "missing.npy"], "no data file"),
    (["measure", "countdown-exact", "--data", "text.npy"], "not a .npy array"),
    (["measure", "countdown-exact", "--data", "floats.npy"], "integer tokens"),
    (["measure", "countdown-exact", "--data", "wrong.npy"], "token 77"),
    (["measure", "countdown-exact", "--budget", "3"], "budget"),
    (["schedule", "missing.safetensors"], "no clock file"),
    (["schedule", "text.npy"], "not a whole clock"),
    (["schedule", "countdown-exact", "--strategy", "magic"], "Unknown strategy"),
    (["schedule", "countdown-exact", "--strategy", "ods"], "measure countdown-exact"),
    (["schedule", "countdown-exact", "--strategy", "uniform", "--steps", "0"], "at least 1"),
    (["schedule", "countdown-exact", "--strategy", "jys", "--steps", "5"], "1, 2, 4"),
    (["sample", "countdown-exact", "--strategy", "uniform", "--sampler", "magic"], "Unknown sampler"),
    (["sample", "countdown-exact", "--schedule", "rising.json"], "strictly decrease"),
    (["sample", "countdown-exact", "--strategy", "uniform", "--temperature", "-1"], "temperature"),
    (["compare", "countdown-exact", "--strategies", "ods,magic"], "Unknown strategy"),
    (["compare", "countdown-exact", "--steps", "2,x"], "whole numbers"),
    (["compare", "countdown-exact", "--samples", "1"], "at least 2"),
    (["measure", "countdown", "--kernel", "uniform"], "trained on the absorbing kernel"),
    (["measure", "countdown-exact", "--orders", "sideways"], "Unknown order"),
    (["measure", "countdown-exact", "--orders", "sobol", "--shape", "a,b"], "whole numbers"),
    (["plan", "missing.safetensors"], "no clock file"),
    (["nll", "countdown-exact"], "--schedule"),
    (["nll", "countdown-exact", "--sampler", "threshold", "--tolerance", "0"], "tolerance"),
    (["nll", "countdown-exact", "--sampler", "threshold", "--keep", "text.npy"], "no batches"),
    (["recommend", "countdown-exact"], "how many evaluations"),
    (["train", "poetry"], "Unknown recipe"),
    (["train", "binomial", "--steps", "0"], "must be positive"),
    (["train", "binomial", "--start-from", "countdown-exact"], "not a trained network"),
    (["reproduce", "countdown", "--model", "binomial"], "not a countdown network"),
    (["reproduce", "binomial", "--samples", "2"], "at least 16"),
    (["reproduce", "stories", "--network", "text"], "not a network of stories"),
    (["compare", "countdown-exact", "--json", "no/such/rows.json"], "does not exist"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_gets_one_sentence_exit_code_2_and_no_file(run, tmp_path, words, sentence):
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "floats.npy", np.zeros((2, 256)))
    np.save(tmp_path / "wrong.npy", np.full((2, 256), 77))
    process = et.load("countdown-exact").process
    content = et.schedule("uniform", steps=3, process=process).to_dict()
    (tmp_path / "rising.json").write_text(json.dumps({**content, "times": [1, 0.2, 0.5, 0]}))
    before = set(tmp_path.iterdir())
    code, out, err = run(*words)
    assert code == 2
    assert sentence in err and err.startswith("eigentime: ") and err.count("\n") == 1
    assert out == ""
    assert set(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    code, _, err = run("measure", "countdown-exact", "--out", "closed/c.safetensors")
    assert code == 2 and "cannot be written" in err


def test_unknown_options_and_the_installed_command():
    command = Path(sys.executable).parent / "eigentime"
    wrong = subprocess.run([command, "measure", "--nonsense"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "No such option" in wrong.stderr
    version = subprocess.run(
        [sys.executable, "-c", "import eigentime; print(eigentime.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == et.__version__


def test_demo_tells_the_whole_story(run, tmp_path):
    code, out, _ = run("demo", "--samples", "2", "--json", "--out", "story")
    rows = json.loads(out)
    assert code == 0 and {row["strategy"] for row in rows} > {"uniform", "wds", "jys", "ods", "plan"}
    made = {path.name for path in (tmp_path / "story").iterdir()}
    assert made == {"clock.safetensors", "demo.png", "report.html", "rows.json", "schedules"}
    assert et.Plan.load(tmp_path / "story" / "schedules" / "plan-8.json").steps == 8
