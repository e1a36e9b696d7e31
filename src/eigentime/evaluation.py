"""Accuracy against tokens per forward: any task of the LM Evaluation Harness, any set of samplers.

The area under that curve (AUP, accuracy under parallelism, of the d3LLM leaderboard) weighs accuracy that is lost:
with points (ρ_i, y_i) of one sampler, ρ rising, y in per cent and y_max the best of all samplers,

    AUP = ρ_1·y_1 + Σ_i (ρ_i - ρ_{i-1})·(y_i·W_i + y_{i-1}·W_{i-1})/2,   W_i = min(exp(-3·(1 - y_i/y_max)), 1),

and points more than five per cent below y_1, a sampler's accuracy where it is slowest, are left out.
"""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.experiment import Desk, Experiment
from eigentime.experiments.kept import KeptRows
from eigentime.experiments.trial import ADAPTIVE
from eigentime.harness import MaskedHarness, load_tokenizer
from eigentime.harness_lists import DOCUMENTS, list_task
from eigentime.harness_lists import TASKS as LISTS
from eigentime.models import Model
from eigentime.report.figures import save_figure
from eigentime.report.parallelism import parallelism_figure
from eigentime.report.progress import progress_bar
from eigentime.report.rows import Row
from eigentime.samplers import Candidate, label, make_sampler
from eigentime.schedules import UNMEASURED, check_steps

FEWSHOT_SEED = 1234
"""The harness's own."""
PENALTY, WORST = 3.0, 5.0
"""How accuracy that is lost is weighed, and how many points of it at most."""


@dataclass(frozen=True)
class NamedWay:
    """One way of sampling, as it was named: a schedule (`cosine`), a sampler along one (`counted@cosine`), an adaptive
    sampler (`threshold:0.8`), or a file of a schedule, a plan or a recommendation."""

    name: str

    @property
    def file(self) -> bool:
        """Whether it is a file's name."""
        return Path(self.name).suffix == ".json"

    @property
    def sampler(self) -> str:
        """The sampler's name, with its number."""
        return "ancestral" if self.name in UNMEASURED else self.name.partition("@")[0]

    @property
    def strategy(self) -> str:
        """The schedule's name."""
        return self.name if self.name in UNMEASURED else self.name.partition("@")[2] or "uniform"

    @property
    def curve(self) -> str:
        """The curve that it is a point of: settings of an adaptive sampler make one."""
        return self.name if self.file else self.name.partition(":")[0]

    def check(self) -> None:
        """Refuse what is not there."""
        if self.file:
            Candidate.load(self.name)
        elif make_sampler(self.sampler).scheduled and self.strategy not in UNMEASURED:
            raise EigentimeError(
                f"{self.name!r} is no way of sampling: schedules without a clock are {', '.join(UNMEASURED)}; measured "
                "ones come from a file."
            )

    def steps(self, counts: Sequence[int]) -> list[int]:
        """The numbers of steps to try; 0 where it knows its own."""
        return [0] if self.file or not make_sampler(self.sampler).scheduled else list(counts)

    def settings(self, steps: int) -> dict[str, Any]:
        """For the harness."""
        if self.file:
            return {"sampler": self.name}
        return {"sampler": self.sampler, "strategy": self.strategy, "steps": max(steps, 1)}


@dataclass(frozen=True, kw_only=True)
class Accuracy(Experiment):
    """Samplers on tasks of the harness, cell by cell; what was finished before an interruption is not made again."""

    model: str
    tasks: Sequence[str]
    samplers: Sequence[str] = ("uniform", "cosine")
    steps: Sequence[int] = (4, 8, 16, 32)
    limit: int | None = None
    """Questions of each task at most."""
    length: int | None = None
    block_length: int | None = None
    metric: str | None = None
    """Of the harness, where a task has several."""
    include_path: str | None = None
    """A folder with tasks of one's own, as the harness reads them."""
    batch_size: int = 8
    device: str | None = None
    trust_remote_code: bool = False

    @property
    def stem(self) -> str:
        return "evaluation"

    @property
    def ways(self) -> list[NamedWay]:
        """The samplers."""
        return [NamedWay(name) for name in self.samplers]

    def check(self) -> None:
        if not self.tasks or not self.samplers:
            raise EigentimeError("Name at least one task and one sampler.")
        for way in self.ways:
            way.check()
        for count in self.steps:
            check_steps(count)
        if self.limit is not None and self.limit < 1:
            raise EigentimeError(f"limit must be at least 1, not {self.limit}.")
        for name, task in self._tasks.items():
            if task.OUTPUT_TYPE != "generate_until":
                raise EigentimeError(f"{name} asks for likelihoods; tokens per forward need a task with answers.")
        self._judge({})

    def results(self, desk: Desk) -> dict[str, Any]:
        found = {}
        for name in self._tasks:
            rows = self._rows(name, desk)
            found[name] = {"rows": rows, "aup": areas(rows)}
        return {"model": self.model, "tasks": found}

    def draw(self, content: dict[str, Any], out: Path) -> None:
        save_figure(parallelism_figure(content["tasks"]), out / f"{self.stem}.png")

    @cached_property
    def _model(self) -> Model:
        return api.load(self.model, length=self.length, device=self.device, trust_remote_code=self.trust_remote_code)

    @cached_property
    def _tokenizer(self) -> Any:
        own = getattr(self._model.task, "tokenizer", None)
        return own or load_tokenizer(self.model, self.trust_remote_code)

    @cached_property
    def _tasks(self) -> dict[str, Any]:
        """By name: list operations of ours, and what the harness knows."""
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        known = {name: list_task(name, self.limit or DOCUMENTS, self.seed) for name in self.tasks if name in LISTS}
        others = [name for name in self.tasks if name not in LISTS]
        if not others:
            return known
        from lm_eval.tasks import TaskManager

        manager = TaskManager(include_path=self.include_path)
        unknown = [name for name in others if name not in manager.all_tasks]
        if unknown:
            raise EigentimeError(f"The harness knows no task {unknown[0]!r}, nor is it one of {', '.join(LISTS)}.")
        found: dict[str, Any] = known | manager.load(others)["tasks"]
        return found

    def _judge(self, settings: dict[str, Any]) -> MaskedHarness:
        return MaskedHarness(
            self._model,
            self._tokenizer,
            block_length=self.block_length,
            batch_size=self.batch_size,
            seed=self.seed,
            **settings,
        )

    def _rows(self, name: str, desk: Desk) -> list[Row]:
        made_of = {
            "model": self._model.fingerprint,
            "limit": self.limit,
            "block_length": self.block_length,
            "metric": self.metric,
            "include_path": self.include_path,
            "seed": self.seed,
        }
        kept = KeptRows(desk.keep(f"evaluation-{name}"), **made_of)
        cells = [(way, count) for way in self.ways for count in way.steps(self.steps)]
        rows = []
        with progress_bar(f"Evaluating {name}", desk.progress) as advance:
            for done, (way, count) in enumerate(cells):
                advance(done, len(cells), f"{way.name}, {count} steps" if count else way.name)
                key = _key(way, count, self.limit)
                if kept.row(*key) is None:
                    kept.add(self._row(self._tasks[name], way, count, key))
                row = kept.row(*key)
                assert row is not None
                rows.append(row)
        return rows

    def _row(self, task: Any, way: NamedWay, steps: int, key: tuple[str, str, int, int]) -> Row:
        from lm_eval.evaluator import evaluate

        judge, began = self._judge(way.settings(steps)), time.perf_counter()
        if task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=FEWSHOT_SEED)
        found = evaluate(judge, {task.config.task: task}, limit=self.limit, bootstrap_iters=1, log_samples=False)
        (result,) = found["results"].values()
        metric = chosen_metric(result, self.metric)
        samples = int(result.get("sample_len", 0))
        stderr = result.get(metric.replace(",", "_stderr,"), "N/A")
        return {
            "strategy": key[1],
            "steps": steps,
            "sampler": way.name,
            "samples": key[3],
            "nfe": judge.generating / max(samples, 1),
            "seconds": time.perf_counter() - began,
            "clipped": 0.0,
            "metrics": {
                "accuracy": {
                    "mean": float(result[metric]),
                    "stderr": float("nan") if stderr == "N/A" else float(stderr),
                },
                "tokens_per_forward": {"mean": judge.tokens_per_forward, "stderr": float("nan")},
            },
            "path_error": {"mean": float("nan"), "stderr": float("nan")},
            "schedule": {},
        }


def _key(way: NamedWay, steps: int, limit: int | None) -> tuple[str, str, int, int]:
    """As rows are told apart."""
    return way.name, ADAPTIVE if not steps else way.strategy, steps, limit or 0


def chosen_metric(result: dict[str, Any], wanted: str | None) -> str:
    """The key of a metric in the harness's results: the one asked for, or the first."""
    keys = [
        key for key, value in result.items() if "," in key and "_stderr" not in key and isinstance(value, int | float)
    ]
    matching = [key for key in keys if wanted in (None, key, key.partition(",")[0])]
    if not matching:
        raise EigentimeError(f"The task has no metric {wanted!r}; it has {', '.join(keys) or 'none'}.")
    return matching[0]


def areas(rows: Sequence[Row]) -> dict[str, float]:
    """AUP of every sampler."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        values = row["metrics"]
        point = values["tokens_per_forward"]["mean"], 100 * values["accuracy"]["mean"]
        curves.setdefault(NamedWay(row["sampler"]).curve, []).append(point)
    best = max(accuracy for points in curves.values() for _, accuracy in points)
    return {name: area(points, best) for name, points in curves.items()}


def area(points: Sequence[tuple[float, float]], best: float) -> float:
    """AUP of points (tokens per forward, accuracy in per cent), where `best` is the largest accuracy of all samplers;
    NaN where nothing was generated."""
    known = sorted(point for point in points if not math.isnan(point[0]))
    if not known or best <= 0:
        return 0.0 if known else float("nan")
    kept = [(rate, accuracy) for rate, accuracy in known if accuracy >= known[0][1] - WORST]
    weighted = [(rate, y * min(math.exp(-PENALTY * (1 - y / best)), 1.0)) for rate, y in kept]
    total = kept[0][0] * kept[0][1]
    for (before, low), (after, high) in pairwise(weighted):
        total += (after - before) * (low + high) / 2
    return total


def described(row: Row) -> str:
    """A way of sampling in words."""
    name = row["sampler"]
    plain = name if NamedWay(name).file or "@" in name or name in UNMEASURED else label(name)
    return f"{plain}, {row['steps']} steps" if row["steps"] else plain
