"""How good each of the bundled networks is.

python benchmarks/zoo.py [NAME …]    writes results/zoo.json, and evaluation.json beside the weights
"""

import argparse
import json
import math
import time
from typing import Any

import torch
from provenance import load, save

import eigentime as et
from eigentime.models import Trained, zoo
from eigentime.process.randomness import Purpose, uniforms
from eigentime.report.provenance import save_results
from eigentime.tasks import RECIPES, ExactTask
from eigentime.tasks.metrics import over_sequences
from eigentime.training.loop import evaluate as held_out_nelbo
from eigentime.training.losses import posterior_nelbo, score_entropy

SEED, SEQUENCES, STEPS, SAMPLES = 7, 512, 256, 48
HELD_OUT = {"text": 2048}
"""Held-out sequences by task, where they are more than 256."""


def evaluate(name: str) -> dict[str, Any]:
    """How good a network is: beside the exact model where there is one, else on held-out data."""
    model, (task, recipe) = et.load(name), RECIPES[name]
    assert isinstance(model, Trained)
    result: dict[str, Any] = {
        "kernel": model.process.kernel.name,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "training_minutes": model.about["seconds"] / 60,
        "steps": model.about["recipe"]["steps"],
    }
    if isinstance(task, ExactTask):
        return result | beside_exact(model, task)
    x0 = task.draw(HELD_OUT.get(task.name, 256), SEED)
    mean, stderr = held_out_nelbo(model.network, recipe, x0)
    bits = math.log(2) * (model.length - task.given)
    if task.name == "text":
        result["judge_bits"] = vars(task.metrics(x0)["bits"])
    return result | {
        "nelbo": {"mean": mean, "stderr": stderr},
        "bits_per_token": {"mean": mean / bits, "stderr": stderr / bits},
        "held_out": len(x0),
    }


def beside_exact(model: Trained, task: ExactTask) -> dict[str, Any]:
    """Negative ELBO above the exact model's on the same noisy sequences, and for countdown violations of long runs."""
    exact = task.exact(model.process.kernel.name)
    x0 = task.draw(SEQUENCES, SEED)
    t = 1.0 - (uniforms(SEED, Purpose.TIME, 1, 1).item() + torch.arange(SEQUENCES, dtype=torch.float64) / SEQUENCES) % 1
    x = model.process.corrupt(
        x0, t, *(uniforms(SEED, purpose, SEQUENCES, model.length) for purpose in (Purpose.CORRUPT, Purpose.REPLACE))
    )
    x[:, : task.given] = x0[:, : task.given]
    values = []
    for part in torch.arange(SEQUENCES).split(32):
        pair = []
        for judged in (model, exact):
            loss = score_entropy if judged.predicts == "score" else posterior_nelbo

            def predict(tokens, sigma, where, judged=judged, part=part):  # type: ignore[no-untyped-def]
                return judged(tokens, t[part], where).clamp(min=-200.0)

            pair.append(loss(predict, model.process, x0[part], x[part], t[part], task.given).double())
        values.append(torch.stack(pair))
    network, truth = torch.cat(values, 1)
    above = over_sequences(network - truth)
    entropy = exact.answer_entropy if task.given else exact.entropy  # type: ignore[attr-defined]
    result = {
        "entropy": entropy,
        "nelbo_above_exact": {"mean": above.mean, "stderr": above.stderr},
        "relative": {"mean": above.mean / entropy, "stderr": above.stderr / entropy},
    }
    if task.name == "countdown":
        began = time.perf_counter()
        fresh = et.load(model.name)
        et.sample(fresh, et.schedule("uniform", steps=16, model=fresh), 64, seed=SEED)
        result["seconds_to_load_and_draw_64_with_16_steps"] = time.perf_counter() - began
        clock = et.measure(model, task.draw(256, SEED), budget=1024, seed=SEED)
        for strategy in ("uniform", "ods"):
            sampled = et.sample(model, et.schedule(clock, strategy, steps=STEPS), SAMPLES, seed=SEED)
            result[f"violation_{strategy}_{STEPS}"] = vars(task.metrics(sampled)["violation"])
    return result


def main(names: list[str]) -> None:
    """Evaluate what is bundled, or some of it."""
    results = load("zoo.json")["models"] if names else {}
    for name in names or zoo():
        results[name] = evaluate(name)
        print(name, json.dumps(results[name]))
        save_results(zoo()[name] / "evaluation.json", results[name], seed=SEED, sequences=SEQUENCES, samples=SAMPLES)
    save("zoo.json", {"models": results}, seed=SEED, sequences=SEQUENCES, samples=SAMPLES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[])
    main(parser.parse_args().names)
