"""Does `recommend` find what comparing everything would find, and at which share of the evaluations?

python benchmarks/recommending.py [--seeds 20]    writes results/recommending.json; minutes on one core
"""

import argparse
from typing import Any

import numpy as np
import torch
from coverage import chain
from provenance import save

import eigentime as et
from eigentime.models import Oracle
from eigentime.recommend import usual_candidates
from eigentime.samplers.teacher import teach

NFE, SEQUENCES, JUDGED, BUDGET, CLOSE = 4, 128, 2048, 256, 0.02
"""Half of the sequences choose; the winners are judged on many others, and are close within two in a hundred."""


def worlds() -> dict[str, Oracle]:
    """Where places matter, where they hardly do, and a law with long memory."""
    return {
        "sharp chain": chain(0.95, 0.0125),
        "loose chain": chain(0.6, 0.01),
        "countdown": et.load("countdown-exact"),
    }


def one(model: Oracle, seed: int) -> dict[str, Any]:
    """One recommendation beside the best of everything on the same sequences."""
    x = model.draw(SEQUENCES, seed)
    choosing = x[: SEQUENCES // 2]
    orders = ["low-discrepancy", "farthest", f"lattice-{NFE}"]
    clock = et.measure(model, choosing, budget=BUDGET, orders=orders, seed=seed)
    found = et.recommend(model, x, nfe=NFE, clock=clock, sequences=SEQUENCES, seed=seed)
    costs, spent = {}, 0
    for candidate in usual_candidates(clock, NFE):
        walked = teach(model, choosing, candidate.planned, candidate.sampler, seed=seed)
        spent += int(walked.spent.sum())
        if walked.spent.double().mean() <= NFE:
            costs[candidate] = -walked.logs.sum(1).mean().item()
    best = min(costs, key=costs.__getitem__)
    fresh = model.draw(JUDGED, seed + 10**6)
    true = [
        -teach(model, fresh, each.planned, each.sampler, seed=seed).logs.sum(1).mean().item()
        for each in (found.candidate, best)
    ]
    return {
        "recommended": str(found.candidate),
        "exhaustive": str(best),
        "nats": true,
        "close": bool(true[0] <= true[1] * (1 + CLOSE)),
        "share": found.evaluations / spent,
    }


def main(seeds: int) -> None:
    """All worlds and seeds."""
    results = {}
    for name, model in worlds().items():
        runs = [one(model, seed) for seed in range(seeds if name != "countdown" else min(seeds, 5))]
        results[name] = {
            "runs": runs,
            "close": sum(run["close"] for run in runs),
            "seeds": len(runs),
            "share": float(np.mean([run["share"] for run in runs])),
        }
        print(name, {key: results[name][key] for key in ("close", "seeds", "share")}, flush=True)
    settings = {"nfe": NFE, "sequences": SEQUENCES, "judged": JUDGED, "budget": BUDGET}
    save("recommending.json", results, seeds=seeds, **settings)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    main(parser.parse_args().seeds)
