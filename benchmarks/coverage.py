"""Do intervals that say 95 % cover 95 %? Of data costs under samplers, on worlds whose truth is known.

python benchmarks/coverage.py [--seeds 400]    writes results/coverage/nll.json; a few minutes on one core
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from provenance import save
from scipy.stats import beta

import eigentime as et
from eigentime.intervals import PerSequence, student_interval
from eigentime.models import Oracle
from eigentime.samplers.teacher import teach

LEVEL, SEED, SHARPER = 0.95, 0, 100
"""The truth of a chain is the mean of so many times the sequences of the largest cell."""
SEQUENCES = (16, 64, 256)


def table(seed: int = 3) -> Oracle:
    """Every sequence has a probability of its own."""
    p0 = np.random.default_rng(seed).dirichlet(np.full(3**4, 0.3)).reshape((3,) * 4)
    return et.Table(p0, et.Process(et.Absorbing(4), et.LogLinear()))


def chain(stay: float, rare: float, length: int = 16) -> Oracle:
    """Five values that mostly stay; the last is entered with a small probability."""
    moves = np.full((5, 5), (1 - stay - rare) / 3)
    moves[:, 4] = rare
    np.fill_diagonal(moves, stay)
    moves /= moves.sum(1, keepdims=True)
    first = np.array([0.25 - rare / 4] * 4 + [rare])
    return et.MarkovChain(first, moves, length, et.Process(et.Absorbing(6), et.LogLinear()))


WORLDS: dict[str, Callable[[], Oracle]] = {
    "table": table,
    "sharp chain": lambda: chain(0.95, 0.0125),
    "rare events": lambda: chain(0.6, 0.002),
}


def excesses(model: Oracle, sampler: Any, planned: Any, count: int, seed: int) -> np.ndarray:
    """ln p - ln q of so many sequences: their mean is KL(data ‖ samples), or a bound on it."""
    x = model.draw(count, seed)
    return (model.log_likelihood(x) + -teach(model, x, planned, sampler, seed=seed).logs.sum(1)).numpy()


def cell(values: np.ndarray, truth: float) -> dict[str, Any]:
    """How many of the intervals hold the truth: ours, Student's and the normal one."""
    inside = {"bootstrap_t": [], "student": [], "normal": []}
    infinite = 0
    for row in values:
        found = PerSequence(row)
        ours = found.interval(LEVEL)
        infinite += not np.isfinite(ours).all()
        t = student_interval(found.mean, found.stderr, len(row) - 1, LEVEL)
        z = student_interval(found.mean, found.stderr, None, LEVEL)
        for name, (low, high) in zip(inside, (ours, t, z), strict=True):
            inside[name].append(low <= truth <= high)
    count = len(values)
    covered = {name: int(np.sum(found)) for name, found in inside.items()}
    return cell_of(covered, count) | {"infinite": infinite / count}


def cell_of(covered: dict[str, int], count: int) -> dict[str, Any]:
    """How often intervals covered, with the exact 99.9 % binomial interval of the first kind."""
    hits = next(iter(covered.values()))
    low = float(beta.ppf(0.0005, hits, count - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.9995, hits + 1, count - hits)) if hits < count else 1.0
    return {"seeds": count, "covered": covered, "interval_999": [low, high]}


def main(seeds: int) -> None:
    """Every world, sampler and number of sequences."""
    cells = []
    for world, make in WORLDS.items():
        model = make()
        two = et.schedule("uniform", steps=2, model=model)
        ways = {
            "ancestral, 2 steps": ("ancestral", two),
            "entropy, 2 steps": ("entropy", two),
            "entropy-bounded 1.5": (et.EntropyBounded(1.5), None),
            "threshold 0.7": (et.Threshold(0.7), None),
        }
        for name, (sampler, planned) in ways.items():
            truth_values = excesses(model, sampler, planned, SHARPER * SEQUENCES[-1], SEED + 10**6)
            truth, doubt = truth_values.mean(), truth_values.std() / len(truth_values) ** 0.5
            for number in SEQUENCES:
                values = excesses(model, sampler, planned, seeds * number, SEED + number).reshape(seeds, number)
                found = {"world": world, "sampler": name, "sequences": number, "truth": truth, "truth_stderr": doubt}
                cells.append(found | cell(values, truth))
                shares = {key: value / seeds for key, value in cells[-1]["covered"].items()}
                print(world, name, number, shares, flush=True)
    pooled = {
        key: sum(each["covered"][key] for each in cells) / sum(each["seeds"] for each in cells)
        for key in cells[0]["covered"]
    }
    print(pooled)
    save("coverage/nll.json", {"cells": cells, "pooled": pooled}, seed=SEED, seeds=seeds, level=LEVEL)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400)
    main(parser.parse_args().seeds)
