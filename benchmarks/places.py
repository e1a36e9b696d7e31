"""Where to reveal: every order with 2 to 16 evaluations, certified on sequences that did not choose its counts.

python benchmarks/places.py [WORLD …]    writes results/places.json; about ten minutes on one core

For every world, order and number of evaluations a clock chooses a plan, and held-out sequences are taught it: what they
cost above one token at a time, and, paired by sequence, above the best named order. A second part asks which counts to
take: those of dynamic programming, aligned ones, or the rule of `et.plan`, chosen on half of a clock's sequences and
judged on the other half.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from coverage import chain
from provenance import ROOT, load, save

import eigentime as et
from eigentime.api import own_data
from eigentime.intervals import PerSequence
from eigentime.models import Model
from eigentime.models.permuted import Permuted
from eigentime.samplers.teacher import log_likelihood
from eigentime.schedules.planning import best_aligned_stops, chosen_stops, lightest_stops

STEPS = (2, 4, 8, 16)
SPLITS = 6
SEED = 0


@dataclass(frozen=True)
class World:
    """A model, the grid that its tokens fill, and how much is spent on it."""

    load: Callable[[], Model]
    shape: tuple[int, ...] | None = None
    budget: int = 512
    held_out: int = 64

    @property
    def orders(self) -> list[str]:
        """All that make sense; over a grid also those made for grids."""
        grids = ["halton", "sobol"] if self.shape else []
        lattices = [f"lattice-{steps}" for steps in STEPS]
        return ["low-discrepancy", "bisection", "farthest", *grids, *lattices, "pairs"]


def permuted_chain() -> Model:
    """A sharp chain of 64 tokens whose places are mixed up."""
    long = chain(0.9, 0.025, 64)
    return Permuted(long, torch.randperm(64, generator=torch.Generator().manual_seed(SEED)))


WORLDS = {
    "countdown-exact": World(lambda: et.load("countdown-exact")),
    "permuted chain": World(permuted_chain, held_out=256),
    "digits": World(lambda: et.load("digits"), (8, 8), held_out=96),
    "text": World(lambda: et.load("text"), budget=256, held_out=32),
}


def certified(model: Model, clock: et.Clock, held_out: torch.Tensor) -> list[dict[str, Any]]:
    """Rows of order and evaluations: nats of the held-out sequences, less those of the best named order; "plan" is the
    order that `et.plan` takes of all that were measured."""
    rows = []
    for steps in STEPS:
        costs = {}
        for name in clock.orders:
            if name.startswith("lattice-") and name != f"lattice-{steps}":
                continue
            plan = et.plan(clock, steps, order=name)
            nats = PerSequence(-log_likelihood(model, held_out, plan, seed=SEED + 1).numpy())
            costs["lattice" if name.startswith("lattice-") else name] = plan, nats
        named = min((name for name in costs if name != "pairs"), key=lambda name: costs[name][1].mean)
        chosen = et.plan(clock, steps)
        costs["plan"] = chosen, PerSequence(-log_likelihood(model, held_out, chosen, seed=SEED + 1).numpy())
        for name, (plan, nats) in costs.items():
            above = nats - costs[named][1]
            rows.append(
                {
                    "order": name,
                    "reveals": plan.order.name,
                    "steps": steps,
                    "counts": plan.counts,
                    "predicted": {"mean": plan.predicted_error.mean, "interval": plan.predicted_error.interval()},
                    "nats": {"mean": nats.mean, "stderr": nats.stderr},
                    "best_named": named,
                    "above_best_named": {"mean": above.mean, "interval": above.interval() if name != named else (0, 0)},
                }
            )
    return rows


RULES = ("dynamic programming", "aligned", "beyond 0", "beyond 1", "beyond 2")


def counts(clock: et.Clock) -> dict[str, Any]:
    """Nats that counts cost on other sequences than those which chose them, above the least of the rules."""
    orders, excess = clock.ordered, {rule: [] for rule in RULES}
    for split in range(SPLITS):
        groups = np.random.default_rng(split).permutation(orders.groups)
        choosing, judging = (orders.take(np.sort(part)) for part in np.array_split(groups, 2))
        for name in clock.orders:
            judge = judging.costs(name, "entropy" if orders.exact else "cross-entropy")
            for steps in STEPS:
                aligned, optimal = best_aligned_stops(choosing, steps, name), lightest_stops(choosing, steps, name)
                if aligned is None or np.array_equal(aligned, optimal):
                    continue
                ruled = [chosen_stops(choosing, steps, name, beyond) for beyond in (0.0, 1.0, 2.0)]
                costs = [judge.total(stops) for stops in (optimal, aligned, *ruled)]
                for rule, cost in zip(RULES, costs, strict=True):
                    excess[rule].append(cost - min(costs[:2]))
    return {rule: {"mean": float(np.mean(values)), "cases": len(values)} for rule, values in excess.items()}


def measured(world: World) -> dict[str, Any]:
    """Everything about one world."""
    model = world.load()
    data = own_data(model, 2 * world.held_out + 64, SEED)
    held_out, rest = data[: world.held_out], data[world.held_out :]
    clock = et.measure(model, rest, orders=world.orders, shape=world.shape, budget=world.budget, seed=SEED)
    return {
        "evaluations": clock.evaluations,
        "held_out": len(held_out),
        "tokens": model.length,
        "rows": certified(model, clock, held_out),
        "counts": counts(clock),
    }


def main(names: list[str]) -> None:
    """The worlds asked for; the others stay as they are in the file."""
    known = (ROOT / "results" / "places.json").exists()
    results = {name: part for name, part in load("places.json").items() if name in WORLDS} if known else {}
    for name in names or WORLDS:
        results[name] = measured(WORLDS[name])
        print(name, results[name]["counts"], flush=True)
        for row in results[name]["rows"]:
            low, high = row["above_best_named"]["interval"]
            print(
                f"  {row['steps']:3} {row['order']:16} {row['nats']['mean']:8.2f}  "
                f"{row['above_best_named']['mean']:+.3f} ({low:+.3f} to {high:+.3f})  {row['counts'][:8]}"
            )
        save("places.json", {name: results[name] for name in WORLDS if name in results}, steps=STEPS, splits=SPLITS)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", choices=[[], *WORLDS], metavar="WORLD")
    main(parser.parse_args().worlds)
