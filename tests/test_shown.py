"""What is shown in a notebook and a terminal: words, pictures, frames and tables."""

import importlib
import io
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import eigentime as et
from eigentime.orders import ORDERS, make_order
from eigentime.report.claims import CLAIMS, against_uniform, claims_table
from eigentime.report.tables import comparison_tables
from eigentime.report.terminal import Fitted, Terminal
from eigentime.samplers import SAMPLERS, make_sampler
from test_cli import run as run  # the fixture

NETWORK = """
import torch
import eigentime as et

def build():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5))
    return et.wrap(network, et.Process(et.Absorbing(5), et.LogLinear()), length=6, time=None)

def judge(tokens):
    return (tokens == 0).double().mean().item()

def nothing():
    return 3

def broken():
    raise RuntimeError("no weights")
"""


@pytest.fixture(scope="module")
def measured():
    law = torch.rand(3, 3, 3, generator=torch.Generator().manual_seed(1))
    model = et.Table(law / law.sum(), et.Process(et.Absorbing(4), et.LogLinear()), name="dice")
    return model, et.measure(model, budget=200, orders=["low-discrepancy"])


def things(measured):
    model, clock = measured
    grid, plan = et.schedule(clock, "ods", steps=2), et.plan(clock, steps=2)
    return clock, grid, plan, et.curve(clock, "activity"), et.sample(model, grid, 4)


def test_words_say_what_matters_and_are_short(measured):
    model, clock = measured
    _, grid, plan, curve, x = things(measured)
    assert "dice" in repr(model) and "3 tokens × 4 values" in repr(model) and "exact" in repr(model)
    assert "dice" in repr(clock) and "low-discrepancy" in repr(clock)
    assert repr(grid).startswith("Schedule(ods, 2 steps: 1 ")
    assert str(plan.predicted_error) in repr(plan)
    assert "activity" in repr(curve) and repr(x).startswith("Samples(4 × 3 tokens, 2 evaluations each")
    long = et.schedule("uniform", steps=200, model=model)
    shown = [model, clock, grid, plan, curve, long, model.process, plan.predicted_error]
    shown += [make_order(name, (3,), np.ones(3)) for name in ORDERS if not ORDERS[name].pairwise]
    shown += [make_sampler(name) for name in SAMPLERS]
    assert all(len(repr(each)) < 240 and " at 0x" not in repr(each) for each in shown)


def test_what_is_loaded_again_equals_what_was_saved(measured, tmp_path):
    _, grid, plan, _, _ = things(measured)
    grid.save(tmp_path / "grid.json")
    plan.save(tmp_path / "plan.json")
    assert et.Schedule.load(tmp_path / "grid.json") == grid and et.Plan.load(tmp_path / "plan.json") == plan
    assert grid != et.schedule(measured[1], "eds", steps=2) and plan != et.plan(measured[1], steps=3) != grid
    assert len({grid, et.Schedule.load(tmp_path / "grid.json")}) == 1
    assert float(plan.predicted_error) == plan.predicted_error.mean


def test_bands_and_frames_of_a_curve(measured):
    curve = et.curve(measured[1], "nonadiabatic_data", np.array([0.2, 0.8]))
    low, high = curve.band(0.6827)
    np.testing.assert_allclose(high - low, 2 * curve.stderr, rtol=1e-4)  # ± one standard error
    frame = curve.to_pandas()
    assert list(frame) == ["time", "mean", "stderr", "low", "high"] and frame["mean"].tolist() == curve.mean.tolist()
    with pytest.raises(et.EigentimeError, match="between 0 and 1"):
        curve.band(1.0)


def test_every_thing_has_a_picture(measured):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    for thing in things(measured):
        axes = thing.plot()
        assert axes.has_data()
        assert re.search(r'<img alt="\w+" src="data:image/png;base64,iVBOR', thing._repr_html_())
    clock, _, plan, curve, _ = things(measured)
    np.testing.assert_array_equal(curve.plot().lines[0].get_ydata(), curve.mean)
    places = plan.plot().collections[0].get_offsets()
    assert sorted(places[:, 0]) == [0, 1, 2] and np.bincount(places[:, 1].astype(int))[1:].tolist() == list(plan.counts)
    pyplot.close("all")
    assert clock.plot(pyplot.figure().subplots()) is not None
    pyplot.close("all")


@pytest.mark.parametrize("width", [60, 80])
def test_tables_cut_no_cell(width):
    value = {"mean": 0.123, "stderr": 0.01}
    names = ["uniform", "cosine", "eds", "wds", "wds-data", "ods", "plan-low-discrepancy"]
    rows = [
        {"strategy": name, "steps": k, "nfe": k, "metrics": {"violation": value, "far": value}, "path_error": value}
        for name in names
        for k in (4, 512)
    ]
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(*comparison_tables(rows, "violation", "far"))
    text = console.file.getvalue()
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    assert all(text.count(name) >= 2 for name in names) and text.count("12.3/0.1") == len(rows)
    table = Fitted("name", "one", "two")
    table.add_row("x" * 36, "y" * 15, "z" * 15)
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    assert console.file.getvalue().count("x" * 36) == (2 if width == 60 else 1)


def test_a_collapsed_model_is_never_called_the_best():
    def row(strategy, violation, far):
        metrics = {"violation": {"mean": violation, "stderr": 0.001}, "far": {"mean": far, "stderr": 0.01}}
        return {"strategy": strategy, "steps": 4, "nfe": 4, "metrics": metrics, "path_error": metrics["far"]}

    rows = [row("same again", 0.0, 0.7), row("varied", 0.1, 0.03), row("nearly", 0.2, 0.04)]
    _, table, *_ = comparison_tables(rows, "violation", "far")
    bold = ["[bold green]" in next(iter(column.cells)).split("/")[0] for column in table.columns[1:]]
    assert bold == [False, True, False]
    _, table, *_ = comparison_tables([row("same again", 0.0, 0.03), *rows[1:]], "violation", "far")
    assert "[bold green]" in next(iter(table.columns[1].cells))


def test_nothing_is_coloured_or_bold_without_a_reader(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, says the convention
    for stream in ("", "1"):
        monkeypatch.setenv("NO_COLOR", stream)
        terminal = Terminal()
        terminal.file = io.StringIO()
        terminal.print("[bold]word[/] 12")
        assert ("\x1b" in terminal.file.getvalue()) == (not stream)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.delenv("FORCE_COLOR")
    terminal = Terminal()
    terminal.file = io.StringIO()
    terminal.print("[bold]word[/] 12")
    assert terminal.file.getvalue() == "word 12\n"


def test_version_quiet_and_completion(run, tmp_path):
    assert run("--version")[:2] == (0, f"eigentime {et.__version__}\n")
    arguments = ("measure", "binomial-exact", "--budget", "64")
    code, out, err = run(*arguments, "--quiet")
    assert (code, out, err) == (0, "", "") and (tmp_path / "clock.safetensors").exists()
    assert "Saved to" in run(*arguments)[1]
    assert run("schedule", "nowhere", "-q")[2].startswith("eigentime: ")
    assert "--show-completion" in run("--help")[1]
    from eigentime.cli.own import named

    assert named("countdown-") == ["countdown-sedd", "countdown-uniform", "countdown-exact"]


def test_a_network_and_a_metric_of_ones_own_from_the_command_line(run, tmp_path, monkeypatch):
    (tmp_path / "my_network.py").write_text(NETWORK)
    monkeypatch.delitem(sys.modules, "my_network", raising=False)
    np.save(tmp_path / "data.npy", np.tile([0, 1, 2, 3, 0, 1], (64, 1)))
    own = ("--model", "my_network:build", "--data", "data.npy")
    compare = ("compare", *own, "--strategies", "uniform,ods", "--steps", "2,4", "--samples", "32")
    code, out, err = run(*compare, "--metric", "my_network:judge", "--json", "rows.json")
    assert code == 0, err
    assert "metric of the samples (of the data: 0.333)" in out and "path error in nats" in out
    assert "green" not in out and '"metric"' in (tmp_path / "rows.json").read_text()
    code, out, err = run("recommend", *own, "--nfe", "3", "--sequences", "32", "--budget", "64")
    assert code == 0 and "Use " in out, err
    assert run("compare", "--model", "my_network.py:build", *own[2:], "--steps", "2", "--strategies", "uniform")[0] == 0
    assert "my_network" not in [name for name in sys.path if name.endswith("my_network")]
    importlib.invalidate_caches()
    for words, sentence in (
        (("--model", "my_network"), "such as my_module:build"),
        (("--model", "nowhere:build"), "There is no module 'nowhere'"),
        (("--model", "nowhere.py:build"), "There is no file"),
        (("--model", "my_network:nobody"), "no function 'nobody'"),
        (("--model", "my_network:nothing"), "return et.wrap"),
        (("--model", "my_network:broken"), "RuntimeError: no weights"),
        (("--model", "my_network:build", "--kernel", "uniform"), "what my_network:build made them"),
        ((), "Say which model"),
        (("countdown", "--model", "my_network:build"), "Say which model"),
    ):
        code, _, err = run("compare", *words)
        assert code == 2 and sentence in err and err.count("\n") == 1, err


def test_the_paper_beside_ours_on_one_page(run, tmp_path):
    """Finished experiments are not made again; what is missing is named; the claims are those of the docs."""
    results = Path(__file__).parent.parent / "results"
    for name in ("binomial", "countdown", "dynamics"):
        shutil.copytree(results / name, tmp_path / "results" / name)
    code, out, err = run("reproduce", "all", "--only", "binomial,countdown,dynamics")
    assert code == 0 and out.count("finished before") == 3, err
    page = (tmp_path / "results" / "paper.html").read_text()
    assert (
        page.count("data:image/png") == 3 and "Not made yet: eigentime reproduce music" in page and "http" not in page
    )
    claims = claims_table(results)
    for claim in [*CLAIMS["binomial"](results), *CLAIMS["countdown"](results)]:
        assert f"<td>{claim.ours}</td>" in page and claim.ours in claims
    assert run("reproduce", "all", "--only", "nothing")[0] == 2
    uniform, better = {"mean": 0.5, "stderr": 0.1}, {"mean": 0.3, "stderr": 0.01}
    rows = [
        {"strategy": name, "steps": k, "metrics": {"m": value}}
        for name, value in (("uniform", uniform), ("ods", better))
        for k in (2, 4)
    ]
    assert against_uniform(rows, "ods", "m") == ("2, 4", "none")  # 0.2 > 1.96 · √(0.1² + 0.01²) = 0.197
    rows[0]["metrics"] = {"m": {"mean": 0.49, "stderr": 0.1}}
    assert against_uniform(rows, "ods", "m") == ("4", "none")
