"""Exact counts at random places against coin flips: should `counted` be the default?

python benchmarks/counted.py [MODEL …]    writes results/choosing/counted.json; five minutes on one core

Both follow the same schedule and are certified by the same clock, so that their difference is paired by sequence:
counted less coin flips, in nats per sequence, by the network's own entropies (what more evaluations could win) and by
cross-entropies (what data cost). Schedules: uniform, ODS planned for coin flips, and ODS planned for counts.
"""

import argparse
from typing import Any

import torch
from provenance import load, save

import eigentime as et
from eigentime import api

FILE = "choosing/counted.json"
MODELS = ("countdown-exact", "countdown", "text", "stories", "digits", "mnist")
STEPS, SEED = (2, 4, 8, 16, 32, 64), 0
BUDGET = 1024


def compared(clock: et.Clock, steps: int, name: str, planned_for: str) -> dict[str, Any]:
    """Counts along a schedule, less coin flips along the same kind of schedule planned for coin flips."""
    flips, counts = (et.schedule(clock, name, steps=steps, sampler=law) for law in ("ancestral", planned_for))
    row: dict[str, Any] = {"schedule": name, "planned_for": planned_for, "steps": steps}
    for estimator in ("entropy", "cross-entropy"):
        coins = et.path_error(clock, flips, estimator=estimator)
        exact = et.path_error(clock, counts, estimator=estimator, sampler="counted")
        less = exact - coins
        row[estimator] = {
            "coin flips": coins.mean,
            "counted less coin flips": less.mean,
            "stderr": less.stderr,
            "interval": less.interval(),
        }
    return row


def main(names: list[str]) -> None:
    """Models that are not asked for stay as they were."""
    try:
        models = load(FILE)["models"]
    except et.EigentimeError:
        models = {}
    for name in names:
        model = et.load(name)
        prompts = api.own_prompts(model, 1)[1]
        clock = et.measure(model, fixed=prompts, budget=BUDGET, tolerance=0.0, seed=SEED)
        rows = [
            compared(clock, steps, schedule, planned_for)
            for steps in STEPS
            if steps < clock.free
            for schedule, planned_for in (("uniform", "ancestral"), ("ods", "ancestral"), ("ods", "counted"))
        ]
        models[name] = {"tokens": clock.free, "evaluations": clock.evaluations, "rows": rows}
        for row in rows:
            found = row["cross-entropy"]
            low, high = found["interval"]
            less, coins = found["counted less coin flips"], found["coin flips"]
            print(
                f"{name:16} {row['steps']:3} {row['schedule']:8} for {row['planned_for']:10} "
                f"{coins:8.3f} {less:+.3f} ({low:+.3f} to {high:+.3f})",
                flush=True,
            )
        save(FILE, {"models": models}, steps=STEPS, budget=BUDGET, seed=SEED)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    main(parser.parse_args().models)
