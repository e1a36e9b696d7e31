"""A thousand measure/schedule/sample cycles in one process: the memory stays where it was.

python benchmarks/trust/soak.py                 writes results/trust/soak.json
python benchmarks/trust/soak.py --cycles 60     fewer, printed as JSON and not written
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import torch  # noqa: E402
from provenance import save  # noqa: E402
from readers import table  # noqa: E402

import eigentime as et  # noqa: E402

CYCLES, WARM = 1000, 200
MOST_GROWTH = 8.0
"""Megabytes from the warm process to the end: a leak of one small clock per cycle would be more than 15."""
KERNELS = ("absorbing", "uniform", "rate-matrix")


def resident() -> float:
    """Megabytes that the process has in memory now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cycle(number: int, folder: Path) -> None:
    """Measure, save and load, schedule, plan, certify and sample, exact models and a network in turn."""
    kernel = KERNELS[number % len(KERNELS)]
    model: et.Model = et.load("countdown") if number % 20 == 0 else table(kernel)
    masked = model.process.absorbing
    data = et.load("countdown-exact").draw(16, number) if not model.exact else model.draw(16, number)
    clock = et.measure(model, data, budget=32, orders=["raster"] if masked else (), seed=number)
    clock.save(folder / "clock.safetensors")
    again = et.Clock.load(folder / "clock.safetensors")
    grid = et.schedule(again, "ods", steps=2 + number % 3)
    et.path_error(again, grid)
    et.sample(model, grid, 8, seed=number)
    if masked:
        et.sample(model, et.plan(again, steps=2), 8, seed=number)
        if model.exact and number % 4 == 0:
            et.nll(model, data, "ancestral", grid, sequences=8, seed=number)


def main() -> None:
    """All cycles, with a look at the memory after every tenth of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=CYCLES)
    cycles = parser.parse_args().cycles
    torch.set_num_threads(1)
    warm, began, seen = cycles * WARM // CYCLES, time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(1, cycles + 1):
            cycle(number, Path(folder))
            if number == warm or number % max(1, cycles // 10) == 0:
                seen[str(number)] = round(resident(), 1)
                print(number, seen[str(number)], file=sys.stderr, flush=True)
    growth = round(seen[str(cycles)] - seen[str(warm)], 1)
    content = {"cycles": cycles, "warm_after": warm, "megabytes": seen, "growth": growth, "allowed": MOST_GROWTH}
    content["seconds"] = round(time.perf_counter() - began)
    if cycles == CYCLES:
        save("trust/soak.json", content, cycles=cycles)
    else:
        print(json.dumps(content))
    sys.exit(1 if growth > MOST_GROWTH else 0)


if __name__ == "__main__":
    main()
