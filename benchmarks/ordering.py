"""Why the paper's ordering of schedules appears on countdown or does not: network, sampler, JYS or judge?

python benchmarks/ordering.py    writes results/countdown/ordering.json; interrupt it, it goes on

Networks against the exact model (the best that training could reach), the ancestral sampler against Euler's, JYS
with few sequences against as many as its paper takes.
"""

import argparse
from typing import Any

from provenance import ROOT, save

import eigentime as et
from eigentime.data.packages import cache_folder
from eigentime.experiments.kept_jys import kept_jys
from eigentime.models import Model
from eigentime.tasks import MODELS

CASES = (
    ("countdown-exact", "absorbing", "euler"),
    ("countdown-sedd", "absorbing", "euler"),
    ("countdown-exact", "uniform", "euler"),
    ("countdown-uniform", "uniform", "euler"),
    ("countdown-uniform", "uniform", "ancestral"),
)
"""Model, kernel and sampler. The exact model with the ancestral sampler has pages of its own."""
SCHEDULES, STEPS, SAMPLES = ["uniform", "eds", "wds", "ods"], [2, 4, 8, 16, 32], 128
JYS_STEPS, JYS_FEW, JYS_MANY = [2, 4, 8], 64, 1024
"""JYS optimises countdown with 1,024 sequences; here 64 are usual."""
BUDGET, SEED = 1024, 0
DRAWN = MODELS["countdown"].draw


def settled(model: Model) -> tuple[et.Clock, str]:
    """The model's clock, measured once, and the name of what is kept of it."""
    stem = f"ordering-{model.fingerprint}-{model.process.kernel.name}"
    path = cache_folder() / f"{stem}.safetensors"
    if not path.exists():
        et.measure(model, DRAWN(512, SEED), budget=BUDGET, tolerance=0.0, seed=SEED).save(path)
    return et.Clock.load(path), stem


def rows(model: Model, sampler: str, strategies: list[str], steps: list[int], name: str, **options: Any) -> list[Any]:
    """Every strategy at every number of evaluations."""
    clock, stem = settled(model)
    keep = ROOT / "results" / "countdown" / f"{stem}-{sampler}-{name}.partial.json"
    settings: dict[str, Any] = {"samples": SAMPLES, "sampler": sampler, "clock": clock, "seed": SEED}
    return et.compare(model, strategies, steps, data=DRAWN(64, SEED), keep=keep, progress=True, **settings, **options)


def by_jys(model: Model, sampler: str, sequences: int) -> list[Any]:
    """JYS that looked at so many sequences."""
    clock, stem = settled(model)
    beside = cache_folder() / f"{stem}.jys-{sequences}.json"
    jys = kept_jys(model, clock, DRAWN(sequences, SEED), None, JYS_STEPS, beside, True)
    return rows(model, sampler, ["jys"], JYS_STEPS, f"jys-{sequences}", jys=jys)


def main() -> None:
    """All cases, and JYS last: it takes longest."""
    content: dict[str, Any] = {"cases": []}
    models = [(et.load(name, kernel) if "exact" in name else et.load(name), sampler) for name, kernel, sampler in CASES]

    def keep() -> None:
        save("countdown/ordering.json", content, seed=SEED, samples=SAMPLES, budget=BUDGET)

    for model, sampler in models:
        found = rows(model, sampler, SCHEDULES, STEPS, "schedules")
        kernel = model.process.kernel.name
        content["cases"].append({"model": model.name, "kernel": kernel, "sampler": sampler, "rows": found})
        keep()
    for sequences in (JYS_FEW, JYS_MANY):
        for (model, sampler), case in zip(models, content["cases"], strict=True):
            if model.process.absorbing:
                case[f"jys, {sequences}"] = by_jys(model, sampler, sequences)
                keep()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
