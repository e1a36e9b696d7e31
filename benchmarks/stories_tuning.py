"""Short runs of the network of stories: which batch and learning rate learn most from equally many sequences.

python benchmarks/stories_tuning.py [--sequences 16000]    writes results/stories/tuning.json; ten minutes per run on
                                                           one core, finished runs are not made again
"""

import argparse
from dataclasses import replace

import torch
from provenance import save

from eigentime.data import cache_folder
from eigentime.tasks import RECIPES
from eigentime.training import train
from eigentime.training.loop import losses

CHOICES = [(16, 1e-3), (16, 2e-3), (8, 1e-3), (4, 1e-3), (8, 2e-3), (4, 5e-4)]
"""Sequences per step and learning rate; the first is what the others are compared with."""
WARMUP_SEQUENCES = AVERAGED_SEQUENCES = 3200
HELD_OUT = 1024


def main(sequences: int) -> None:
    """Train each choice on the training part, judge it on the validation part, paired by sequence and noise."""
    task, recipe = RECIPES["stories"]
    data = task.draw_part("training", sequences, recipe.seed)
    held_out = task.draw_part("validation", HELD_OUT, recipe.seed)
    runs, first = [], None
    for batch, rate in CHOICES:
        short = replace(
            recipe,
            steps=sequences // batch,
            batch=batch,
            learning_rate=rate,
            warmup=WARMUP_SEQUENCES // batch,
            ema=1 - batch / AVERAGED_SEQUENCES,
        )
        folder = cache_folder() / "stories" / "tuning" / f"{batch}-{rate:g}-{sequences}"
        trained = train(short, data, held_out[:256], folder)
        values = losses(trained.network, recipe, held_out) / recipe.length
        first = values if first is None else first
        nelbo, worse = estimate(values), estimate(values - first)
        settings = {"batch": batch, "learning_rate": rate, "sequences": sequences}
        results = {"nelbo_per_token": nelbo, "above_the_first": worse, "seconds": trained.about["seconds"]}
        runs.append(settings | results)
        print(
            f"batch {batch}, learning rate {rate:g}: {nelbo['mean']:.3f}, {worse['mean']:+.3f} ± {worse['stderr']:.3f}"
        )
        save("stories/tuning.json", {"runs": runs}, seed=recipe.seed, held_out=HELD_OUT)


def estimate(values: torch.Tensor) -> dict[str, float]:
    """Mean and standard error."""
    return {"mean": values.mean().item(), "stderr": values.std().item() / len(values) ** 0.5}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=16_000)
    main(parser.parse_args().sequences)
