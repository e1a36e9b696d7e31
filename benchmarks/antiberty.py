"""A masked model nobody here trained: AntiBERTy, antibodies, from its package, through the path for any masked LM.

python benchmarks/antiberty.py [--samples 12]    writes results/antiberty.json

There is no data of ours: the clock is measured on the model's own samples, drawn in many steps. Samples of few steps
are compared with samples drawn one residue at a time, by the frequencies of neighbouring pairs.
"""

import argparse
import zipfile
from pathlib import Path

import torch
from provenance import save

import eigentime as et
from eigentime.data.packages import Package, cache_folder, fetch
from eigentime.files import write_atomically
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole, over_sequences, sequence_entropy

ANTIBERTY = Package(
    "antiberty",
    "0.1.3",
    "antiberty-0.1.3-py3-none-any.whl",
    "30d910992b190013871bac49cdc032e01a19339f7d2b958ab99b0eb44638352a",
    "AntiBERTy's weights",
)
MEMBERS = {
    "config.json": "AntiBERTy_md_smooth/config.json",
    "pytorch_model.bin": "AntiBERTy_md_smooth/pytorch_model.bin",
    "vocab.txt": "vocab.txt",
}
LENGTH = 122
"""A heavy chain of 120 residues between [CLS] and [SEP]."""
STRATEGIES, STEPS, BUDGET, SEED = ["uniform", "eds", "wds", "ods", "plan"], [4, 8, 16], 256, 0
ORDERS = ["low-discrepancy"]


def folder() -> Path:
    """The package's files in the hub's layout."""
    place = cache_folder() / "antiberty"
    place.mkdir(exist_ok=True)
    for name, member in MEMBERS.items():
        if not (place / name).exists():
            with zipfile.ZipFile(fetch(ANTIBERTY)) as archive:
                write_atomically(place / name, archive.read(f"antiberty/trained_models/{member}"))
    return place


def main(samples: int) -> None:
    """Measure on own samples, compare schedules, show a few antibodies."""
    place = folder()
    model = et.load(str(place), length=LENGTH)
    model.name = "antiberty"  # not the folder of this machine
    words = (place / "vocab.txt").read_text().split()
    size = len(words)
    given = torch.zeros(LENGTH, dtype=torch.long)
    given[0], given[-1] = words.index("[CLS]"), words.index("[SEP]")
    fixed = torch.zeros(LENGTH, dtype=torch.bool)
    fixed[[0, -1]] = True
    clock = et.measure(
        model, "self", given=given, fixed=fixed, samples=samples, budget=BUDGET, orders=ORDERS, seed=SEED, progress=True
    )
    reference = et.sample(model, None, samples, sampler="first-hitting", given=given, fixed=fixed, seed=SEED + 1)

    def pairs(x: torch.Tensor) -> torch.Tensor:
        return histogram(x[:, 1:-2] * size + x[:, 2:-1], size**2)

    truth = pairs(reference)

    def judged(x: torch.Tensor) -> dict[str, Estimate]:
        return {
            "pairs": of_the_whole(x, lambda part: hellinger(pairs(part), truth)),
            "entropy": over_sequences(sequence_entropy(x[:, 1:-1])),
        }

    rows = et.compare(
        model, STRATEGIES, STEPS, samples=samples, clock=clock, data=reference, given=given, fixed=fixed, seed=SEED,
        metrics=judged, progress=True,
    )  # fmt: skip
    other = et.sample(model, None, samples, sampler="first-hitting", given=given, fixed=fixed, seed=SEED + 2)

    def spelled(x: torch.Tensor) -> list[str]:
        return ["".join(words[token] for token in row[1:-1]) for row in x[:3].tolist()]

    content = {
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "evaluations": clock.evaluations,
        "rows": rows,
        "one_by_one": {name: vars(value) for name, value in judged(other).items()},
        "samples": {
            "one by one": spelled(reference),
            "plan, 8": spelled(et.sample(model, et.plan(clock, 8), 3, given=given, fixed=fixed, seed=SEED)),
        },
    }
    save("antiberty.json", content, samples=samples, budget=BUDGET, seed=SEED)
    for row in rows:
        value, error = row["metrics"]["pairs"], row["path_error"]
        print(
            row["strategy"],
            row["steps"],
            f"pairs {value['mean']:.3f} ± {value['stderr']:.3f}, {error['mean']:.1f} nats",
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=12)
    main(parser.parse_args().samples)
