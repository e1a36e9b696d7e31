"""Plans against schedules: on exact models in one and two dimensions, and on the trained countdown network.

python benchmarks/plans.py [SUBJECT …]    writes results/plans/SUBJECT.json and .png

For every strategy and number of evaluations: the certificate, and what samples say independently of it. Surprise is
E_samples[-ln p(x)] - H under the exact law: how much unlikelier than data samples are.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from provenance import ROOT, save

import eigentime as et
from eigentime.experiments.text import rank_correlation
from eigentime.models import Oracle
from eigentime.report.figures import save_figure
from eigentime.report.plans import plans_figure
from eigentime.tasks import TASKS, trigram
from eigentime.tasks.countdown import run_lengths_distance
from eigentime.tasks.metrics import Estimate, distinct, over_sequences, surprise

SEED = 0
TIMED = ["uniform", "wds", "ods"]
ORDERS = ["low-discrepancy", "dilated", "farthest", "raster"]


@dataclass
class Subject:
    """A model to try, the exact law that judges its samples, and how much of it to run."""

    model: et.Model
    judge: Oracle
    orders: list[str]
    steps: list[int]
    samples: int
    budget: int
    metrics: Callable[[torch.Tensor], dict[str, Estimate]]
    shape: tuple[int, ...] | None = None


def main(names: list[str]) -> None:
    """Run every subject, save rows and figure."""
    (ROOT / "results" / "plans").mkdir(parents=True, exist_ok=True)
    for name in names:
        subject = SUBJECTS[name]()
        data = subject.judge.draw(256, SEED)
        clock = et.measure(
            subject.model,
            data,
            budget=subject.budget,
            orders=subject.orders,
            shape=subject.shape,
            seed=SEED,
            progress=True,
        )
        strategies = [*TIMED, *(f"plan-{order}" for order in clock.orders), "plan"]
        rows = et.compare(
            subject.model,
            strategies,
            subject.steps,
            samples=subject.samples,
            clock=clock,
            data=data,
            seed=SEED,
            metrics=lambda x, subject=subject: {"surprise": surprise(subject.judge, x), **subject.metrics(x)},
            keep=ROOT / "results" / "plans" / f"{name}.partial.json",
            progress=True,
        )
        content: dict[str, Any] = {
            "evaluations": clock.evaluations,
            "entropy": subject.judge.entropy,
            "rows": rows,
            "rank_correlation": {"all": rank_correlation(rows, "surprise")},
            "dependence": clock.dependence,
        }
        if "countdown" in name:
            content |= countdown_claims(subject, clock)
        save(f"plans/{name}.json", content, seed=SEED, samples=subject.samples, budget=subject.budget)
        save_figure(plans_figure(content, name), ROOT / "results" / "plans" / f"{name}.png")
        (ROOT / "results" / "plans" / f"{name}.partial.json").unlink()
        print(name, "rank correlation", content["rank_correlation"])


def countdown_claims(subject: Subject, clock: et.Clock) -> dict[str, Any]:
    """Plans of 4 and 8 evaluations with many sequences, uniform steps with 64, and the diversity of long sampling."""
    many = 2048 if subject.model.exact else 256
    claims = {}
    for label, grid, count in (
        ("plan 4", et.plan(clock, 4), many),
        ("plan 8", et.plan(clock, 8), many),
        ("uniform 64", et.schedule(clock, "uniform", steps=64), 128),
        ("uniform 256", et.schedule(clock, "uniform", steps=256), 128),
        ("plan 8, 128 sequences", et.plan(clock, 8), 128),
    ):
        found = subject.metrics(et.sample(subject.model, grid, count, seed=SEED + 1))
        claims[label] = {"samples": count, "metrics": {name: vars(value) for name, value in found.items()}}
    real = subject.metrics(subject.judge.draw(128, SEED + 2))
    claims["data"] = {"samples": 128, "metrics": {name: vars(value) for name, value in real.items()}}
    return {"claims": claims}


def _countdown(model: et.Model, samples: int, budget: int, steps: list[int]) -> Subject:
    task = TASKS["countdown"]
    exact = task.exact("absorbing")
    assert isinstance(exact, Oracle)

    def metrics(x: torch.Tensor) -> dict[str, Estimate]:
        return {**task.metrics(x), "run_lengths": run_lengths_distance(x)}

    return Subject(model, exact, ORDERS, steps, samples, budget, metrics)


def _text() -> Subject:
    chain = trigram.exact("absorbing", length=128)
    assert isinstance(chain, Oracle)
    return Subject(
        chain, chain, ORDERS, [2, 4, 8, 16, 32], 128, 512, lambda x: {"trigrams": trigram.trigram_distance(x)}
    )


def _ising() -> Subject:
    grid = et.Ising(8, 8, 0.35, et.Process(et.Absorbing(3), et.LogLinear()), name="ising-8x8")

    def metrics(x: torch.Tensor) -> dict[str, Estimate]:
        return {"magnetisation": over_sequences((2.0 * x.double() - 1).mean(1).abs())}

    return Subject(grid, grid, [*ORDERS, "halton", "sobol"], [2, 4, 8, 16, 32], 2048, 2048, metrics, (8, 8))


def _exchangeable() -> Subject:
    """Eight tokens that only share a hidden label: every one depends on every other alike, so places cannot matter."""
    rng = np.random.default_rng(SEED)
    laws = rng.dirichlet(np.full(3, 0.3), size=4)
    law = sum(reduce(np.multiply.outer, [row] * 8) for row in laws) / len(laws)
    table = et.Table(law, et.Process(et.Absorbing(4), et.LogLinear()), name="exchangeable")
    return Subject(table, table, ORDERS, [2, 4, 8], 4096, 2048, lambda x: {"distinct": distinct(x)})


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "countdown-exact": lambda: _countdown(et.load("countdown-exact"), 512, 2048, [2, 4, 8, 16, 32, 64]),
    "trigram-text": _text,
    "ising": _ising,
    "exchangeable": _exchangeable,
    "countdown": lambda: _countdown(et.load("countdown"), 128, 1024, [2, 4, 8, 16, 32, 64]),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", default=list(SUBJECTS))
    main(parser.parse_args().subjects)
