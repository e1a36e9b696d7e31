"""What the code promises of itself, read off its syntax: few parameters, no questions for classes, unique names."""

import ast
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eigentime as et
from eigentime.process.kernels import KERNELS
from worlds import random_table

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "eigentime"
MOST_PARAMETERS = 9
VERBS = {
    "api.measure",
    "api.sample",
    "api.schedule",
    "blocks.measure_blocks",
    "experiments.compare.compare",
    "likelihood.nll",
    "likelihood.reverse_kl",
    "loading.load",
    "recommend.recommend",
    "reporting.report",
}
FOREIGN = {"engines.diffusers_schedulers.step", "harness.__init__"}
"""Their parameters are those of the class that they stand in for."""
STRANGERS = {"arguments", "data.images", "models.checkpoints.masked_lm_files"}
"""Where code that is not ours may raise anything, and there is another way: a value's repr, a hub, a tokenizer."""
MEASURED = {"Profile", "Pairs", "OrderProfile", "Orders", "StepCosts", "CountedCosts", "PairCosts", "RevealCosts"}
OF_A_KERNEL = {"Kernel", "DenseKernel", *(kind.__name__ for kind in KERNELS.values())}


@pytest.fixture(scope="module")
def trees():
    files = sorted(SOURCE.rglob("*.py"))
    return {".".join(file.relative_to(SOURCE).with_suffix("").parts): ast.parse(file.read_text()) for file in files}


def found(trees, kind):
    return [(module, node) for module, tree in trees.items() for node in ast.walk(tree) if isinstance(node, kind)]


def test_only_public_verbs_and_commands_take_many_arguments(trees):
    many = set()
    for module, node in found(trees, ast.FunctionDef | ast.AsyncFunctionDef):
        named = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        named += [each.arg for each in (node.args.vararg, node.args.kwarg) if each is not None]
        if len([name for name in named if name not in ("self", "cls")]) > MOST_PARAMETERS:
            many.add(f"{module}.{node.name}")
    assert {name for name in many if not name.startswith("cli.")} == VERBS | FOREIGN
    for name in VERBS:
        verb = name.rpartition(".")[2]
        assert callable(getattr(et, verb)), f"{name} is not public"


def test_nobody_asks_for_the_class_of_a_kernel_or_of_what_was_measured(trees):
    homes = {**dict.fromkeys(OF_A_KERNEL, "process."), **dict.fromkeys(MEASURED, "measure.")}
    asked = [(module, node) for module, node in found(trees, ast.Call) if _named(node.func) == "isinstance"]
    assert len(asked) > 100  # else the search finds nothing at all
    for module, node in asked:
        for kind in map(_named, ast.walk(node.args[1])):
            assert module.startswith(homes.get(kind, "")), f"{module} asks whether something is a {kind}"


def test_nobody_decides_by_the_name_of_a_kernel(trees):
    told = {"loading", "engines.diffusers"}  # the user's word for it; an engine that has classes for two of them
    for module, node in found(trees, ast.Compare):
        sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
        if any(side.endswith(("kernel.name", "['kernel']['name']")) for side in sides):
            assert module in told, f"{module}: {ast.unparse(node)}"
    names = {f"{kind.__name__}.name" for kind in KERNELS.values()}
    for module, node in found(trees, ast.Attribute):
        assert module.startswith("process.") or ast.unparse(node) not in names, f"{module}: {ast.unparse(node)}"


def test_a_class_name_means_one_thing(trees):
    names = Counter(node.name for _, node in found(trees, ast.ClassDef))
    assert len(names) > 200
    assert [name for name, count in names.items() if count > 1] == []


def test_nobody_swallows_every_error(trees):
    for module, node in found(trees, ast.ExceptHandler):
        if node.type is None or _named(node.type) in ("Exception", "BaseException"):
            goes_on = any(isinstance(part, ast.Raise) for part in ast.walk(node))  # in a sentence, or as it was
            assert goes_on or module in STRANGERS, f"{module}, line {node.lineno}"


def test_types_are_checked_without_exemptions():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"] is True
    eased = {key for each in settings["overrides"] for key in each} - {"module"}
    assert eased <= {"ignore_missing_imports", "follow_imports"}  # libraries that bring no types
    assert not any(name.startswith("eigentime") for each in settings["overrides"] for name in each["module"])


def test_fingerprints_cover_everything_that_was_measured():
    clock = et.measure(random_table(4, 3, "absorbing"), budget=48, orders=["low-discrepancy", "farthest", "pairs"])
    assert clock.dependence is not None
    assert clock.pairs is not None
    order = clock.orders["farthest"]
    others = [
        replace(clock, dependence=clock.dependence + 1e-9),
        replace(clock, dependence=None),
        replace(clock, pairs=clock.pairs + 1e-9),
        replace(clock, orders={**clock.orders, "farthest": replace(order, order={**order.order, "name": "other"})}),
        replace(clock, measured=replace(clock.measured, counts=clock.measured.counts + 1)),
        replace(clock, seed=1),
    ]
    assert len({each.fingerprint for each in (clock, *others)}) == 1 + len(others)
    assert replace(clock, pairs=clock.pairs.copy()).fingerprint == clock.fingerprint


def test_a_rate_matrix_clock_of_0_1_lays_out_the_same_grids():
    model = random_table(3, 3, "rate-matrix")
    clock = et.measure(model, budget=32)
    old = replace(clock, kernel_arrays={})  # version 0.1 kept no rates
    times = np.linspace(1.0, 0.0, 5)
    assert old.grid_process.grid_alphas(times).tolist() == model.process.grid_alphas(times).tolist()
    assert et.schedule(old, "ods", steps=3).times.tolist() == et.schedule(clock, "ods", steps=3).times.tolist()


def _named(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
