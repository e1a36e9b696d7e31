"""Language: every schedule on networks of characters and on the trigram oracle, judged by 6-grams, words and variety.

The paper's fifth experiment at the scale of two cores. A 6-gram model judges every cell, a language model those of one
network if asked; perplexity rewards repetition, so entropy, variety and the share of real words stand beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Integer
from scipy.stats import spearmanr
from torch import Tensor

from eigentime import api
from eigentime.data.text import spelled
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.speedup import speedups
from eigentime.experiments.trial import Cell, Judge, Trial
from eigentime.files import write_atomically
from eigentime.measure import Clock
from eigentime.models import Model, zoo
from eigentime.orders import order_from_spec
from eigentime.report.dynamics import modalities_figure
from eigentime.report.figures import save_figure
from eigentime.report.quality import quality_figure
from eigentime.report.rows import Row
from eigentime.schedules import Plan, Schedule, check_steps, nll_bound
from eigentime.tasks import EXACT, MODELS, Estimate, Task
from eigentime.tasks.language_judges import LanguageJudge, language_judge
from eigentime.tasks.metrics import over_sequences

MODELS_SHOWN = tuple(
    name for name, task in MODELS.items() if task.name in ("text", "trigram") and name in (*zoo(), *EXACT)
)
STRATEGIES = ["uniform", "cosine", "jys", "eds", "eds-data", "wds", "wds-data", "ods"]
STEPS = [2, 4, 8, 16, 32, 64]
ORDERS = ["low-discrepancy", "dilated", "farthest"]
JYS_SAMPLES = 32
"""Sequences that JYS looks at: with more its search would take longer than all the sampling."""
READ = 32
"""Sequences of a cell that the language model reads: it is slower than the network it judges."""
SHOWN = 3
"""Samples of every cell that are written down."""
TITLES = {
    "bits": "bits per character, 6-gram judge",
    "entropy": "entropy of a sequence's characters, nats",
    "real_words": "share of real words",
    "surprise": "nats unlikelier than data",
    "trigrams": "Hellinger distance of trigrams",
}


@dataclass(frozen=True, kw_only=True)
class Text(Experiment):
    """All strategies on one model: a bundled network of characters, or the oracle `trigram-exact`."""

    model: str = "text"
    samples: int = 64
    steps: Sequence[int] = tuple(STEPS)
    judge: str | None = None
    """A language model beside the 6-grams: `smollm2`, a folder or a hub id."""
    budget: int = 1024
    jys_samples: int = JYS_SAMPLES

    @property
    def stem(self) -> str:
        return self.model

    def check(self) -> None:
        if self.samples < 4:
            raise EigentimeError(f"samples must be at least 4, not {self.samples}.")
        for count in self.steps:
            check_steps(count)
            if count & (count - 1):
                raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
        if self.model not in MODELS_SHOWN:
            raise EigentimeError(f"{self.model!r} is not a bundled model of text; they are {', '.join(MODELS_SHOWN)}.")

    def results(self, desk: Desk) -> dict[str, Any]:
        task, network = MODELS[self.model], api.load(self.model)
        read = language_judge(self.judge) if self.judge else None
        judge, masked, number = _judged_by(task, read), network.process.absorbing, max(64, self.budget // 4)
        data, others = task.draw(number, self.seed), task.draw(2 * number, self.seed)[number:]
        clock = api.measure(
            network,
            data,
            budget=self.budget,
            tolerance=0.0,
            orders=ORDERS if masked else [],
            seed=self.seed,
            progress=desk.progress,
        )
        kept = desk.out / f"{self.model}-jys.json"
        jys = kept_jys(network, clock, data[: self.jys_samples], None, self.steps, kept, desk.progress)
        strategies = [*STRATEGIES, "plan"] if masked else STRATEGIES
        rows = compare(
            network,
            strategies,
            self.steps,
            samples=self.samples,
            clock=clock,
            data=data,
            jys=jys,
            jys_samples=self.jys_samples,
            seed=self.seed,
            metrics=judge,
            keep=desk.keep(self.model),
            made_with={"judge": self.judge},
            progress=desk.progress,
        )
        speedup = {name: speedups(rows, name, self.seed) for name in (task.fidelity, task.diversity)}
        bounds = self._bounds(network, clock, others, rows)
        if bounds:
            rows = [row | {"nll_bound": bound} for row, bound in zip(rows, bounds, strict=True)]  # type: ignore[misc]
            # all bounds are from the same sequences: what they differ by is known better than what they are
            likelihoods = [
                row | {"metrics": {"nll_bound": {"mean": bound["mean"], "stderr": bound["excess_stderr"]}}}
                for row, bound in zip(rows, bounds, strict=True)
            ]
            speedup["nll_bound"] = speedups(likelihoods, "nll_bound", self.seed)
        trial = Trial(network, clock, judge, self.seed, jys=jys)
        write_atomically(desk.out / f"{self.model}-samples.txt", self._side_by_side(trial, strategies))
        return {
            "model": self.model,
            "judge": self.judge,
            "samples": self.samples,
            "evaluations": clock.evaluations,
            "real": described(judge(task.draw(self.samples, self.seed + 2))),
            "rows": rows,
            "speedup": speedup,
            "rank_correlation": {name: rank_correlation(rows, name) for name in _titles(rows)},
            "kernel": network.process.kernel.name,
            "curves": described(four_curves(clock)),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        titles = _titles(content["rows"])
        levels = {name: {"real text": content["real"][name]["mean"]} for name in titles}
        save_figure(quality_figure({self.model: content["rows"]}, titles, levels), out / f"{self.model}.png")
        save_figure(modalities_figure({self.model: content}), out / f"{self.model}-dynamics.png")

    def _bounds(self, model: Model, clock: Clock, data: Tensor, rows: Sequence[Row]) -> list[dict[str, float]]:
        """Likelihood bounds of all rows, on data that chose none of them."""
        if not model.process.absorbing or model.predicts == "score":
            return []  # a score network's schedules do not draw from normalised posteriors
        known = [order_from_spec(found.order) for name, found in clock.orders.items() if name != "random"]
        other = api.measure(model, data, budget=self.budget, tolerance=0.0, orders=known, seed=self.seed + 1)
        return [nll_bound(other, _used(model, row)).numbers() for row in rows]

    def _side_by_side(self, trial: Trial, strategies: Sequence[str]) -> str:
        """The first samples of a few, some and many steps, by strategy."""
        shown = []
        for count in sorted({self.steps[0], self.steps[len(self.steps) // 2], self.steps[-1]}):
            for strategy in strategies:
                if (strategy == "jys" and count not in trial.jys) or (strategy == "plan" and count > trial.clock.free):
                    continue
                tokens = trial.sample(Cell(strategy, count, SHOWN), SHOWN)
                texts = "\n".join(f"  {spelled(row.numpy())}" for row in tokens)
                shown.append(f"{strategy}, {count} evaluations\n{texts}\n")
        return "\n".join(shown)


def _titles(rows: Sequence[Row]) -> dict[str, str]:
    """Metrics that are drawn, those of a language model too."""
    found = rows[0]["metrics"]
    read = {name: f"bits per character, {name.removeprefix('bits_')}" for name in found if name.startswith("bits_")}
    return {name: title for name, title in TITLES.items() if name in found} | read


def _judged_by(task: Task, read: LanguageJudge | None) -> Judge:
    """The task's metrics and, with a language model, bits per character under it."""

    def metrics(x: Integer[Tensor, "n length"]) -> dict[str, Estimate]:
        found = task.metrics(x)
        if read is not None:
            found[f"bits_{read.name}"] = over_sequences(read.bits([spelled(row.numpy()) for row in x[:READ]]))
        return found

    return metrics


def _used(model: Model, row: Row) -> Schedule | Plan:
    """The schedule or plan of a row, as it was."""
    made = row["schedule"]
    if "counts" in made:
        return Plan.from_dict(made)
    return Schedule.from_times(made["times"], model.process, row["strategy"])


def rank_correlation(rows: Sequence[Row], metric: str) -> float:
    """Spearman's, certified path error against what samples say, over all cells: do the rankings agree?"""
    predicted = [row["path_error"]["mean"] for row in rows]
    return float(spearmanr(predicted, [row["metrics"][metric]["mean"] for row in rows]).statistic)
