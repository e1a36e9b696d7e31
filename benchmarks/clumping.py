"""Why do the rules that the field uses lose against chance: do their choices clump, or are they too sure?

What data cost splits into three parts, each measured on the same sequences:

    nats = NELBO  +  (one token at a time in this order - NELBO)  +  (nats - one token at a time in this order).

The second is what the order does to the network: below 0 where its sure tokens are right more often than others, above
0 where it is too sure. The third is what tokens that are drawn at once lose because they depend on each other: what
clumping costs. For an exact model the second is 0 whatever the order.

python benchmarks/clumping.py [--models text,…]    writes results/choosing/clumping.json; a minute on one core
"""

import argparse
from typing import Any

import numpy as np
import torch
from provenance import load, save

import eigentime as et
from eigentime import api
from eigentime.intervals import PerSequence
from eigentime.models import Model
from eigentime.samplers import label
from eigentime.samplers.teacher import nelbo, one_at_a_time, teach

SEQUENCES, REFERENCES, SEED = {"countdown-exact": 16, "text": 8, "digits": 64}, 24, 0
STEPS = (4, 16)
SAMPLERS = ("counted", et.LowestEntropy(), et.LowestEntropy(ties="first"))


def split(model: Model, x: torch.Tensor, sampler: Any, steps: int, floor: torch.Tensor) -> dict[str, Any]:
    """The parts of what data cost, in nats per token, and how close to each other the tokens of a step are."""
    walked = teach(model, x, et.schedule("uniform", steps=steps, model=model), sampler, seed=SEED)
    cost = -walked.logs.sum(1)
    if model.exact:
        excess = cost - floor  # every order is the chain rule
    else:
        single, chosen, weights = one_at_a_time(model, walked, REFERENCES, seed=SEED)
        excess = (weights * (single - walked.logs.gather(1, chosen))).sum(1)
    together = (walked.step[:, 1:] == walked.step[:, :-1]).double().mean().item()
    parts = {"nats": cost, "order": cost - excess - floor, "clumping": excess}
    numbers = {name: PerSequence(part.numpy() / model.length) for name, part in parts.items()}
    return {
        "sampler": label(sampler),
        "steps": steps,
        "neighbours revealed together": together,
        **{name: {"mean": part.mean, "stderr": part.stderr} for name, part in numbers.items()},
    }


def main(names: list[str]) -> None:
    """Networks and an exact model; those that are not asked for stay as they were."""
    try:
        results = {name: part for name, part in load("choosing/clumping.json").items() if name in SEQUENCES}
    except et.EigentimeError:
        results = {}
    for name in names:
        model, count = et.load(name), SEQUENCES[name]
        x = api.own_data(model, count, SEED)
        everywhere = torch.ones_like(x, dtype=torch.bool)
        floor = -model.log_likelihood(x) if model.exact else nelbo(model, x, everywhere, REFERENCES, seed=SEED)
        rows = [split(model, x, sampler, steps, floor) for sampler in SAMPLERS for steps in STEPS]
        results[name] = {"nelbo": float(np.mean(floor.numpy())) / model.length, "rows": rows}
        save("choosing/clumping.json", results, sequences=SEQUENCES, references=REFERENCES, seed=SEED)
        for row in rows:
            print(name, row, flush=True)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(SEQUENCES))
    main(parser.parse_args().models.split(","))
