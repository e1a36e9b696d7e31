"""What our own work costs beside the network's, at the size of a published one and with random weights.

python benchmarks/speed.py      writes results/bench/speed.json and draws results/bench/speed.png

MDLM-small: 768 wide, 12 blocks, 50,258 words, sequences of 1,024 tokens, one sequence at a time on one thread. Times
are ratios to the backbone (the network without its vocabulary projection), which is timed before and after every step
in the same run; medians, with quartiles beside them. Memory is the peak of a process of its own, above what it held
when the network was there.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from provenance import ROOT, load, save

import eigentime as et
from eigentime.models import Trained
from eigentime.models.ddit import DDiTConfig
from eigentime.models.trained import build
from eigentime.orders import make_order
from eigentime.report.bench import ratios_figure
from eigentime.report.figures import save_figure
from eigentime.schedules import Plan

SIZE, LENGTH, WIDTH, BLOCKS, SEED = 50_258, 1024, 768, 12, 0
MOST = 8
"""Steps of a run that are timed."""
MANY = 64
"""Samples whose memory is looked at."""
TARGETS = {
    "ancestral, 4 steps": 1.15,
    "ancestral, 16 steps": 1.06,
    "ancestral, 64 steps": 1.06,
    "plan, 4 steps": 1.15,
    "plan, 16 steps": 1.06,
    "confidence, 16 steps": 1.5,
    "measuring": 1.2,
    "measuring, 64 rows": 1.08,
}
"""Backbones per step, at most."""


def network() -> Trained:
    """The published size, random weights."""
    torch.manual_seed(SEED)
    made = build(DDiTConfig(SIZE, WIDTH, BLOCKS, WIDTH // 64))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0, 0.02)
    return Trained(made, et.Process(et.Absorbing(SIZE), et.LogLinear()), LENGTH, "MDLM-small, random weights", {})


class Stopwatch:
    """Seconds of steps in units of the backbone, which runs before the first and after each of them."""

    def __init__(self, model: Trained) -> None:
        self.model, self.found = model, list[float]()
        self.before = self._backbone()
        self.began = time.perf_counter()

    def lap(self, evaluations: int = 1) -> None:
        """A step has ended."""
        seconds = time.perf_counter() - self.began
        after = self._backbone()
        self.found.append(2 * seconds / (self.before + after) / evaluations)
        self.before, self.began = after, time.perf_counter()

    def _backbone(self) -> float:
        x, t = torch.full((1, LENGTH), SIZE - 1), torch.ones(1, dtype=torch.float64)
        began = time.perf_counter()
        with torch.no_grad():
            self.model.hidden(x, t)
        return time.perf_counter() - began

    @property
    def ratios(self) -> dict[str, Any]:
        """Median and quartiles."""
        low, middle, high = statistics.quantiles(self.found, n=4)
        return {"median": middle, "low": low, "high": high, "steps": len(self.found)}


def sampling(model: Trained, planned: Any, sampler: str = "ancestral") -> dict[str, Any]:
    """Steps of sampling, the whole run or its first ones and again from the beginning."""
    watch = Stopwatch(model)

    def told(_: Any) -> bool:
        watch.lap()
        return len(watch.found) % MOST == 0

    while len(watch.found) < MOST:
        et.sample(model, planned, 1, sampler=sampler, seed=SEED, batch_size=1, callback=told)
    return watch.ratios


def measuring(model: Trained, rows: int | None) -> dict[str, Any]:
    """Evaluations of a measurement, at levels of noise spread over all."""
    data = torch.randint(0, SIZE - 1, (8, LENGTH), generator=torch.Generator().manual_seed(SEED))
    times = [(k + 0.5) / 8 for k in range(8)]
    watch = Stopwatch(model)
    for number in range(3):
        one = data[number : number + 1]
        clock = et.measure(model, one, times=times, samples=1, rows=rows, batch_size=1, seed=number)
        watch.lap(clock.evaluations)
    return watch.ratios


def dense_update(model: Trained, x: torch.Tensor, t: float, s: float, generator: torch.Generator) -> torch.Tensor:
    """A step as MDLM's repository takes it: logits of all tokens, known ones put in, normalised, the law of every token
    over the whole vocabulary, Gumbel noise, the largest."""
    mask, projection = SIZE - 1, model.network.output_layer.linear
    assert isinstance(projection, torch.nn.Linear)
    logits = projection(model.hidden(x, torch.full((len(x),), t, dtype=torch.float64)))
    logits[..., mask] -= 1e6
    logits = logits - torch.logsumexp(logits, -1, keepdim=True)
    known = x != mask
    logits[known] = -1e6
    logits[known, x[known]] = 0.0
    law = logits.exp() * (t - s)
    law[..., mask] = s
    noise = 1e-10 - (torch.rand(law.shape, generator=generator) + 1e-10).log()
    return torch.where(known, x, (law / noise).argmax(-1))


def dense(model: Trained) -> dict[str, Any]:
    """The same step with everything computed."""
    x, generator = torch.full((1, LENGTH), SIZE - 1), torch.Generator().manual_seed(SEED)
    watch = Stopwatch(model)
    with torch.no_grad():
        for k in range(MOST):
            x = dense_update(model, x, 1 - k / 16, 1 - (k + 1) / 16, generator)
            watch.lap()
    return watch.ratios


def head_alone(model: Trained) -> dict[str, Any]:
    """The vocabulary projection of all tokens and nothing else, as published networks call it."""
    projection, hidden = model.network.output_layer.linear, torch.randn(1, LENGTH, WIDTH)
    watch = Stopwatch(model)
    with torch.no_grad():
        for _ in range(MOST):
            projection(hidden)  # type: ignore[operator]
            watch.lap()
    return watch.ratios


def peak(work: Callable[[Trained], Any]) -> float:
    """GiB that a process needs for some work beyond the network and the libraries, as Linux counts."""
    model = network()
    x, t = torch.full((1, 8), SIZE - 1), torch.ones(1, dtype=torch.float64)
    with torch.no_grad():
        model.network(x, t.float(), x == SIZE - 1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _resident("VmRSS")
    work(model)
    return (_resident("VmHWM") - before) / 2**20


def _resident(what: str) -> int:
    """Kilobytes of memory now or at the peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[what].split()[0])


def _grid(model: Trained, steps: int) -> et.Schedule:
    return et.schedule("uniform", steps=steps, model=model)


def _plan(steps: int) -> Plan:
    return Plan((LENGTH // steps,) * steps, make_order("low-discrepancy"), LENGTH)


MEMORY: dict[str, Callable[[Trained], Any]] = {
    "dense update, 1 sample": lambda model: dense_update(
        model, torch.full((1, LENGTH), SIZE - 1), 1.0, 0.9, torch.Generator().manual_seed(SEED)
    ),
    "ancestral, 1 sample": lambda model: et.sample(model, _grid(model, 2), 1, batch_size=1),
    f"ancestral, {MANY} samples": lambda model: et.sample(model, _grid(model, 1), MANY),
}


def timed() -> dict[str, Any]:
    """Every kind of step."""
    model = network()
    rows = {
        "ancestral, 4 steps": lambda: sampling(model, _grid(model, 4)),
        "ancestral, 16 steps": lambda: sampling(model, _grid(model, 16)),
        "ancestral, 64 steps": lambda: sampling(model, _grid(model, 64)),
        "plan, 4 steps": lambda: sampling(model, _plan(4)),
        "plan, 16 steps": lambda: sampling(model, _plan(16)),
        "confidence, 16 steps": lambda: sampling(model, _grid(model, 16), "confidence"),
        "measuring": lambda: measuring(model, None),
        "measuring, 64 rows": lambda: measuring(model, 64),
        "dense update": lambda: dense(model),
        "head on all tokens alone": lambda: head_alone(model),
    }
    times = {}
    for name, work in rows.items():
        times[name] = work() | {"target": TARGETS.get(name)}
        print(name, times[name], flush=True)
    return times


def remembered() -> dict[str, float]:
    """Memory of each kind of work, in a process of its own."""
    memory = {}
    for name in MEMORY:
        done = subprocess.run([sys.executable, __file__, "--child", name], capture_output=True, text=True, check=True)
        memory[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, f"{memory[name]:.2f} GiB", flush=True)
    return memory


def main(memory_only: bool) -> None:
    """Time every kind of step, then look at memory."""
    torch.set_num_threads(1)
    times = load("bench/speed.json")["backbones_per_step"] if memory_only else timed()
    memory = remembered()
    settings = {"size": SIZE, "length": LENGTH, "width": WIDTH, "blocks": BLOCKS, "threads": 1, "seed": SEED}
    save("bench/speed.json", {"backbones_per_step": times, "gib_beyond_weights": memory}, **settings)
    save_figure(ratios_figure(times, memory), ROOT / "results" / "bench" / "speed.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", action="store_true", help="keep the times of the last run, look at memory again")
    parser.add_argument("--child", choices=list(MEMORY), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is None:
        main(arguments.memory)
    else:
        torch.set_grad_enabled(False)
        print(json.dumps(peak(MEMORY[arguments.child])))
