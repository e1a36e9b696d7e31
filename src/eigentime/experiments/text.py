"""Language: every schedule on networks of characters and on the trigram oracle, judged by 6-grams, words and variety.

The paper's fifth experiment at the scale of two cores. A 6-gram model judges every cell, a language model those of one
network if asked; perplexity rewards repetition, so entropy, variety and the share of real words stand beside it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Integer
from scipy.stats import spearmanr
from torch import Tensor

from eigentime import api
from eigentime.data.text import spelled
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare, planned_for
from eigentime.experiments.dynamics import four_curves
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.speedup import speedups
from eigentime.files import write_atomically
from eigentime.measure import Clock
from eigentime.measure.curves import default_times
from eigentime.models import Model, zoo
from eigentime.orders import order_from_spec
from eigentime.report.dynamics import modalities_figure
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.provenance import save_results
from eigentime.report.quality import quality_figure
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
BUDGET = 1024
JYS_SAMPLES = 32
"""Sequences that JYS looks at: with more its search would take longer than all the sampling."""
READ = 32
"""Sequences of a cell that the language model reads: it is slower than the network it judges."""
SHOWN = 3
"""Samples of every cell that are written down."""
TITLES = {
    "bits": "bits a character, 6-gram judge",
    "entropy": "entropy of a sequence's characters, nats",
    "real_words": "share of real words",
    "surprise": "nats unlikelier than data",
    "trigrams": "Hellinger distance of trigrams",
}


def reproduce(
    out: Path,
    model: str = "text",
    samples: int = 64,
    steps: Sequence[int] = STEPS,
    judge: str | None = None,
    budget: int = BUDGET,
    jys_samples: int = JYS_SAMPLES,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare all strategies on one model; write MODEL.json, its figures and MODEL-samples.txt to `out`.

    model  a bundled network of characters, or the oracle `trigram-exact`
    judge  a language model beside the 6-grams: `smollm2`, a folder or a hub id

    JYS schedules and finished cells are kept in `out`, so that an interrupted run goes on.
    """
    check_figures()
    check_request([model], steps)
    task, network = MODELS[model], api.load(model)
    out.mkdir(parents=True, exist_ok=True)
    read = language_judge(judge) if judge else None
    number = max(64, budget // 4)
    data, others = task.draw(number, seed), task.draw(2 * number, seed)[number:]
    masked = network.process.absorbing
    orders = ORDERS if masked else []
    clock = api.measure(network, data, budget=budget, tolerance=0.0, orders=orders, seed=seed, progress=progress)
    jys = kept_jys(network, clock, data[:jys_samples], None, steps, out / f"{model}-jys.json", progress)
    strategies = [*STRATEGIES, "plan"] if masked else STRATEGIES
    keep = out / f"{model}.partial.json"
    rows = compare(
        network,
        strategies,
        steps,
        samples=samples,
        clock=clock,
        data=data,
        jys=jys,
        jys_samples=jys_samples,
        seed=seed,
        metrics=_judged_by(task, read),
        keep=keep,
        made_with={"judge": judge},
        progress=progress,
    )
    posteriors = masked and network.predicts != "score"  # a score network's schedules do not draw from normalised ones
    if posteriors:
        known = [order_from_spec(found.order) for name, found in clock.orders.items() if name != "random"]
        other = api.measure(network, others, budget=budget, tolerance=0.0, orders=known, seed=seed + 1)
        rows = [row | {"nll_bound": vars(nll_bound(other, _used(network, row)))} for row in rows]
    speedup = {name: speedups(rows, name, seed) for name in (task.fidelity, task.diversity)}
    if posteriors:
        # all bounds are from the same sequences: what they differ by is known better than what they are
        likelihoods = [
            row | {"metrics": {"nll_bound": row["nll_bound"] | {"stderr": row["nll_bound"]["excess_stderr"]}}}
            for row in rows
        ]
        speedup["nll_bound"] = speedups(likelihoods, "nll_bound", seed)
    titles = {name: title for name, title in TITLES.items() if name in rows[0]["metrics"]}
    if read is not None:
        titles[f"bits_{read.name}"] = f"bits a character, {read.name}"
    real = {name: vars(value) for name, value in _judged_by(task, read)(task.draw(samples, seed + 2)).items()}
    content = {
        "model": model,
        "judge": judge,
        "samples": samples,
        "evaluations": clock.evaluations,
        "real": real,
        "rows": rows,
        "speedup": speedup,
        "rank_correlation": {name: rank_correlation(rows, name) for name in titles},
        "kernel": network.process.kernel.name,
        "curves": {name: vars(found) for name, found in four_curves(clock, default_times(128)).items()},
    }
    save_results(out / f"{model}.json", content, samples=samples, budget=budget, jys_samples=jys_samples, seed=seed)
    levels = {name: {"real text": real[name]["mean"]} for name in titles}
    save_figure(quality_figure({model: rows}, titles, levels), out / f"{model}.png")
    save_figure(modalities_figure({model: content}), out / f"{model}-dynamics.png")
    write_atomically(out / f"{model}-samples.txt", _side_by_side(network, clock, jys, strategies, steps, seed))
    keep.unlink(missing_ok=True)
    return content


def check_request(models: Sequence[str], steps: Sequence[int]) -> None:
    """Refuse, before any work, what cannot be done."""
    for count in steps:
        check_steps(count)
        if count & (count - 1):
            raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
    for model in models:
        if model not in MODELS_SHOWN:
            raise EigentimeError(f"{model!r} is not a bundled model of text; they are {', '.join(MODELS_SHOWN)}.")


def _judged_by(task: Task, read: LanguageJudge | None) -> Callable[[Integer[Tensor, "n length"]], dict[str, Estimate]]:
    """The task's metrics and, with a language model, bits a character under it."""

    def metrics(x: Integer[Tensor, "n length"]) -> dict[str, Estimate]:
        found = task.metrics(x)
        if read is not None:
            found[f"bits_{read.name}"] = over_sequences(read.bits([spelled(row.numpy()) for row in x[:READ]]))
        return found

    return metrics


def _used(model: Model, row: dict[str, Any]) -> Schedule | Plan:
    """The schedule or plan of a row, as it was."""
    made = row["schedule"]
    if "counts" in made:
        return Plan.from_dict(made)
    return Schedule.from_times(made["times"], model.process, row["strategy"])


def rank_correlation(rows: list[dict[str, Any]], metric: str) -> float:
    """Spearman's, certified path error against what samples say, over all cells: do the rankings agree?"""
    predicted = [row["path_error"]["mean"] for row in rows]
    return float(spearmanr(predicted, [row["metrics"][metric]["mean"] for row in rows]).statistic)


def _side_by_side(
    model: Model, clock: Clock, jys: dict[int, Schedule], strategies: Sequence[str], steps: Sequence[int], seed: int
) -> str:
    """The first samples of a few, some and many steps, by strategy: the same seed draws them again."""
    shown = []
    for count in sorted({steps[0], steps[len(steps) // 2], steps[-1]}):
        for strategy in strategies:
            if (strategy == "jys" and count not in jys) or (strategy == "plan" and count > clock.free):
                continue
            planned = jys[count] if strategy == "jys" else planned_for(clock, strategy, count, "ancestral", "entropy")
            tokens = api.sample(model, planned, SHOWN, seed=seed)
            texts = "\n".join(f"  {spelled(row.numpy())}" for row in tokens)
            shown.append(f"{strategy}, {count} evaluations\n{texts}\n")
    return "\n".join(shown)
