"""Equal steps against measured ones through the scheduler that diffusers' pipelines call, on a trained network.

python benchmarks/engines.py   writes results/engines.json: certified nats, and what judges say of samples drawn in a
plain loop with the scheduler's own `step`, on the bundled network `text-uniform` at 4 … 64 evaluations

DiscreteDDIM is diffusers' own scheduler, whose grid α = k/K is fixed. Its certificate is that of the strategy
`uniform`, whose α differ from k/K by at most 0.001: the noise curve of the network ends there.
"""

import argparse
import time
from typing import Any

import torch
from diffusers import DiscreteDDIMScheduler
from provenance import save

import eigentime as et
from eigentime.models import Model
from eigentime.tasks import MODELS

NAME = "text-uniform"
STEPS = (4, 8, 16, 32, 64)
BATCH = 16


def alphas_of(scheduler: Any) -> list[float]:
    """α before the first evaluation and after each, of ours or theirs."""
    return [scheduler._alpha(k) for k in range(scheduler.num_inference_steps + 1)]


def walked(model: Model, scheduler: Any, count: int, seed: int) -> torch.Tensor:
    """Samples in a plain loop: network, `step`, network, …"""
    size, noise = model.process.kernel.size, model.process.noise
    generator, found = torch.Generator().manual_seed(seed), []
    for start in range(0, count, BATCH):
        x = torch.randint(0, size, (min(BATCH, count - start), model.length), generator=generator)
        for k, alpha in enumerate(alphas_of(scheduler)[:-1]):
            t = noise.time_of_alpha(alpha).expand(len(x))
            logits = model(x, t)
            x = scheduler.step(logits, k, x, temperature=1.0, generator=generator).prev_sample
        found.append(x)
    return torch.cat(found)


def main() -> None:
    """Measure once, then draw and judge every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    settings = vars(parser.parse_args())
    model, task = et.load(NAME), MODELS[NAME]
    began = time.perf_counter()
    clock = et.measure(model, task.draw(256, settings["seed"]), budget=settings["budget"], tolerance=0.0)
    ours = et.diffusers.scheduler(clock)
    real = {name: vars(value) for name, value in task.metrics(task.draw(settings["samples"], 99)).items()}
    rows = []
    for steps in STEPS:  # written after every number of steps: what is done is not lost
        theirs = DiscreteDDIMScheduler(steps)
        ours.set_timesteps(steps)
        for name, scheduler in (("DiscreteDDIM, equal steps", theirs), ("measured, ODS", ours)):
            start = time.perf_counter()
            x = walked(model, scheduler, settings["samples"], settings["seed"] + 1)
            seconds = time.perf_counter() - start
            grid = et.schedule(clock, "ods" if scheduler is ours else "uniform", steps=steps)
            error = et.path_error(clock, grid)
            metrics = {name: vars(value) for name, value in task.metrics(x).items()}
            rows.append(
                {
                    "scheduler": name,
                    "evaluations": steps,
                    "path_error": {"mean": error.mean, "stderr": error.stderr},
                    "alphas": alphas_of(scheduler),
                    "metrics": metrics,
                    "seconds": seconds,
                }
            )
            said = ", ".join(f"{key} {value['mean']:.3f}" for key, value in metrics.items())
            print(f"{steps} {name}: {error.mean:.1f} ± {error.stderr:.1f} nats, {said}, {seconds:.0f} s", flush=True)
        known = {
            "model": NAME,
            "samples": settings["samples"],
            "measuring_evaluations": clock.evaluations,
            "real": real,
        }
        save("engines.json", {**known, "rows": rows, "seconds": time.perf_counter() - began}, **settings)


if __name__ == "__main__":
    main()
