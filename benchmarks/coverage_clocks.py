"""Do intervals that say 95 % cover 95 %? Of certificates and bounds that a clock makes, on worlds whose truth is known.

python benchmarks/coverage_clocks.py [--seeds 100] [--only "sharp chain"] [--budgets 64 256]

Writes results/coverage/clocks.json after every cell and goes on where it stopped. So that seeds are cheap, the sums of
all seeds' sequences are computed at once and served to the measuring pass, which then decides, stops, chooses and
certifies as it always does; schedules are planned on a grid of 129 nodes in place of 1,025.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from coverage import LEVEL, cell_of, chain, table
from provenance import ROOT, load, save

import eigentime as et
from eigentime.intervals import student_interval
from eigentime.measure.chain import chain_sums
from eigentime.measure.levels import CountLevels, Source, make_source
from eigentime.measure.ordered import measure_order
from eigentime.models import Oracle

FILE = "coverage/clocks.json"
BUDGETS, STEPS, ORDER = (64, 256, 1024), 4, "low-discrepancy"
TRUTH_SEED, SHARPER = 10**6, 100
"""The truth of a chain is measured on a hundred times the sequences of the largest budget: ten times as sharp."""


def on(model: Oracle, kernel: Any) -> Oracle:
    """The same data law under another kernel."""
    process = et.Process(kernel, et.LogLinear())
    if isinstance(model, et.Table):
        return et.Table(model.law.reshape((3,) * model.length), process)
    return et.MarkovChain(model.initial, model.transition, model.length, process)


MASKED = {
    "table": lambda: table(),
    "sharp chain": lambda: chain(0.95, 0.0125),
    "rare events": lambda: chain(0.6, 0.002),
}
WORLDS = MASKED | {
    "table, uniform kernel": lambda: on(table(), et.Uniform(3)),
    "sharp chain, uniform kernel": lambda: on(chain(0.95, 0.0125), et.Uniform(5)),
    "rare events, uniform kernel": lambda: on(chain(0.6, 0.002), et.Uniform(5)),
}


@dataclass
class Served:
    """Sums of many seeds' sequences, computed once: seed s has sequences s·each … (s+1)·each - 1."""

    model: Oracle
    each: int
    seeds: int
    seed: int = 0
    kept: dict[Any, Any] = field(default_factory=dict)
    source: Source = field(init=False)

    def __post_init__(self) -> None:
        self.source = make_source(self.model, self.model.draw(self.each * self.seeds, 1), seed=1)
        self.evaluate = CountLevels.evaluate

    def once(self, key: Any, make: Any) -> Any:
        """What was made for this key."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def mine(self, first: int, count: int) -> slice:
        """Where a run of this seed's sequences lies."""
        assert first + count <= self.each, "a seed has no more sequences"
        return slice(self.seed * self.each + first, self.seed * self.each + first + count)

    def level(self, layout: CountLevels, level: float, first: int, count: int) -> tuple[np.ndarray, int]:
        """In place of `CountLevels.evaluate`."""
        whole = CountLevels(self.source)
        sums = self.once(level, lambda: self.evaluate(whole, level, 0, self.each * self.seeds)[0])
        return sums[self.mine(first, count)], 1 if level == 0 else count

    def path(self, source: Source, times: list[float], first: int, count: int) -> dict[str, np.ndarray]:
        """In place of `chain_sums`."""
        sums = self.once(tuple(times), lambda: chain_sums(self.source, times, 0, self.each * self.seeds))
        return {name: values[self.mine(first, count)] for name, values in sums.items()}

    def order(
        self, source: Source, order: Any, levels: np.ndarray, sequences: int, shape: Any = None, first: int = 0
    ) -> tuple[np.ndarray, int, np.ndarray | None]:
        """In place of `measure_order`."""
        number = self.each * self.seeds
        every = np.arange(int(source.free))
        values = self.once(order.name, lambda: measure_order(self.source, order, every, number)[0])
        near = np.zeros((sequences, 4, *shape)) if shape else None
        return values[self.mine(first, sequences)][:, levels], sequences * len(levels), near

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Passes get their sums from here."""
        with (
            patch.object(CountLevels, "evaluate", lambda layout, *asked: self.level(layout, *asked)),
            patch("eigentime.measure.montecarlo.chain_sums", self.path),
            patch("eigentime.measure.order_pass.measure_order", self.order),
            patch("eigentime.schedules.optimal.NODES_PER_STEP", 4),
        ):
            yield


class Truth:
    """True path errors: enumerated for tables without a mask, else measured on many sequences at every level."""

    def __init__(self, model: Oracle) -> None:
        self.model, self.clock = model, None
        masked = model.process.absorbing
        if masked or not isinstance(model, et.Table):
            sequences = SHARPER * BUDGETS[-1] // (model.length if masked else 24)
            budget = sequences * (model.length if masked else 24)
            orders = [ORDER] if masked else []
            data = model.draw(sequences, TRUTH_SEED)
            self.clock = et.measure(model, data, budget=budget, tolerance=0.0, orders=orders, seed=TRUTH_SEED)

    def of(self, planned: Any) -> float:
        """The path error of a schedule or a plan."""
        if self.clock is None:
            return et.exact_path_error(self.model, planned.times)
        if isinstance(planned, et.Plan):
            return self.clock.ordered.error(planned.order.name, planned.stops(self.model.length))
        return self.clock.costs(smooth=False).path(planned.alphas)


def statements(clock: et.Clock, model: Oracle, truth: Truth) -> dict[str, tuple[Any, float]]:
    """Everything that is said with an interval, and what is true."""
    grids = {name: et.schedule(clock, name, steps=STEPS) for name in ("uniform", "wds", "ods")}
    made = {name: (et.path_error(clock, grid), truth.of(grid)) for name, grid in grids.items()}
    made["ods - uniform"] = (made["ods"][0] - made["uniform"][0], made["ods"][1] - made["uniform"][1])
    if clock.orders:
        plans = {f"plan, {steps} steps": et.plan(clock, steps) for steps in (2, 3)}
        bounds = {"bound, uniform": grids["uniform"]} | {f"bound, {name}": plan for name, plan in plans.items()}
        made |= {name: (plan.predicted_error, truth.of(plan)) for name, plan in plans.items()}
        costs = {name: et.nll_bound(clock, planned) for name, planned in bounds.items()}
        made |= {name: (costs[name], truth.of(planned) + model.entropy) for name, planned in bounds.items()}
        gained = truth.of(plans["plan, 2 steps"]) - truth.of(grids["uniform"])
        made["bound of plan - bound of uniform"] = (costs["bound, plan, 2 steps"] - costs["bound, uniform"], gained)
    return made


def run(world: str, budget: int, served: Served, truth: Truth, tolerance: float = 0.03) -> list[dict[str, Any]]:
    """One cell for everything that is said."""
    found: dict[str, list[tuple[float, ...]]] = {}
    orders = [ORDER] if served.model.process.absorbing else []
    for seed in range(served.seeds):
        served.seed = seed
        with served.serving(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # open intervals are counted
            clock = et.measure(
                served.model, served.source.data, budget=budget, orders=orders, seed=1, tolerance=tolerance
            )
            for name, (said, true) in statements(clock, served.model, truth).items():
                low, high = said.interval(LEVEL)
                plain = student_interval(said.mean, said.stderr, len(said.groups.values) - 1, LEVEL)
                found.setdefault(name, []).append((low, high, *plain, true, said.mean))
    cells = []
    for name, rows in found.items():
        low, high, plain_low, plain_high, true, mean = np.array(rows).T
        covered = {"ours": (low <= true) & (true <= high), "student": (plain_low <= true) & (true <= plain_high)}
        cells.append(
            {"world": world, "budget": budget, "what": name}
            | cell_of({key: int(hit.sum()) for key, hit in covered.items()}, len(rows))
            | {"infinite": float((~np.isfinite(high) | ~np.isfinite(low)).mean())}
            | {"too_low": int((high < true).sum()), "too_high": int((low > true).sum())}
            | {"truth": float(true.mean()), "bias": float((mean - true).mean()), "spread": float(mean.std())}
        )
    return cells


def sequences_for(model: Oracle, budget: int) -> int:
    """The most sequences that a seed can come to."""
    levels = model.length if model.process.absorbing else int(np.clip(np.sqrt(budget), 4, 24))
    return 2 * budget // min(levels, 6) if model.process.absorbing else budget // levels


def main(seeds: int, only: str | None, budgets: Sequence[int]) -> None:
    """Every world and budget that the file does not hold yet."""
    cells = load(FILE)["cells"] if Path(ROOT / "results" / FILE).exists() else []
    for world, make in WORLDS.items():
        truth = None
        for budget in budgets:
            done = {(cell["world"], cell["budget"]) for cell in cells if cell["seeds"] >= seeds}
            if (world, budget) in done or (only is not None and world != only):
                continue
            model = make()
            truth = truth or Truth(model)
            served = Served(model, sequences_for(model, budget), seeds)
            cells = [cell for cell in cells if (cell["world"], cell["budget"]) != (world, budget)]
            cells += run(world, budget, served, truth)
            total = sum(cell["seeds"] for cell in cells)
            pooled = {key: sum(cell["covered"][key] for cell in cells) / total for key in ("ours", "student")}
            save(FILE, {"cells": cells, "pooled": pooled}, level=LEVEL, steps=STEPS, truth_seed=TRUTH_SEED)
            for cell in cells:
                if (cell["world"], cell["budget"]) == (world, budget):
                    print(world, budget, cell["what"], cell["covered"], cell["seeds"], f"open {cell['infinite']:.2f}")
            print(pooled, flush=True)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", choices=list(WORLDS))
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    arguments = parser.parse_args()
    main(arguments.seeds, arguments.only, arguments.budgets)
