"""How good is a schedule from 256 sequence evaluations? Eight seeds against a long reference.

python benchmarks/budget.py               writes results/budget.json
"""

import argparse

import numpy as np
from provenance import save

import eigentime as et

STEPS = [4, 8, 16, 32]


def main(budget: int, seeds: int) -> None:
    """For every seed: path error of its ODS under the reference, and whether its certificate covers that."""
    results = {}
    for kernel, long in (("absorbing", 25_600), ("uniform", 6_144)):
        model = et.load("countdown-exact", kernel)
        reference = et.measure(model, model.draw(4096, 1234), budget=long, tolerance=0.0, seed=1234, progress=True)
        truth = reference.costs()
        best = {steps: truth.path(et.schedule(reference, "ods", steps=steps).alphas) for steps in STEPS}
        rows = []
        for seed in range(seeds):
            clock = et.measure(model, model.draw(budget, 100 + seed), budget=budget, tolerance=0.0, seed=seed)
            for steps in STEPS:
                grid = et.schedule(clock, "ods", steps=steps)
                certificate, achieved = et.path_error(clock, grid), truth.path(grid.alphas)
                rows.append(
                    {
                        "seed": seed,
                        "steps": steps,
                        "evaluations": clock.evaluations,
                        "achieved": achieved,
                        "above_optimum": achieved / best[steps] - 1,
                        "certificate": {"mean": certificate.mean, "stderr": certificate.stderr},
                        "z": (certificate.mean - achieved) / certificate.stderr,
                    }
                )
        summary = {}
        for steps in STEPS:
            mine = [row for row in rows if row["steps"] == steps]
            loss = np.array([row["above_optimum"] for row in mine])
            summary[steps] = {
                "optimum": best[steps],
                "above_optimum": {"mean": loss.mean(), "stderr": loss.std(ddof=1) / np.sqrt(len(loss))},
                "within_two_stderr": float(np.mean([abs(row["z"]) < 2 for row in mine])),
            }
        results[kernel] = {
            "reference_evaluations": reference.evaluations,
            "evaluations": rows[0]["evaluations"],
            "fewer_than_paper": 1024 * 1024 / rows[0]["evaluations"],
            "summary": summary,
            "rows": rows,
        }
        for steps, line in summary.items():
            loss = line["above_optimum"]
            print(
                kernel, steps, f"{loss['mean']:.2%} ± {loss['stderr']:.2%} above the optimum", line["within_two_stderr"]
            )
    save("budget.json", results, budget=budget, seeds=seeds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.budget, arguments.seeds)
