"""Hostile files, locks and long runs in small: samples of the campaigns in benchmarks/trust/, and what they rest on."""

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import eigentime as et
from eigentime.alone import alone
from eigentime.files import check_seal, sealed, write_atomically
from eigentime.models.checkpoints.unpickle import read_pickle
from eigentime.reading import Unreadable, check_inside, inflated, parse_json, read_npy, read_tensors, read_yaml
from worlds import random_table

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


def campaign(name, *options):
    command = [sys.executable, str(ROOT / "benchmarks" / "trust" / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    return json.loads(done.stdout.splitlines()[-1])


def test_changed_files_are_refused_or_equal():
    kinds = "clock,schedule,plan,sampler with a plan,kept batches,model folder,settings of a plan,array"
    found = campaign("fuzz", "--inputs", "60", "--kinds", kinds)
    assert found["inputs"] > 400 and found["refused"] > 300
    assert found["wrong"] == []


def test_the_fuzzer_sees_what_a_careless_reader_does(tmp_path):
    """Otherwise its zeros would say nothing."""
    sys.path[:0] = [str(ROOT / "benchmarks" / "trust"), str(ROOT / "benchmarks")]
    try:
        from fuzz import Reader
        from readers import Kind
        from watch import Watch
    finally:
        del sys.path[:2]
    watch = Watch()

    def verdict(read, content, sealed=True):
        def careless(folder):
            data = (folder / "x").read_bytes()
            return "good" if data == b"good" else read(data)

        return Reader(Kind("x", {"x": b"good"}, careless, str, sealed), watch, tmp_path).judged({"x": content})[0]

    class Runs:
        def __reduce__(self):
            return os.system, ("true",)

    assert verdict(pickle.loads, pickle.dumps(Runs())) == "code"
    assert verdict(lambda data: Path("/etc/hostname").read_text(), b"bad") == "escape"
    assert verdict(lambda data: eval(data.decode()), b"1 + 1") == "code"
    assert verdict(lambda data: int(data), b"bad") == "raw"
    assert verdict(lambda data: data.decode(), b"bad") == "different"
    assert verdict(lambda data: data.decode(), b"bad", sealed=False) == "changed"
    assert verdict(lambda data: np.ones(80 * 2**20).sum(), b"bad") == "memory"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[" * 101 + "]" * 101, "nests more than 100 levels"),
        ("[" * 10**6, "nests more than 100 levels"),
        ("9" * 21, "a whole number of 21 digits"),
        ('{"a": 1, "a": 2}', "says something twice"),
        ('{"a": ', "in line 1"),
    ],
)
def test_json_is_read_strictly(text, what):
    with pytest.raises(Unreadable, match=what):
        parse_json(text)
    assert parse_json('{"a": "[[\\"[", "b": [18446744073709551615]}') == {"a": '[["[', "b": [2**64 - 1]}


def test_yaml_does_not_unfold(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &a {b: [1, 2]}\nc: *a\n")
    assert read_yaml(path) == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}}
    levels = "\n".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 9))
    for text, what in (
        (f"a0: &a0 x\n{levels}", "unfolds into more than"),
        ("a: &a [*a]", "unfolds into more than"),
        ("a: [", "no YAML, line 1"),
        ("a: " + "[" * 120 + "]" * 120, "nests more than"),
        ("a: !!python/object/apply:os.system [true]", "no YAML"),
        ("a: " + "9" * 30, "whole number of 30 digits"),
        ("x" * 300_000, "more than the 262,144"),
    ):
        path.write_text(text)
        with pytest.raises(Unreadable, match=what):
            read_yaml(path)


def test_arrays_are_as_long_as_they_say(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6).reshape(2, 3))
    assert read_npy(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    whole = path.read_bytes()
    for old, new in ((b"(2, 3)", b"(2,-3)"), (b"(2, 3)", b"(9, 9)"), (b"'<i8'", b"'|O' ")):
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(Unreadable, match="does not fit what follows"):
            read_npy(path)


def test_what_is_compressed_is_bounded():
    import gzip
    import zlib

    assert inflated(zlib.compress(b"x" * 100), 100) == b"x" * 100 == inflated(gzip.compress(b"x" * 100), 100, True)
    for data in (zlib.compress(b"x" * 101), zlib.compress(b"x" * 50)[:-3]):
        with pytest.raises(Unreadable, match="cut short or unfolds"):
            inflated(data, 100)


def test_names_stay_inside_their_folder(tmp_path):
    check_inside(["a.safetensors", "b/c.safetensors"])
    for name in ("../a", "/etc/passwd", "a/../../b", 5):
        with pytest.raises(Unreadable, match="outside its folder"):
            check_inside([name])
    grid = et.schedule("uniform", steps=2, model=random_table(3, 4))
    with pytest.raises(et.EigentimeError, match="outside its folder"):
        grid.save_pretrained(tmp_path, "../grid.json")


def test_pipes_and_devices_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(Unreadable, match="no regular file"):
            read_tensors(path)


@pytest.mark.parametrize("legacy", [False, True])
def test_pickles_of_both_forms_hold_what_they_held(tmp_path, legacy):
    layer = torch.nn.Linear(3, 4)
    inside = {
        "state_dict": layer.state_dict(),
        "shadow": list(layer.parameters()),
        "parts": [torch.ones(4, 4)[1:, ::2], torch.zeros(0, 3), torch.tensor(True), torch.ones(3).bfloat16()],
        "words": {"a": (1, 2.5, None, "x")},
    }
    torch.save(inside, tmp_path / "x.pt", _use_new_zipfile_serialization=not legacy)
    found = read_pickle(tmp_path / "x.pt")
    assert found["words"] == inside["words"]
    for name, value in inside["state_dict"].items():
        assert torch.equal(found["state_dict"][name], value)
    for one, other in zip([*found["shadow"], *found["parts"]], [*inside["shadow"], *inside["parts"]], strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


def test_a_seal_does_not_care_for_kinds_of_keys():
    check_seal(json.loads(json.dumps(sealed({"a": {1: 2.5, 10: [None], 9: "x"}}))), "file", "again")


def test_training_state_and_model_folder_are_sealed(tmp_path):
    from eigentime.models.ddit import DDiT, DDiTConfig
    from eigentime.models.trained import Trained, save_folder

    process = et.Process(et.Absorbing(4), et.LogLinear())
    save_folder(Trained(DDiT(DDiTConfig(4, 8, 1, 2)), process, 4, "tiny", {}), tmp_path)
    weights = tmp_path / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1  # a small change of one weight
    weights.write_bytes(data)
    with pytest.raises(et.EigentimeError, match="checksum differs"):
        et.load(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    del config["sha256"], config["weights_sha256"]
    (tmp_path / "config.json").write_text(json.dumps({**config, "network": {**config["network"], "blocks": 10**6}}))
    with pytest.raises(et.EigentimeError, match=r"blocks must be a whole number of at least 1 and at most 1000"):
        et.load(str(tmp_path))


HOLDER = """
import sys, time
from eigentime.alone import alone
with alone(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_run_on_one_output_says_so(tmp_path):
    rows = tmp_path / "rows.json"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(rows)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        assert holder.stdout.readline() == "held\n"
        model = random_table(3, 4)
        with pytest.raises(et.EigentimeError, match=r"Another run works on .*rows\.json"):
            et.compare(model, ["uniform"], [2], samples=4, data=model.draw(8, 1), keep=rows)
        assert not rows.exists()
    finally:
        holder.kill()
        holder.wait()
    et.compare(model, ["uniform"], [2], samples=4, data=model.draw(8, 1), keep=rows)  # the lock went with its holder
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.json"]


def test_locks_of_one_process_and_of_nobody(tmp_path):
    again = pytest.raises(et.EigentimeError, match="Another run")
    with alone(tmp_path / "x"), alone(tmp_path / "y"), alone(None), again, alone(tmp_path / "x"):
        raise AssertionError
    assert not list(tmp_path.iterdir())
    with pytest.raises(et.EigentimeError, match="cannot be worked on"), alone(tmp_path / "nowhere" / "x"):
        raise AssertionError


def test_interrupted_runs_end_with_the_same_result():
    found = campaign("faults", "--faults", "3", "--jobs", "sample,nll")
    assert found["faults"] >= 6 and found["survived"] == found["faults"]
    assert found["lost"] == 0 and found["wrong"] == []


def test_what_a_killed_writer_leaves_is_taken_away(tmp_path):
    path = tmp_path / "a.json"
    text = (
        "import os, sys; from eigentime import files; os.replace = lambda *_: os.kill(os.getpid(), 9);"
        "files.write_atomically(sys.argv[1], 'x')"
    )
    assert subprocess.run([sys.executable, "-c", text, str(path)], env=ENVIRONMENT).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    write_atomically(path, "y")
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_resumed_training_run_keeps_the_losses_it_has_seen(tmp_path):
    """They are part of its log, and were once lost."""
    from eigentime.models.ddit import DDiTConfig
    from eigentime.training import Recipe, train
    from eigentime.training.loop import Interrupted

    table = random_table(3, 4)
    shape = DDiTConfig(size=4, width=8, blocks=1, heads=1, cond_width=4)
    recipe = Recipe("tiny", table.process, 4, shape, steps=40, batch=2, learning_rate=1e-3, warmup=2)

    def run(folder, advance=lambda *_: None):
        train(recipe, table.draw(16, 1), table.draw(8, 2), folder, advance=advance)
        return json.loads((folder / "log.json").read_text())

    whole = run(tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(tmp_path / "broken", lambda step, *_: os.kill(os.getpid(), signal.SIGTERM) if step == 3 else None)
    assert run(tmp_path / "broken") == whole


def test_many_cycles_leave_the_memory_where_it_was():
    found = campaign("soak", "--cycles", "10")
    assert found["cycles"] == 10 and found["growth"] < 60, found  # the warm-up is not over yet
