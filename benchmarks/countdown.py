"""Every strategy on the exact countdown model, both kernels: the README's first table and picture.

python benchmarks/countdown.py            writes results/countdown-exact/*.json and *.png
"""

import argparse

from provenance import ROOT, save

import eigentime as et
from eigentime.report.figures import comparison_figure, save_figure

STRATEGIES = ["uniform", "cosine", "jys", "eds", "wds", "eds-data", "wds-data", "sqrt-slope", "ods"]
REVERSIBLE = ["uniform", "cosine", "jys", "eds", "wds", "sqrt-slope", "ods"]  # the two gauges coincide
BUDGET, SEED = 4096, 0


def main(kernels: list[str], steps: list[int], samples: int) -> None:
    """Measure, compare, save rows and figure for each kernel."""
    for kernel in kernels:
        strategies = STRATEGIES if kernel == "absorbing" else REVERSIBLE
        model = et.load("countdown-exact", kernel)
        clock = et.measure(model, model.draw(1024, SEED), budget=BUDGET, tolerance=0.005, seed=SEED, progress=True)
        rows = et.compare(
            model, strategies, steps, samples=samples, clock=clock, data=model.draw(64, SEED), seed=SEED, progress=True
        )
        save(
            f"countdown-exact/{kernel}.json",
            {"evaluations": clock.evaluations, "rows": rows},
            seed=SEED,
            samples=samples,
            budget=BUDGET,
            jys_samples=64,
        )
        drawn = [row for row in rows if row["strategy"] not in ("eds-data", "sqrt-slope")]
        figure = comparison_figure(drawn, clock, "violation" if kernel == "absorbing" else "unigrams", 16)
        save_figure(figure, ROOT / "results" / "countdown-exact" / f"{kernel}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=["absorbing", "uniform"])
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64])
    arguments = parser.parse_args()
    main(arguments.kernels, arguments.steps, arguments.samples)
