"""Why the paper's ordering of schedules appears on countdown or does not: network, sampler, JYS or judge?

python benchmarks/ordering.py [--longer FOLDER]    writes results/countdown/ordering.json; interrupt it, it goes on

Networks against the exact model (the best that training could reach), the ancestral sampler against Euler's, JYS with
few sequences against as many as its paper takes. FOLDER is a run of `eigentime train countdown-uniform` that went on
longer than the bundled network's.
"""

import argparse
from pathlib import Path
from typing import Any

from provenance import ROOT, save
from zoo import beside_exact

import eigentime as et
from eigentime.data.packages import cache_folder
from eigentime.experiments.kept_jys import kept_jys
from eigentime.models import Model, Trained
from eigentime.tasks import MODELS, RECIPES, ExactTask

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


def case(model: Model, sampler: str, many: bool) -> dict[str, Any]:
    """Rows of one model with one sampler; on the absorbing kernel JYS too, with few sequences and with many."""
    stem = f"ordering-{model.fingerprint}-{model.process.kernel.name}"
    path = cache_folder() / f"{stem}.safetensors"
    if not path.exists():
        et.measure(model, DRAWN(512, SEED), budget=BUDGET, tolerance=0.0, seed=SEED).save(path)
    clock = et.Clock.load(path)

    def rows(name: str, strategies: list[str], steps: list[int], **options: Any) -> list[Any]:
        keep = ROOT / "results" / "countdown" / f"{stem}-{sampler}-{name}.partial.json"
        settings: dict[str, Any] = {"samples": SAMPLES, "sampler": sampler, "clock": clock, "seed": SEED}
        return et.compare(
            model, strategies, steps, data=DRAWN(64, SEED), keep=keep, progress=True, **settings, **options
        )

    found = {"rows": rows("schedules", SCHEDULES, STEPS)}
    for count in (JYS_FEW, JYS_MANY) if many else ():
        beside = path.with_suffix(f".jys-{count}.json")
        jys = kept_jys(model, clock, DRAWN(count, SEED), None, JYS_STEPS, beside, True)
        found[f"jys, {count}"] = rows(f"jys-{count}", ["jys"], JYS_STEPS, jys=jys)
    return found


def main(longer: Path | None) -> None:
    """All cases, and what training longer brought."""
    content: dict[str, Any] = {"cases": []}

    def add(model: Model, sampler: str, name: str) -> None:
        kernel = model.process.kernel.name
        found = case(model, sampler, many=kernel == "absorbing")
        content["cases"].append({"model": name, "kernel": kernel, "sampler": sampler, **found})
        save("countdown/ordering.json", content, seed=SEED, samples=SAMPLES, budget=BUDGET)

    for name, kernel, sampler in CASES:
        add(et.load(name, kernel) if name == "countdown-exact" else et.load(name), sampler, name)
    if longer is not None:
        networks = {"bundled": et.load("countdown-uniform"), "longer": et.load(str(longer))}
        for model in networks.values():
            assert isinstance(model, Trained)
        task = RECIPES["countdown-uniform"][0]
        assert isinstance(task, ExactTask)
        above = {name: beside_exact(model, task)["nelbo_above_exact"] for name, model in networks.items()}
        content |= {"above_exact": above, "training": networks["longer"].about}
        add(networks["longer"], "euler", "countdown-uniform, trained longer")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--longer", type=Path, help="a run that went on longer than the bundled network's")
    main(parser.parse_args().longer)
