"""Do intervals that say 95 % cover 95 %? Of certificates and bounds that a clock makes, on worlds whose truth is known.

python benchmarks/coverage_clocks.py [--seeds 400] [--only "sharp chain"] [--budgets 64 256]

What clocks say is kept in ~/.cache/eigentime/coverage, 100 seeds at a time: the command goes on where it stopped, and a
change of how intervals are made needs no new measuring. A change of measuring or choosing does: delete that folder.
results/coverage/clocks.json has all that is kept, the cells that are not finished with the seeds that they have.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from coverage import LEVEL, cell_of, chain, table
from coverage_served import Served
from provenance import save

import eigentime as et
from eigentime.data.packages import cache_folder
from eigentime.intervals import GroupValues, student_interval
from eigentime.models import Oracle

FILE = "coverage/clocks.json"
BUDGETS, STEPS, ORDER, TOLERANCE = (64, 256, 1024), 4, "low-discrepancy", 0.03
TRUTH_SEED, SHARPER = 10**6, 100
"""The truth of a chain is measured on a hundred times the sequences of the largest budget: ten times as sharp."""
PART = 100
"""Seeds that are kept together."""
MOST_GROUPS = 32


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


Said = dict[str, list[list[float]]]
"""By statement and seed: the truth, the number, gap, chosen, heavy, and what each group says."""


def said_by(world: str, budget: int, part: int, truth: Truth) -> Said:
    """What the clocks of so many seeds say; kept in a file of its own."""
    path = place(world, budget, part)
    if path.exists():
        return dict(np.load(path, allow_pickle=False))
    model = truth.model
    served = Served(model, sequences_for(model, budget), PART, part)
    orders = [ORDER] if model.process.absorbing else []
    found: Said = {}
    for seed in range(PART):
        served.seed = seed
        with served.serving(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the data may be few, which is what is looked at
            data = served.source.data
            clock = et.measure(model, data, budget=budget, orders=orders, seed=1, tolerance=TOLERANCE)
            for name, (said, true) in statements(clock, model, truth).items():
                groups = said.groups
                values = np.full(MOST_GROUPS, np.nan)
                values[: len(groups.values)] = groups.values
                row = [true, said.mean, groups.gap, groups.chosen, groups.heavy, *values]
                found.setdefault(name, []).append(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **{name: np.array(rows, dtype=np.float64) for name, rows in found.items()})
    partial.replace(path)
    return dict(np.load(path, allow_pickle=False))


def place(world: str, budget: int, part: int) -> Path:
    """Where a part of the seeds is kept."""
    return cache_folder() / "coverage" / f"{world.replace(', ', '-').replace(' ', '-')}-{budget}-{part}.npz"


def cell(world: str, budget: int, what: str, rows: np.ndarray) -> dict[str, Any]:
    """How many of the intervals hold the truth: ours, those before choice and tails were looked at, and Student's."""
    true, mean = rows[:, 0], rows[:, 1]
    ends: dict[str, list[tuple[float, float]]] = {"ours": [], "bootstrap of t": [], "student": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # open intervals are counted
        for row in rows:
            values = tuple(row[5:][~np.isnan(row[5:])].tolist())
            gap, chosen, heavy = float(row[2]), float(row[3]), bool(row[4])
            plain = GroupValues(values, gap)
            ends["ours"].append(GroupValues(values, gap, "", chosen, heavy).interval(float(row[1]), LEVEL))
            ends["bootstrap of t"].append(plain.interval(float(row[1]), LEVEL))
            ends["student"].append(student_interval(float(row[1]), plain.spread, len(values) - 1, LEVEL))
    covered = {
        name: sum(low <= t <= high for (low, high), t in zip(each, true, strict=True)) for name, each in ends.items()
    }
    low, high = np.array(ends["ours"]).T
    return (
        {"world": world, "budget": budget, "what": what}
        | cell_of(covered, len(rows))
        | {"infinite": float((~np.isfinite(high) | ~np.isfinite(low)).mean())}
        | {"too_low": int((high < true).sum()), "too_high": int((low > true).sum())}
        | {"truth": float(true.mean()), "bias": float((mean - true).mean()), "spread": float(mean.std())}
    )


def sequences_for(model: Oracle, budget: int) -> int:
    """The most sequences that a seed can come to."""
    levels = model.length if model.process.absorbing else int(np.clip(np.sqrt(budget), 4, 24))
    return 2 * budget // min(levels, 6) if model.process.absorbing else budget // levels


def write() -> None:
    """The results of all that is kept so far."""
    cells = []
    for world in WORLDS:
        for budget in BUDGETS:
            parts = []
            while place(world, budget, len(parts)).exists():
                parts.append(dict(np.load(place(world, budget, len(parts)))))
            for what in parts[0] if parts else ():
                cells.append(cell(world, budget, what, np.concatenate([part[what] for part in parts])))
    total = sum(each["seeds"] for each in cells)
    pooled = {key: float(sum(each["covered"][key] for each in cells) / total) for key in cells[0]["covered"]}
    inside = sum(each["interval_999"][0] <= 0.97 and each["interval_999"][1] >= 0.93 for each in cells)
    content = {"cells": cells, "pooled": pooled, "cells_that_meet_93_to_97": inside}
    save(FILE, content, level=LEVEL, steps=STEPS, tolerance=TOLERANCE, truth_seed=TRUTH_SEED)
    print(pooled, f"{inside} of {len(cells)} cells meet 93 to 97 %", flush=True)


def main(seeds: int, only: str | None, budgets: Sequence[int]) -> None:
    """Every world and budget; what is kept is not measured again."""
    truths: dict[str, Truth] = {}
    for part in range(-(-seeds // PART)):
        for budget in budgets:
            for world, make in WORLDS.items():
                if place(world, budget, part).exists() or only not in (None, world):
                    continue
                truths[world] = truths.get(world) or Truth(make())
                said_by(world, budget, part, truths[world])
                print(world, budget, part, flush=True)
    write()


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--only", choices=list(WORLDS))
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    arguments = parser.parse_args()
    main(arguments.seeds, arguments.only, arguments.budgets)
