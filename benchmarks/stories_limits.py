"""Is it data, or is it parameters and hours that the network of stories lacks?

python benchmarks/stories_limits.py    writes results/stories/limits.json; five minutes on one core, and two more to
                                       draw the sequences where they are not in the cache folder

- data: the negative ELBO above the law's own -ln p, on sequences that the network learned from and on others. More data
  could bring no more than the difference.
- hours: how the negative ELBO on held-out sequences fell while it learned, from its log.
"""

import json
from dataclasses import replace
from typing import Any

import torch
from provenance import save
from stories_tuning import HELD_OUT, estimate

import eigentime as et
from eigentime.models import Trained, zoo
from eigentime.tasks import RECIPES
from eigentime.tasks.story_law import stories
from eigentime.tasks.task import seed_of
from eigentime.training.loop import losses

NOISES = 4
"""Draws of noise for each sequence."""


def data() -> dict[str, Any]:
    """Excess over the law, in nats per token, on sequences that the network learned from, and on others."""
    model, (_, recipe) = et.load("stories"), RECIPES["stories"]
    assert isinstance(model, Trained)
    excess = {}
    for name, part in {"learned_from": "training", "others": "validation"}.items():
        drawn = stories().drawn(HELD_OUT, seed_of(part, recipe.seed))
        noisy = [losses(model.network, replace(recipe, seed=seed), drawn.tokens) for seed in range(NOISES)]
        excess[name] = (torch.stack(noisy).mean(0) + drawn.log_likelihood) / recipe.length
        print(name, estimate(excess[name]), flush=True)
    found: dict[str, Any] = {name: estimate(values) for name, values in excess.items()}
    stderr = (found["learned_from"]["stderr"] ** 2 + found["others"]["stderr"] ** 2) ** 0.5
    gap = found["others"]["mean"] - found["learned_from"]["mean"]
    return found | {"difference": {"mean": gap, "stderr": stderr}}


def hours() -> list[dict[str, float]]:
    """Held-out negative ELBO in nats per token, always of the same sequences with the same noise."""
    recipe, log = RECIPES["stories"][1], json.loads((zoo()["stories"] / "log.json").read_text())
    return [{"sequences": row["step"] * recipe.batch, "nelbo_per_token": row["nelbo"] / recipe.length} for row in log]


if __name__ == "__main__":
    save("stories/limits.json", {"data": data(), "hours": hours()}, seed=0, sequences=HELD_OUT, noises=NOISES)
