"""DiffusionGemma at its real vocabulary with a small trunk: what measuring, scheduling and sampling take, and what
self-conditioning does.

python benchmarks/gemma.py   writes results/bench/gemma.json; weights are random, so that memory and time mean something
and the numbers of nats do not. Peak memory is that of the whole process so far, interpreter and libraries included.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from provenance import save

import eigentime as et
from eigentime.engines.examples import tiny_diffusion_gemma

VOCABULARY, CANVAS = 262_144, 256
MODES = ("off", "once", "previous")


def network(vocabulary: int, canvas: int) -> Any:
    """Two layers of width 64."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32, "global_head_dim": 32, "sliding_window": 512}
    return tiny_diffusion_gemma(canvas, vocabulary, moe_intermediate_size=64, **sizes)


def cost(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What something returns, its seconds of CPU, and the peak memory so far in MB."""
    start = time.process_time()
    found = work()
    return found, {
        "cpu_seconds": time.process_time() - start,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def real_vocabulary(budget: int, steps: int) -> dict[str, Any]:
    """Memory and time with 262,144 words and canvases of 256 tokens after a context of 64."""
    rows: dict[str, Any] = {}
    made, rows["network"] = cost(lambda: network(VOCABULARY, CANVAS))
    rows["network"]["parameters"] = sum(parameter.numel() for parameter in made.parameters())
    model = et.gemma.model(made)
    numbers = torch.Generator().manual_seed(1)
    context = torch.randint(0, VOCABULARY, (2, 64), generator=numbers)
    data = torch.randint(0, VOCABULARY, (2, CANVAS), generator=numbers)
    time_now = torch.zeros(1, dtype=torch.float64)
    one = torch.zeros(1, CANVAS, dtype=torch.bool)
    one[:, :16] = True
    _, rows["trunk and 16 rows of the head"] = cost(lambda: model(data[:1], time_now, one, context[:1]))
    clock, rows["measure"] = cost(lambda: et.measure(model, data, cond=context, budget=budget))
    levels = len(clock.measured.nodes)
    rows["measure"] |= {"evaluations": clock.evaluations, "levels": levels}
    # 16 positions at all levels with seven numbers each for every word, in double precision: what need not be held
    rows["measure"]["all_at_once_mb"] = 16 * levels * 7 * VOCABULARY * 8 / 2**20
    grid, rows["schedule"] = cost(lambda: et.schedule(clock, "ods", steps=steps))
    for how in MODES:
        _, rows[f"sample, self-conditioning {how}"] = cost(
            lambda how=how: et.sample(model.conditioned(how), grid, 1, cond=context[:1])
        )
    _, rows["generate, its own loop"] = cost(lambda: _generate(made, grid, context[:1], steps))
    rows["encoded_tokens"] = model.contexts.encoded
    return rows


def _generate(made: Any, grid: et.Schedule, context: torch.Tensor, steps: int) -> Any:
    with et.gemma.sampling(made, grid):
        return made.generate(context, max_new_tokens=CANVAS, max_denoising_steps=steps)


def self_conditioning(steps: int, samples: int) -> dict[str, Any]:
    """How far the three kinds are apart on a small network: KL per token between their posteriors along paths of the
    first, and the certified path error of those that have one."""
    made = network(97, 16)
    context = torch.randint(0, 97, (samples, 24), generator=torch.Generator().manual_seed(2))
    models = {how: et.gemma.model(made, how) for how in MODES}
    grid = et.schedule("uniform", steps=steps, model=models["off"])
    seen: list[torch.Tensor] = []
    data = et.sample(models["off"], grid, samples, cond=context, callback=lambda now: seen.append(now.tokens))
    everywhere = torch.ones_like(data, dtype=torch.bool)
    index, times = torch.arange(samples), torch.zeros(samples, dtype=torch.float64)
    paths: dict[str, dict[int, torch.Tensor]] = {how: {} for how in MODES}
    rows = []
    for canvas in seen[:-1]:
        logs = {
            how: model.head(
                model.evaluate_along(paths[how], index, canvas, times, everywhere, context).rows
            ).log_softmax(-1)
            for how, model in models.items()
        }
        rows.append(
            {
                f"{first} from {second}": (logs[first].exp() * (logs[first] - logs[second])).sum(-1).mean().item()
                for first, second in (("once", "off"), ("previous", "off"), ("previous", "once"))
            }
        )
    errors = {}
    for how in MODES[:2]:
        clock = et.measure(models[how], data, cond=context, budget=256 * models[how].passes, tolerance=0.0)
        found = et.path_error(clock, et.schedule(clock, "ods", steps=steps))
        errors[how] = {"mean": found.mean, "stderr": found.stderr}
    return {"nats_per_token": rows, "path_error_ods": errors, "steps": steps, "samples": samples}


def main() -> None:
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=16, help="evaluations that measuring spends")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--samples", type=int, default=16, help="paths on which self-conditioning is compared")
    settings = vars(parser.parse_args())
    content = {
        "vocabulary": VOCABULARY,
        "canvas": CANVAS,
        "real_vocabulary": real_vocabulary(settings["budget"], settings["steps"]),
        "self_conditioning": self_conditioning(8, settings["samples"]),
    }
    for name, row in content["real_vocabulary"].items():
        print(name, row)
    print(content["self_conditioning"])
    save("bench/gemma.json", content, **settings)


if __name__ == "__main__":
    main()
