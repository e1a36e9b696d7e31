"""Does `recommend` find what comparing everything would find, and at which share of the evaluations?

Everything means all candidates that are within the budget of evaluations: a rule that takes too many is no candidate,
and its evaluations do not count. Both shares include the evaluations of the clock, which plans are made from.

python benchmarks/recommending.py [--worlds text,…]    writes results/recommending.json; half an hour on one core
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from coverage import chain
from provenance import load, save

import eigentime as et
from eigentime import api
from eigentime.likelihood import taught_cost
from eigentime.models import Model
from eigentime.recommend import ORDERS, SLACK, Candidate, Contender

NFE, CLOSE = 4, 0.02
"""Winners are close within two in a hundred."""
FAR = 1.5
"""Rules that take that many times too many evaluations on a few sequences are not compared on all."""


@dataclass(frozen=True)
class World:
    """A model, and how much is spent on it. Half of the sequences choose; the winners are judged on others."""

    name: str
    seeds: int
    sequences: int
    judged: int
    budget: int

    def model(self) -> Model:
        """An exact one, or a bundled network."""
        chains = {"sharp chain": (0.95, 0.0125), "loose chain": (0.6, 0.01)}
        return chain(*chains[self.name]) if self.name in chains else et.load(self.name)


WORLDS = (
    World("sharp chain", seeds=20, sequences=256, judged=512, budget=128),
    World("loose chain", seeds=20, sequences=256, judged=512, budget=128),
    World("countdown-exact", seeds=5, sequences=128, judged=64, budget=64),
    World("digits", seeds=5, sequences=256, judged=128, budget=64),
    World("text", seeds=1, sequences=128, judged=32, budget=64),
)
"""A law where places matter, one where they hardly do, a law with long memory, and two trained networks."""


def one(world: World, model: Model, seed: int) -> dict[str, Any]:
    """One recommendation beside the best of everything on the same sequences."""
    drawn = api.own_data(model, world.sequences + world.judged, seed)
    x, fresh = drawn[: world.sequences], drawn[world.sequences :]
    choosing = x[: len(x) // 2]
    clock = et.measure(model, choosing, budget=world.budget, orders=[*ORDERS, f"lattice-{NFE}"], seed=seed)
    found = et.recommend(model, x, nfe=NFE, clock=clock, sequences=len(x), seed=seed)
    costs, everything = {}, 0
    for candidate, nats, spent in compared(model, choosing, found.frontier, seed):
        costs[candidate], everything = nats, everything + spent
    best = min(costs, key=costs.__getitem__)
    true = [float(cost(model, fresh, each, seed)[0].mean()) for each in (found.candidate, best)]
    return {
        "recommended": str(found.candidate),
        "exhaustive": str(best),
        "nats": true,
        "close": bool(true[0] <= true[1] * (1 + CLOSE)),
        "within budget": len(costs),
        "evaluations": {"clock": clock.evaluations, "recommend": found.evaluations, "exhaustive": everything},
        "share": (clock.evaluations + found.evaluations) / (clock.evaluations + everything),
    }


def compared(
    model: Model, x: torch.Tensor, frontier: list[Contender], seed: int
) -> Iterator[tuple[Candidate, float, int]]:
    """Nats and evaluations on all sequences of all candidates that are within the budget. What `recommend` has seen of
    them is not measured again: sequences cost the same in any company."""
    for each in frontier:
        if each.evaluations > FAR * NFE:
            continue
        nats, spent = each.nats, each.spent
        if len(nats) < len(x):
            more = cost(model, x[len(nats) :], each.candidate, seed, len(nats))
            nats, spent = [*nats, *more[0]], [*spent, *more[1]]
        if np.mean(spent) <= SLACK * NFE:
            yield each.candidate, float(np.mean(nats)), int(sum(spent))


def cost(model: Model, x: torch.Tensor, each: Candidate, seed: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Nats and evaluations of every sequence."""
    return taught_cost(model, x, each.sampler, each.planned, block_length=each.block_length, seed=seed, first=first)


def main(names: list[str]) -> None:
    """All worlds and seeds; what the file holds is not run again, worlds that are not asked for stay as they were."""
    try:
        kept = load("recommending.json")["worlds"]
    except (et.EigentimeError, KeyError):
        kept = {}
    for world in WORLDS:
        if world.name not in names:
            continue
        model, settings = world.model(), {name: value for name, value in vars(world).items() if name != "seeds"}
        known = kept.get(world.name, {})
        runs = list(known["runs"]) if known.get("settings") == settings else []
        for seed in range(len(runs), world.seeds):
            runs.append(one(world, model, seed))
            kept[world.name] = {
                "settings": settings,
                "runs": runs,
                "close": sum(run["close"] for run in runs),
                "seeds": len(runs),
                "share": float(np.mean([run["share"] for run in runs])),
                "largest share": max(run["share"] for run in runs),
            }
            save("recommending.json", {"worlds": kept}, nfe=NFE, close=CLOSE)
        print(world.name, {key: kept[world.name][key] for key in ("close", "seeds", "share")}, flush=True)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default=",".join(world.name for world in WORLDS))
    main(parser.parse_args().worlds.split(","))
