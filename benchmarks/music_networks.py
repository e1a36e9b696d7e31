"""Which network for music? tauLDR's piano transformer and a DDiT of about the same size, after equally many steps.

python benchmarks/music_networks.py [--steps 600]     writes results/music-networks.json
"""

import argparse
import dataclasses
import tempfile

from provenance import save

from eigentime.models.piano import PianoConfig
from eigentime.report.progress import progress_bar
from eigentime.tasks.music import TASK, UNIFORM
from eigentime.training import train

PIANO = PianoConfig(
    size=129, length=256, width=128, layers=4, heads=8, feed_forward=512, time_width=64, head="posterior"
)
"""tauLDR's, with a quarter of the feed-forward width and four of its six layers."""


def main(steps: int) -> None:
    """Train both with the same data, noise and learning-rate schedule."""
    data, held_out = TASK.training_data(UNIFORM.seed)
    results = {}
    for name, network, rate in (("DDiT", UNIFORM.network, UNIFORM.learning_rate), ("piano", PIANO, 1e-3)):
        recipe = dataclasses.replace(UNIFORM, name=name, network=network, steps=steps, learning_rate=rate)
        with tempfile.TemporaryDirectory() as folder, progress_bar(f"Training {name}") as advance:
            trained = train(
                recipe, data, held_out, folder, advance=lambda step, total, latest, go=advance: go(step, total)
            )
        parameters = sum(parameter.numel() for parameter in trained.network.parameters())
        results[name] = {"parameters": parameters, "seconds": trained.about["seconds"], **trained.about["log"]}
        print(name, results[name])
    save("music-networks.json", {"networks": results}, steps=steps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    main(parser.parse_args().steps)
