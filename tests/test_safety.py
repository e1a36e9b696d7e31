"""Nothing destroyed, nothing silently wrong: files, weights, kept rows, checksums, metrics."""

import json
import os
import shutil
import stat
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import eigentime as et
from eigentime.code import code_fingerprint
from eigentime.files import check_writable, write_atomically
from eigentime.models import zoo
from eigentime.report.tables import certificate_tables
from runs import STORED
from test_checkpoints import put
from test_cli import run  # noqa: F401 - a fixture
from worlds import random_table


def small():
    model = random_table(3, 4)
    return model, et.measure(model, model.draw(32, 1), budget=64, orders=["raster"])


def test_only_regular_files_are_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/null"):
        for write in (check_writable, lambda path: write_atomically(path, "x")):
            with pytest.raises(et.EigentimeError, match="device or a pipe"):
                write(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_links_are_followed_and_modes_kept(tmp_path):
    target, link = tmp_path / "deep" / "target.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink() and target.read_text() == "new" and stat.S_IMODE(target.stat().st_mode) == 0o600
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere" / "file")
    with pytest.raises(et.EigentimeError, match="does not exist"):
        write_atomically(dangling, "x")
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "deep", "fresh", "link.txt"]


def test_weights_that_are_no_numbers_are_refused(tmp_path):
    shutil.copytree(zoo()["countdown"], tmp_path / "ours")
    published = put(tmp_path, "mdlm_notime")
    for folder in (tmp_path / "ours", published):
        weights = load_file(folder / "model.safetensors")
        name = next(key for key in weights if key.endswith("norm1.weight"))
        weights[name][0] = torch.nan
        save_file(weights, folder / "model.safetensors")
        with pytest.raises(et.EigentimeError, match=r"NaN or infinity in .*norm1\.weight"):
            et.load(str(folder))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_network_that_turns_bad_is_noticed_in_measuring_and_sampling(bad):
    model = et.load("countdown")
    with torch.no_grad():
        model.network.output_layer.linear.bias[3] = bad
    data = et.load("countdown-exact").draw(16, 0)
    grid = et.schedule("uniform", steps=2, model=model)
    for use in (lambda: et.sample(model, grid, 2), lambda: et.measure(model, data, budget=16)):
        with pytest.raises(et.EigentimeError, match="NaN or infinity"):
            use()


def test_a_clock_beside_the_weights_is_not_taken_for_them(tmp_path):
    folder = put(tmp_path, "mdlm_notime", "weights.ckpt")
    _, clock = small()
    clock.save_pretrained(folder)
    loaded = et.load(str(folder))
    assert loaded.length == 16 and loaded.process.absorbing
    shutil.copy(folder / "weights.ckpt", folder / "older.ckpt")
    with pytest.raises(et.EigentimeError, match=r"several files .*older.ckpt, weights.ckpt"):
        et.load(str(folder))


def test_one_flipped_bit_of_a_clock_is_noticed(tmp_path):
    _, clock = small()
    path = tmp_path / "clock.safetensors"
    clock.save(path)
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    for place in rng.integers(start, len(whole), 40):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(et.EigentimeError, match="damaged"):
            et.Clock.load(path)
    path.write_bytes(whole.replace(b'\\"evaluations\\": ', b'\\"evaluations\\": 1'))
    with pytest.raises(et.EigentimeError, match=r"damaged|not a whole"):
        et.Clock.load(path)


def test_numbers_that_no_measurement_gives_are_refused_without_a_checksum(tmp_path):
    """Files of 0.1 have none."""
    from safetensors import safe_open
    from safetensors.numpy import save_file as save_arrays

    for name, array, value in (
        ("clock-orders", "entropy", np.nan),
        ("clock-orders", "entropy", -5.0),
        ("clock-orders", "order.1.entropy", np.inf),
        ("clock-uniform", "divergence", np.nan),
        ("clock", "levels", 99.0),
    ):
        with safe_open(STORED / f"{name}.safetensors", "numpy") as file:
            arrays, metadata = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118
        arrays[array] = arrays[array].copy()
        arrays[array].flat[0] = value
        save_arrays(arrays, tmp_path / "bad.safetensors", metadata)
        with pytest.raises(et.EigentimeError, match="damaged clock"):
            et.Clock.load(tmp_path / "bad.safetensors")


def test_schedules_and_plans_edited_by_hand_are_refused(tmp_path):
    _, clock = small()
    for made, load, change in (
        (et.schedule(clock, "ods", steps=3), et.Schedule.load, lambda content: content["times"].__setitem__(1, 0.7)),
        (et.plan(clock, steps=2), et.Plan.load, lambda content: content.update(counts=[1, 3])),
    ):
        path = tmp_path / made.shared_as
        made.save(path)
        load(path)
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        with pytest.raises(et.EigentimeError, match="changed after it was written"):
            load(path)
        del content["sha256"]  # as 0.1 wrote it
        path.write_text(json.dumps(content))
        if load == et.Schedule.load:
            with pytest.raises(et.EigentimeError, match="its α are not those of its times"):
                load(path)
    for counts in ([1.5, 2.5], [0, 4], [5], []):
        with pytest.raises(et.EigentimeError, match="at least one token a step"):
            et.Plan(tuple(counts), made.order, 4)


def test_kept_rows_are_not_taken_for_others(tmp_path):
    model, clock = small()
    data, keep = model.draw(32, 1), tmp_path / "rows.json"
    prompt, fixed = torch.zeros(4, dtype=torch.long), torch.arange(4) < 1

    def compared(model=model, **options):
        given = {"given": prompt, "fixed": fixed, "metrics": lambda x: {"sum": x.double().sum(1)}, **options}
        return et.compare(model, ["uniform", "ods"], [2], samples=8, clock=clock, data=data, keep=keep, **given)

    first = compared()
    assert compared() == first  # nothing changed: nothing made again
    other = random_table(3, 4, seed=9)
    for what, changed in (
        ("metrics", {"metrics": lambda x: {"sum": -x.double().sum(1)}}),
        ("given", {"given": prompt + 1}),
        ("fixed", {"fixed": torch.arange(4) < 2}),
        ("estimator", {"estimator": "cross-entropy"}),
        ("network", {"model": other}),
    ):
        with pytest.raises(et.EigentimeError, match=f"another {what}"):
            compared(**changed)


def test_functions_are_told_apart_by_their_code():
    def made(number):
        return lambda x: x + number

    assert code_fingerprint(made(1)) == code_fingerprint(made(1)) != code_fingerprint(made(2))
    assert code_fingerprint(lambda x: x + 1) != code_fingerprint(lambda x: x + 2)

    class Called:
        def __init__(self, number):
            self.number = number

        def __call__(self, x):
            return x + self.number

    assert code_fingerprint(Called(1)) == code_fingerprint(Called(1)) != code_fingerprint(Called(2))
    assert code_fingerprint(Called(1).__call__) != code_fingerprint(Called(2).__call__)
    assert code_fingerprint(partial(made, 1)) != code_fingerprint(partial(made, 2))
    tables = torch.zeros(2, 5000)
    tables[1, 2500] = 1.0
    assert code_fingerprint(made(tables[0])) != code_fingerprint(made(tables[1]))

    def recursive(n):
        return recursive(n - 1) if n else 0

    assert code_fingerprint(recursive) == code_fingerprint(recursive)


def test_fingerprints_are_the_same_in_every_process():
    text = "from eigentime.code import code_fingerprint as f; print(f(lambda x: x in {'alpha', 'beta', 'gamma'}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(found) == 1


def test_models_of_ones_own_are_told_apart_by_their_networks():
    class Mine(et.Model):
        name, process, length = "mine", et.Process(et.Absorbing(4), et.LogLinear()), 3

        def __init__(self, seed):
            torch.manual_seed(seed)
            self.net = torch.nn.Linear(3, 4)

        def __call__(self, x, t, where=None, cond=None):
            raise AssertionError

    assert Mine(0).fingerprint == Mine(0).fingerprint != Mine(1).fingerprint


def test_metrics_of_ones_own():
    model, clock = small()

    def compared(metrics):
        rows = et.compare(model, ["uniform"], [2], samples=8, clock=clock, data=model.draw(32, 1), metrics=metrics)
        return rows[0]["metrics"]

    found = compared(
        lambda x: {
            "number": 2,
            "pair": (0.5, 0.1),
            "scalar": x.double().mean(),
            "values": x[:, 0].double(),
            "array": np.arange(8.0),
            "estimate": et.Estimate(1.0, 0.2),
        }
    )
    assert found["number"]["mean"] == 2.0 and np.isnan(found["number"]["stderr"])
    assert found["pair"] == {"mean": 0.5, "stderr": 0.1} and found["estimate"] == {"mean": 1.0, "stderr": 0.2}
    assert found["array"]["mean"] == 3.5 and found["array"]["stderr"] == pytest.approx(
        np.arange(8).std(ddof=1) / 8**0.5
    )
    assert found["values"]["stderr"] > 0 and found["scalar"]["mean"] > 0
    for bad, message in (
        (lambda x: "high", "'metric' is 'high', which is not a number"),
        (lambda x: {"a": "high"}, "'a' is 'high', which is not a number"),
        (lambda x: {"a": x.double()}, "has shape"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            compared(bad)


def test_no_table_rewards_collapse(run, tmp_path):  # noqa: F811
    """A model of one's own has no judge: its certificate leads, and nothing is called best for being less varied."""
    shutil.copytree(zoo()["countdown"], tmp_path / "mine")
    config = json.loads((tmp_path / "mine" / "config.json").read_text())
    (tmp_path / "mine" / "config.json").write_text(json.dumps({**config, "name": "mine"}))
    np.save(tmp_path / "data.npy", et.load("countdown-exact").draw(24, 0).numpy())
    code, out, err = run(
        *("compare", "mine", "--data", "data.npy", "--strategies", "uniform,plan,plan-raster", "--orders", "dilated"),
        *("--steps", "2", "--samples", "4", "--figure", "f.png"),
    )
    assert code == 0, err
    assert "path error in nats" in out and "distance from the truth" not in out
    flat = " ".join(out.split())
    assert "unigram entropy of the samples (of the data: 3." in flat and "plan-raster" in flat, out
    row = {"strategy": "a", "steps": 2, "nfe": 2, "path_error": {"mean": 1.0}, "metrics": {"distinct": {"mean": 0.1}}}
    rows = [row, {**row, "strategy": "b", "metrics": {"distinct": {"mean": 0.9}}}]
    *_, variety = certificate_tables(rows, {"distinct": 1.0})
    assert not any("bold" in cell for column in variety.columns for cell in column.cells)


def test_a_head_without_the_masks_column(tmp_path):
    """The same network with and without it, whatever id the mask has."""
    process = et.Process(et.Absorbing(6, mask=2), et.LogLinear())
    table = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    padded = torch.cat([table[:, :2], torch.full((6, 1), 7.0), table[:, 2:]], 1)
    wide = padded.index_fill(1, torch.tensor(2), -torch.inf).log_softmax(-1)
    clean = torch.tensor([0, 1, 3, 4, 5])
    data = clean[torch.randint(0, 5, (24, 4), generator=torch.Generator().manual_seed(1))]
    clocks = []

    def answer(rows, predicts, x, alpha):
        """Scores are the posterior's odds of being kept; the mask's own stays 1."""
        odds = (alpha / (1 - alpha)).log()[:, None, None] if predicts == "score" else torch.zeros(len(x), 1, 1)
        return rows[x] + odds * (torch.arange(rows.shape[1]) != 2 if rows.shape[1] == 6 else 1)

    for predicts, short, long in (
        ("logits", table, padded),
        ("posterior", table.log_softmax(-1), wide),
        ("score", table.log_softmax(-1), wide.index_fill(1, torch.tensor(2), 0.0)),
    ):
        models = [
            et.wrap(partial(answer, rows, predicts), process, length=4, predicts=predicts, time="alpha")
            for rows in (short, long)
        ]
        clocks = [et.measure(model, data, budget=32) for model in models]
        assert np.allclose(clocks[0].measured.cross, clocks[1].measured.cross)
        grid = et.schedule(clocks[0], "ods", steps=2)
        first, second = (et.sample(model, grid, 16) for model in models)
        assert torch.equal(first, second) and not (first == 2).any()
