"""All strategies on the exact countdown model with the uniform kernel (masked: `eigentime reproduce countdown`).

python benchmarks/countdown_uniform.py    writes results/countdown-exact/uniform.json and .png
"""

import argparse

from provenance import ROOT, save

import eigentime as et
from eigentime.report.figures import comparison_figure, save_figure

STRATEGIES = ["uniform", "cosine", "jys", "eds", "wds", "sqrt-slope", "ods"]
BUDGET, SEED = 4096, 0


def main(steps: list[int], samples: int) -> None:
    """Measure, compare, save rows and figure."""
    model = et.load("countdown-exact", "uniform")
    clock = et.measure(model, model.draw(1024, SEED), budget=BUDGET, tolerance=0.005, seed=SEED, progress=True)
    rows = et.compare(
        model, STRATEGIES, steps, samples=samples, clock=clock, data=model.draw(64, SEED), seed=SEED, progress=True
    )
    settings = {"seed": SEED, "samples": samples, "budget": BUDGET, "jys_samples": 64}
    save("countdown-exact/uniform.json", {"evaluations": clock.evaluations, "rows": rows}, **settings)
    figure = comparison_figure([row for row in rows if row["strategy"] != "sqrt-slope"], clock, "unigrams", 16)
    save_figure(figure, ROOT / "results" / "countdown-exact" / "uniform.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64])
    arguments = parser.parse_args()
    main(arguments.steps, arguments.samples)
