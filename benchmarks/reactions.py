"""A published masked model of chemical reactions, half of the tokens given: schedules, plans and rules that adapt.

python benchmarks/reactions.py [--reactions 96]   writes results/reactions.json; interrupt it, the same command goes on

The network (rxnmapper's ALBERT) was trained to map atoms, with 15 % of the tokens masked. With all masked it is of no
use, so a random half of every reaction is given. Held-out reactions are taught each sampler's own steps (nats, paired
by reaction), and samples are judged by RDKit (does a side parse?) and by whether they are the reaction itself.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from provenance import ROOT, save
from reaction_data import FREE, LENGTH, encoded, folder, half_given, judged, reactions
from torch import Tensor

import eigentime as et
from eigentime.data.packages import cache_folder
from eigentime.experiments.calibrated import Rule, evaluations_of, setting_for
from eigentime.experiments.kept import remembered
from eigentime.experiments.trial import ADAPTIVE, Cell, Trial, fingerprint
from eigentime.models import Model
from eigentime.report.rows import Row
from eigentime.samplers import Apart, Condition, OrderBounded, Threshold
from eigentime.samplers.teacher import nelbo, teach
from eigentime.schedules import Plan
from eigentime.tasks.metrics import over_sequences

STRATEGIES = ("uniform", "plan-low-discrepancy", "plan-pairs", "ods", "plan-random", "eds", "wds")
LOOKING = ("entropy",)
"""They reveal as many tokens as uniform steps would, the surest first."""
STEPS = (4, 8, 2, 16)
"""In the order in which they are made; results are saved after each cell."""
FEWER_FROM = 16
"""From this many evaluations on half the reactions are enough."""
ORDERS, BUDGET, SEED = ("low-discrepancy", "pairs"), 128, 0
MEASURED, CALIBRATING = 64, 8
"""Reactions that the clock is measured on, and of these those on which rules are set; others are taught and sampled."""
TAUGHT = 4
"""So many times as many reactions are taught as are sampled: nats tell more than what samples look like."""
DIGITS = 3


@dataclass
class Followed(Trial):
    """Also what reactions cost under the same steps, one number each."""

    def row(self, cell: Cell) -> Row:
        planned, taught = self.planned(cell), TAUGHT * cell.samples
        sampler = "ancestral" if isinstance(planned, Plan) else cell.sampler
        condition = Condition(fixed=self.fixed[:taught])
        walked = teach(self.model, self.given[:taught], planned, sampler, condition=condition, seed=self.seed)
        nats = [round(value, DIGITS) for value in (-walked.logs.sum(1)).tolist()]
        more = {"nats": nats, "exact": walked.exact, "taught_nfe": walked.spent.double().mean().item()}
        return {**super().row(cell), **more}  # type: ignore[typeddict-item]


def rules_of(clock: et.Clock) -> dict[str, Rule]:
    """Rules that find by themselves how many tokens to reveal, and between which settings they are tried."""
    return {
        "order-bounded": Rule(lambda bound: OrderBounded("low-discrepancy", bound), 20.0, 0.01),
        "apart": Rule(lambda bound: Apart(clock.pairs, bound), 0.3, 1e-6),
        "threshold": Rule(Threshold, 0.3, 0.999),
    }


def settings_of(
    model: Model, rules: dict[str, Rule], x: Int[Tensor, "n length"], fixed: Bool[Tensor, "n length"], beside: Path
) -> dict[str, list[float]]:
    """Evaluations that every rule takes at each of its settings, written down as they are found."""
    found: dict[str, list[float]] = {}
    for name, rule in rules.items():
        asked = f"{fingerprint(x)} {fingerprint(fixed)} {rule.settings()} {max(STEPS)}"
        count = partial(evaluations_of, model, rule, x, max(STEPS), fixed)
        path = beside.with_suffix(f".{name}.json")
        found[name] = remembered(path, asked, lambda count=count: {"found": count()})["found"]  # type: ignore[misc]
    return found


def cells_of(rules: dict[str, Rule], settings: dict[str, list[float]], steps: int, samples: int) -> Iterator[Cell]:
    """All ways of sampling with about so many evaluations."""
    yield from (Cell(strategy, steps, samples) for strategy in STRATEGIES)
    yield from (Cell("uniform", steps, samples, sampler) for sampler in LOOKING)
    for name, rule in rules.items():
        value = setting_for(rule, settings[name], steps)
        if value is not None:
            yield Cell(ADAPTIVE, 0, samples, rule.sampler(value))


def main(count: int) -> None:
    """Measure on some reactions, teach and sample others, judge."""
    place = folder()
    words = (place / "vocab.txt").read_text().split()
    model = et.load(str(place), length=LENGTH)
    model.name = "rxnmapper"  # not the folder of this machine
    known = encoded(reactions(), words, LENGTH)
    chosen = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(SEED))][: MEASURED + count]
    fixed = half_given(len(chosen), LENGTH, FREE, SEED)
    path = cache_folder() / f"rxnmapper-{model.fingerprint}-{BUDGET}-{SEED}.safetensors"
    if not path.exists():
        options: dict[str, Any] = {"budget": BUDGET, "tolerance": 0.0, "orders": ORDERS, "seed": SEED}
        et.measure(model, chosen[:MEASURED], fixed=fixed[:MEASURED], progress=True, **options).save(path)
    clock, x, held = et.Clock.load(path), chosen[MEASURED:], fixed[MEASURED:]
    rules = rules_of(clock)
    settings = settings_of(model, rules, chosen[:CALIBRATING], fixed[:CALIBRATING], path)
    judge = judged(x, held, words)
    trial = Followed(model, clock, judge, SEED, given=x, fixed=held)
    kept = ROOT / "results" / "reactions.partial.json"
    content: dict[str, Any] = {
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "reactions_of_this_length": len(known),
        "evaluations": clock.evaluations,
        "one_at_a_time": vars(over_sequences(nelbo(model, x, ~held, 8, seed=SEED))),
        "real": {name: vars(value) for name, value in judge(x).items()},
        "settings": settings,
        "rows": [],
    }
    made_with = {"reactions": count, "measured": MEASURED, "budget": BUDGET, "free": FREE, "length": LENGTH}
    for steps in STEPS:
        for cell in cells_of(rules, settings, steps, count // TAUGHT // (2 if steps >= FEWER_FROM else 1)):
            content["rows"] += trial.rows([cell], kept, progress=True)
            save("reactions.json", content, seed=SEED, **made_with)
    kept.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--reactions",
        type=int,
        default=96,
        help="how many are taught; a quarter of them is sampled; half of both with 16",
    )
    main(parser.parse_args().reactions)
