"""Stories: every schedule, plans and samplers that choose, where the true law of the text is known.

So samples need no language model as a judge: both divergences between data and samples are measured, in nats, and
certificates are compared with them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.experiments.calibrated import Rule, evaluations_of, setting_for
from eigentime.experiments.divergent import Divergent
from eigentime.experiments.experiment import Desk, Experiment, described
from eigentime.experiments.kept import remembered
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.kept_jys import made_of as fingerprint_of
from eigentime.experiments.trial import ADAPTIVE, Cell, fingerprint
from eigentime.files import write_atomically
from eigentime.measure import Clock
from eigentime.models import Model, zoo
from eigentime.report.figures import save_figure
from eigentime.report.progress import progress_bar
from eigentime.report.provenance import save_results
from eigentime.report.rows import Row
from eigentime.report.side_by_side import Told, as_html, as_markdown
from eigentime.report.stories import agreement, certificates_figure, divergences_figure
from eigentime.samplers import Apart, EntropyBounded, Klass, OrderBounded, Prefix, Threshold
from eigentime.samplers.teacher import nelbo
from eigentime.schedules import check_steps
from eigentime.tasks import MODELS, TASKS
from eigentime.tasks.metrics import over_sequences
from eigentime.tasks.stories import judged
from eigentime.tasks.story_law import LENGTH, stories

TASK = TASKS["stories"]
NETWORKS = tuple(name for name, task in MODELS.items() if task is TASK and name in zoo())
SCHEDULES = ("uniform", "cosine", "jys", "eds", "wds", "ods")
LOOKING = ("confidence", "margin", "entropy")
"""They reveal as many tokens as uniform steps would, the surest first."""
STEPS = (4, 8, 16, 32, 64, 2, 128)
"""In the order in which they are made: results are saved after each."""
FEWER_FROM = 64
"""From this many evaluations on half the samples are enough."""
JYS_STEPS, JYS_SAMPLES = 64, 16
ORDERS = ("low-discrepancy", "farthest", "pairs", "lattice-4", "lattice-8", "lattice-16")
CALIBRATING = 4
"""Sequences on which the evaluations of adaptive rules are counted."""
BEGUN, GIVEN = 3, 12
"""Stories that are told side by side, and how many tokens of each are given."""
SIDE_BY_SIDE = (4, 8, 16)
LOWEST = "lowest entropy first"
TOLD = (*((name, "ancestral") for name in SCHEDULES), ("uniform", "entropy"), ("plan", "ancestral"))


@dataclass(frozen=True, kw_only=True)
class StoryTelling(Experiment):
    """All ways of sampling one network of stories."""

    network: str = "stories"
    samples: int = 48
    """Per cell, and as many sequences of data; half of both from 64 evaluations on."""
    steps: Sequence[int] = STEPS
    budget: int = 512
    """Network evaluations for the clock, and again for every order."""
    jys_samples: int = JYS_SAMPLES

    @property
    def stem(self) -> str:
        return self.network

    def check(self) -> None:
        if self.network not in NETWORKS:
            raise EigentimeError(f"{self.network!r} is not a network of stories; they are {', '.join(NETWORKS)}.")
        if self.samples < 8:
            raise EigentimeError(f"samples must be at least 8, not {self.samples}.")
        for count in self.steps:
            if check_steps(count) > LENGTH or count & (count - 1):
                raise EigentimeError(f"Stories are told in 1, 2, 4, … {LENGTH} steps, not in {count}.")

    def results(self, desk: Desk) -> dict[str, Any]:
        model, number = api.load(self.network), max(64, self.budget // 4)
        data, held_out = TASK.draw(number + self.samples, self.seed).split([number, self.samples])
        keep, choosing = desk.keep(self.network), model.process.absorbing and model.predicts == "posterior"
        clock = self._clock(model, data, ORDERS if choosing else (), keep, desk)
        few = [count for count in self.steps if count <= JYS_STEPS]
        kept = desk.out / f"{self.network}-jys.json"
        trial = Divergent(
            model,
            clock,
            seed=self.seed,
            jys=kept_jys(model, clock, data[: self.jys_samples], None, few, kept, desk.progress),
            judge=judged,
            law=stories(),
            held_out=held_out,
        )
        rules = rules_of(clock) if choosing else {}
        settings = self._settings(model, rules, data[:CALIBRATING], keep, desk)
        self._tell(trial, choosing, desk)
        content: dict[str, Any] = {
            "network": self.network,
            "kernel": model.process.kernel.name,
            "entropy": stories().entropy,
            "evaluations": clock.evaluations,
            "real": described(judged(held_out, trial.log_p)),
            "one_at_a_time": self._one_at_a_time(trial),
            "settings": settings,
        }
        rows: list[Row] = []
        for count in self.steps:
            cells = [*self._cells(count, choosing)]
            found = {name: setting_for(rules[name], settings[name], count) for name in rules}
            told = {name: value for name, value in found.items() if value is not None}
            cells += [Cell(ADAPTIVE, 0, cells[0].samples, rules[name].sampler(value)) for name, value in told.items()]
            rows += trial.rows(cells, keep, desk.progress, held_out=fingerprint(held_out))
            content |= {"rows": rows, "agreement": agreement(rows)}
            save_results(desk.out / f"{self.stem}.json", content, **self.settings())
            self.draw(content, desk.out)
        return content

    def draw(self, content: dict[str, Any], out: Path) -> None:
        save_figure(divergences_figure(content), out / f"{self.network}.png")
        if content["agreement"]:
            save_figure(certificates_figure(content), out / f"{self.network}-certificates.png")

    def _cells(self, count: int, choosing: bool) -> Iterator[Cell]:
        """Schedules, and on a masked network of posteriors plans and samplers that choose."""
        samples = self.samples // 2 if count >= FEWER_FROM else self.samples
        for strategy in SCHEDULES:
            if strategy != "jys" or count <= JYS_STEPS:
                yield Cell(strategy, count, samples)
        if choosing:
            yield Cell("plan", count, samples)
            for sampler in ("counted", *LOOKING):
                yield Cell("uniform", count, samples, sampler)

    def _clock(self, model: Model, data: Tensor, orders: Sequence[str], keep: Path, desk: Desk) -> Clock:
        """Measured once: an interrupted run goes on with the very same."""
        path = keep.with_suffix(f".{model.fingerprint}-{self.budget}-{self.seed}.safetensors")
        if not path.exists():
            options: dict[str, Any] = {"budget": self.budget, "tolerance": 0.0, "seed": self.seed}
            api.measure(model, data, orders=orders, progress=desk.progress, **options).save(path)
        return Clock.load(path)

    def _settings(
        self, model: Model, rules: dict[str, Rule], data: Int[Tensor, "n length"], keep: Path, desk: Desk
    ) -> dict[str, list[float]]:
        """Evaluations that adaptive rules take at each of their settings."""
        found: dict[str, list[float]] = {}
        with progress_bar("Calibrating", desk.progress) as advance:
            for done, (name, rule) in enumerate(rules.items()):
                advance(done, len(rules), name)
                path = keep.with_suffix(f".{name}.json")
                asked = fingerprint_of(data, model.fingerprint, name, rule.settings(), max(self.steps))
                count = partial(evaluations_of, model, rule, data, max(self.steps))
                found[name] = remembered(path, asked, lambda count=count: {"found": count()})["found"]  # type: ignore[misc]
        return found

    def _one_at_a_time(self, trial: Divergent) -> dict[str, float] | None:
        """KL(data ‖ q) in random order with one evaluation per token, at most: what no schedule can go below by much.
        A kernel without masks has none."""
        if not trial.model.process.absorbing:
            return None
        free = torch.ones_like(trial.held_out, dtype=torch.bool)
        return vars(over_sequences(trial.log_p + nelbo(trial.model, trial.held_out, free, 8, seed=self.seed)))

    def _tell(self, trial: Divergent, choosing: bool, desk: Desk) -> None:
        """The same beginnings continued by each, side by side."""
        begun = trial.held_out[:BEGUN]
        conditioned = replace_given(trial, begun)
        told = []
        for count in SIDE_BY_SIDE:
            for strategy, sampler in TOLD if choosing else TOLD[: len(SCHEDULES)]:
                if strategy == "jys" and count not in trial.jys:
                    continue
                x = conditioned.sample(Cell(strategy, count, BEGUN, sampler), BEGUN).as_subclass(Tensor)
                told.append(_told(strategy if sampler == "ancestral" else LOWEST, count, x))
        real = _told("the law itself", None, begun)
        name = "side-by-side" if self.network == "stories" else f"{self.network}-side-by-side"
        for suffix, write in (("md", as_markdown), ("html", as_html)):
            write_atomically(desk.out / f"{name}.{suffix}", write(real, told, GIVEN, self.network))


def rules_of(clock: Clock) -> dict[str, Rule]:
    """Adaptive samplers, and between which settings they are tried."""
    make: dict[str, tuple[Callable[[float], Any], float, float]] = {
        "entropy-bounded": (EntropyBounded, 400.0, 0.3),
        "threshold": (Threshold, 0.02, 0.9),
        "prefix": (Prefix, 100.0, 0.5),
        "klass": (lambda confidence: Klass(confidence, 0.5, 1), 0.02, 0.9),
        "order-bounded": (lambda bound: OrderBounded("low-discrepancy", bound), 400.0, 0.3),
        "apart": (lambda bound: Apart(clock.pairs, bound), 30.0, 0.003),
    }
    return {name: Rule(*each) for name, each in make.items()}


def replace_given(trial: Divergent, begun: Int[Tensor, "n length"]) -> Divergent:
    """The same trial where stories are begun."""
    return replace(trial, given=begun, fixed=torch.arange(begun.shape[1]) < GIVEN, held_out=begun)


def _told(name: str, evaluations: int | None, x: Int[Tensor, "n length"]) -> Told:
    """Stories as they are shown, every piece with its nats under the law."""
    law = stories()
    pieces = [[law.pieces[token] for token in row] for row in x.tolist()]
    return Told(name, evaluations, pieces, (-law.token_logs(x)).tolist())
