"""The networks of stories: how far above the known entropy each is, how it got there, and what it writes.

python benchmarks/stories.py [NAME …]    writes results/stories/networks.json, curves.png and samples.md
"""

import argparse
import json
from typing import Any

import torch
from provenance import ROOT, load, save

import eigentime as et
from eigentime.files import write_atomically
from eigentime.models import Trained, zoo
from eigentime.orders import make_order
from eigentime.report.curves import training_figure
from eigentime.report.figures import save_figure
from eigentime.samplers.teacher import log_likelihood
from eigentime.schedules import Plan
from eigentime.tasks import RECIPES, TASKS
from eigentime.tasks.divergences import from_data, from_samples
from eigentime.tasks.story_law import LENGTH, stories
from eigentime.training.loop import evaluate

SEED, HELD_OUT, SAMPLES, SHOWN, STEPS = 7, 1024, 32, 6, 128
NAMES = ("stories", "stories-sedd", "stories-uniform")


def of_network(name: str) -> tuple[dict[str, Any], list[str]]:
    """NELBO above the entropy, samples with one evaluation per token, and both divergences where they are exact."""
    model, recipe, law = et.load(name), RECIPES[name][1], stories()
    assert isinstance(model, Trained)
    data = TASKS["stories"].draw(HELD_OUT, SEED)
    mean, stderr = evaluate(model.network, recipe, data)
    x = et.sample(model, et.schedule("uniform", steps=STEPS, model=model), SAMPLES, seed=SEED)
    result: dict[str, Any] = {
        "kernel": model.process.kernel.name,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "training": {"hours": model.about["seconds"] / 3600, "sequences": recipe.batch * model.about["log"]["step"]},
        "held_out": HELD_OUT,
        "nelbo_per_token": {"mean": mean / LENGTH, "stderr": stderr / LENGTH},
        "nelbo_above_entropy_per_token": {"mean": (mean - law.entropy) / LENGTH, "stderr": stderr / LENGTH},
        "samples": {"count": SAMPLES, "evaluations": STEPS}
        | {metric: vars(value) for metric, value in TASKS["stories"].metrics(x).items()},
    }
    if model.process.absorbing and model.predicts == "posterior":
        plan = Plan((1,) * LENGTH, make_order("raster"), LENGTH)  # one token at a time in a fixed order: ln q is exact
        few, told = data[:SAMPLES], et.sample(model, plan, SAMPLES, seed=SEED)
        result["one_by_one"] = {
            "order": "raster",
            "kl_data_samples": vars(from_data(law, few, log_likelihood(model, few, plan))),
            "kl_samples_data": vars(from_samples(law, told, log_likelihood(model, told, plan))),
        }
    return result, law.text(x[:SHOWN])


def main(names: list[str]) -> None:
    """Evaluate what is bundled; the page of samples is written anew."""
    path = ROOT / "results" / "stories" / "networks.json"
    known = load("stories/networks.json") if path.exists() else {"networks": {}, "texts": {}}
    results, texts = known["networks"], known["texts"]
    for name in names or [name for name in NAMES if name in zoo()]:
        results[name], texts[name] = of_network(name)
        print(name, json.dumps(results[name], indent=1))
    save("stories/networks.json", {"networks": results, "texts": texts}, seed=SEED)
    picture(list(results))
    law = TASKS["stories"].draw(SHOWN, SEED)
    write_atomically(ROOT / "results" / "stories" / "samples.md", page({"the law itself": stories().text(law)} | texts))


def picture(names: list[str]) -> None:
    """How the networks learned; those that began with another's weights say so, for their axis does not count that."""
    recipes = {name: RECIPES[name][1] for name in names}
    label = {
        name: f"{name}, begun from {made.start_from}" if made.start_from else name for name, made in recipes.items()
    }
    logs = {label[name]: json.loads((zoo()[name] / "log.json").read_text()) for name in names}
    batches = {label[name]: made.batch for name, made in recipes.items()}
    figure = training_figure(logs, batches, LENGTH, stories().entropy / LENGTH)
    save_figure(figure, ROOT / "results" / "stories" / "curves.png")


def page(texts: dict[str, list[str]]) -> str:
    """Stories of the law and of each network, one after the other."""
    parts = [
        f"# Stories of {LENGTH} tokens\n\nNetworks: {STEPS} evaluations, uniform steps, temperature 1, seed {SEED}."
    ]
    for name, stories_told in texts.items():
        parts.append(f"## {name}")
        parts += ["> " + text.replace("\n", "\n> ") for text in stories_told]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[])
    main(parser.parse_args().names)
