"""Short runs of the network of stories: which batch and learning rate learn most from the same number of sequences.

python benchmarks/stories_tuning.py [--sequences 16000]    writes results/stories/tuning.json; ten minutes per run on
                                                           one core, finished runs are not made again
"""

import argparse
from dataclasses import replace

from provenance import ROOT, load, save

from eigentime.data import cache_folder
from eigentime.tasks import RECIPES
from eigentime.training import train

CHOICES = [(16, 1e-3), (16, 2e-3), (16, 5e-4), (32, 2e-3), (8, 1e-3)]
"""Sequences per step and learning rate."""
WARMUP_SEQUENCES = 3200


def main(sequences: int) -> None:
    """Train each choice on the training part, judge it on the validation part."""
    task, recipe = RECIPES["stories"]
    data, held_out = task.training_data(recipe.seed)
    path = ROOT / "results" / "stories" / "tuning.json"
    runs = load("stories/tuning.json")["runs"] if path.exists() else []
    for batch, rate in CHOICES:
        if any((run["batch"], run["learning_rate"], run["sequences"]) == (batch, rate, sequences) for run in runs):
            continue
        short = replace(
            recipe,
            steps=sequences // batch,
            batch=batch,
            learning_rate=rate,
            warmup=WARMUP_SEQUENCES // batch,
            ema=1 - batch / 3200,
        )
        folder = cache_folder() / "stories" / "tuning" / f"{batch}-{rate:g}-{sequences}"
        final = train(short, data, held_out, folder).about
        nelbo, stderr = (final["log"][key] / recipe.length for key in ("nelbo", "stderr"))
        runs.append(
            {
                "batch": batch,
                "learning_rate": rate,
                "sequences": sequences,
                "nelbo_per_token": {"mean": nelbo, "stderr": stderr},
                "seconds": final["seconds"],
            }
        )
        print(f"batch {batch}, learning rate {rate:g}: {nelbo:.3f} ± {stderr:.3f} nats per token")
        save("stories/tuning.json", {"runs": runs}, seed=recipe.seed, held_out=len(held_out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=16_000)
    main(parser.parse_args().sequences)
