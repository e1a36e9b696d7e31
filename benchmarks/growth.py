"""How our own work grows with vocabulary, length, samples and steps; and ODS for every number of steps.

python benchmarks/growth.py     writes results/bench/growth.json and draws results/bench/growth.png

The network is next to nothing (an embedding, and a projection of 16 numbers), on one thread, so that what is timed is
ours. Slopes are fitted to the logarithms of the largest three sizes: 1 is proportional, 0 does not grow.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from provenance import ROOT, save

import eigentime as et
from eigentime.report.bench import growth_figure
from eigentime.report.figures import save_figure

WIDTH, REPEATS, SEED = 16, 5, 0
USUAL = {"vocabulary": 8192, "length": 256, "samples": 8, "steps": 16}
SIZES = {
    "vocabulary": (2048, 8192, 32_768, 131_072),
    "length": (64, 256, 1024, 4096),
    "samples": (2, 8, 32, 128),
    "steps": (4, 16, 64, 256),
}
MOST_STEPS = 1024


def model_of(vocabulary: int, length: int) -> et.Model:
    """A masked model whose evaluation costs almost nothing."""
    torch.manual_seed(SEED)
    trunk = torch.nn.Embedding(vocabulary, WIDTH)
    process = et.Process(et.Absorbing(vocabulary), et.LogLinear())
    head = torch.nn.Linear(WIDTH, vocabulary)
    return et.wrap(trunk, process, length=length, time=None, head=head, name="next to nothing")


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Median of a few runs, and the distance of the quartiles."""
    work()
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    low, middle, high = statistics.quantiles(found, n=4)
    return middle, high - low


def line(name: str, sampler: str) -> dict[str, Any]:
    """Seconds at every size of one kind, the others as usual."""
    times, spreads = [], []
    for size in SIZES[name]:
        shape = {**USUAL, name: size}
        model = model_of(shape["vocabulary"], shape["length"])
        grid = et.schedule("uniform", steps=shape["steps"], model=model)
        middle, spread = seconds(lambda: et.sample(model, grid, shape["samples"], sampler=sampler))  # noqa: B023
        times.append(middle)
        spreads.append(spread)
    slope = np.polyfit(np.log(SIZES[name][-3:]), np.log(times[-3:]), 1)[0]
    return {"sizes": SIZES[name], "seconds": times, "spread": spreads, "slope": float(slope)}


def main() -> None:
    """Both kinds of sampler over all sizes, then ODS."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name in SIZES:
        found[name] = {sampler: line(name, sampler) for sampler in ("ancestral", "confidence")}
        print(name, {sampler: round(one["slope"], 2) for sampler, one in found[name].items()}, flush=True)
    clock = et.measure(et.load("countdown-exact"), budget=512, seed=SEED)
    began = time.perf_counter()
    for steps in range(1, MOST_STEPS + 1):
        et.schedule(clock, "ods", steps=steps)
    ods = time.perf_counter() - began
    print(f"ODS for 1 … {MOST_STEPS} steps: {ods:.2f} s")
    result = {"growth": found, "ods": {"most_steps": MOST_STEPS, "seconds": ods}}
    save("bench/growth.json", result, threads=1, repeats=REPEATS, seed=SEED, usual=USUAL)
    save_figure(growth_figure(found), ROOT / "results" / "bench" / "growth.png")


if __name__ == "__main__":
    main()
