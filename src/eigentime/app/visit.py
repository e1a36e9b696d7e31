"""What one visitor has chosen, measured and drawn. Nothing is shared between visits but the weights on disk."""

import html
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eigentime import api
from eigentime.certificates import path_error
from eigentime.errors import EigentimeError
from eigentime.measure import Clock
from eigentime.models import Model, zoo
from eigentime.models.trained import is_model_folder
from eigentime.report.page import Material, embedded, view_of
from eigentime.report.page.html import number, plus_minus, table
from eigentime.report.progress import Advance
from eigentime.reporting import scene
from eigentime.schedules import Certificate, Plan, Schedule, plan
from eigentime.tasks import EXACT, MODELS

STRATEGIES = ("uniform", "cosine", "eds", "wds", "wds-data", "ods")
ORDERS = ("low-discrepancy",)
BUDGETS = (16, 1024)
"""Network evaluations that measuring may take, and again for every order."""
MOST_EVALUATIONS = 64
MOST_TOKENS = 4096
"""Longer sequences than these are for a script, not for a page."""
SINGLE = "binomial"
"""The task of one token: any steps draw it exactly, so that there is nothing to choose."""
MOST_SEED = 2**31 - 1
SURE = 1.96


def named_models(folders: Sequence[str | Path] = ()) -> dict[str, str]:
    """What visitors may choose, by the name they see: bundled models, exact ones, and folders named at the start.

    A visitor sends a name of this list and never a path.
    """
    bundled = [*EXACT, *(name for name in zoo() if name in MODELS)]
    found = {name: name for name in bundled if not name.startswith(SINGLE)}
    for folder in map(Path, folders):
        if not is_model_folder(folder):
            raise EigentimeError(f"{folder} is not a model folder; `eigentime train` writes such folders.")
        label = f"{folder.resolve().name} (folder)"
        if label in found:
            raise EigentimeError(f"Two folders are called {folder.resolve().name}; rename one.")
        found[label] = str(folder.resolve())
    return found


@dataclass(frozen=True)
class Visit:
    """A model, its clock, and a folder for this visitor's files."""

    model: Model
    clock: Clock
    folder: Path

    @classmethod
    def measured(
        cls, name: str, known: Mapping[str, str], budget: int, seed: int, advance: Advance | None = None
    ) -> "Visit":
        """Load a model that is on the list and measure it, with orders where it has a mask; a network whose task is not
        known is measured on samples of its own."""
        if name not in known:
            raise EigentimeError(f"There is no model {name!r} here; choose one of the list.")
        budget, seed = _within(budget, *BUDGETS, "The budget"), _within(seed, 0, MOST_SEED, "The seed")
        model = api.load(known[name])
        if model.length > MOST_TOKENS:
            raise EigentimeError(f"{name} has {model.length:,} tokens, more than the {MOST_TOKENS:,} of this app.")
        if free_tokens(model) < 2:
            raise EigentimeError(f"{name} draws a single token: any steps are exact, and there is nothing to choose.")
        orders = ORDERS if model.process.absorbing else ()
        data = None if name in MODELS or model.task is not None else "self"
        clock = api.measure(model, data, budget=budget, orders=orders, seed=seed, progress=advance or False)
        return cls(model, clock, Path(tempfile.mkdtemp(prefix="eigentime-visit-")))

    def close(self) -> None:
        """Remove this visitor's files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def most(self) -> int:
        """Evaluations that can be asked for."""
        return min(MOST_EVALUATIONS, free_tokens(self.model))

    def strategies(self) -> list[str]:
        """Names of all ways to sample that this clock knows."""
        return [*STRATEGIES, "plan"] if self.clock.orders else [*STRATEGIES]

    def way(self, strategy: str, count: int) -> Schedule | Plan:
        """A schedule or plan of so many evaluations."""
        if strategy not in self.strategies():
            raise EigentimeError(f"There is no strategy {strategy!r} here; choose one of the list.")
        count = _within(count, 1, self.most, "The number of evaluations")
        return plan(self.clock, count) if strategy == "plan" else api.schedule(self.clock, strategy, steps=count)

    def certified(self, count: int) -> dict[str, Certificate]:
        """What every way costs in nats above infinitely many steps, the cheapest first."""
        found = {name: self._error(self.way(name, count)) for name in self.strategies()}
        return dict(sorted(found.items(), key=lambda item: item[1].mean))

    def recommendation(self, count: int) -> tuple[str, str]:
        """The cheapest way, and a sentence that says by how much and how surely."""
        (best, cost), (second, next_cost), *_ = (found := self.certified(count)).items()
        gap = (cost.stderr**2 + next_cost.stderr**2) ** 0.5
        sure = next_cost.mean - cost.mean > SURE * gap
        doubt = "" if sure else f" {second} may be as good: the measurement does not tell them apart."
        usual = found["uniform"]
        none = ", which cannot be told from none" if abs(cost.mean) < SURE * cost.stderr else ""
        return best, (
            f"Use {best}: with {count} evaluations its error is {plus_minus(cost.mean, cost.stderr)} nats{none}; "
            f"equal steps lose {plus_minus(usual.mean, usual.stderr)}.{doubt}"
        )

    def costs(self, count: int) -> str:
        """The certificates as an HTML table."""
        rows = [[name, number(each.mean), number(each.stderr, 2)] for name, each in self.certified(count).items()]
        return table(f"Certified error with {count} evaluations", ["strategy", "nats", "standard error"], rows)

    def side_by_side(self, left: str, right: str, count: int, seed: int) -> str:
        """Two ways draw the same sequence with the same random numbers at equal cost: the report page's film and its
        steps, in a frame that may run their script and nothing else."""
        seed = _within(seed, 0, MOST_SEED, "The seed")
        ways = {name: self.way(name, count) for name in dict.fromkeys((left, right))}
        known = {name: self.way(name, count) for name in self.strategies()}
        material = Material(
            self.clock,
            {name: {count: way} for name, way in known.items() if isinstance(way, Schedule)},
            {name: {count: self._error(way)} for name, way in known.items()},
            {count: best} if isinstance(best := known.get("plan"), Plan) else {},
            scenes={count: [scene(self.model, name, way, 1, seed) for name, way in ways.items()]},
            view=view_of(self.model),
            seed=seed,
        )
        page = html.escape(embedded(material, f"{left} and {right}, {count} evaluations"))
        return f'<iframe class="film" title="{left} and {right}" sandbox="allow-scripts" srcdoc="{page}"></iframe>'

    def saved(self, strategy: str, count: int) -> Path:
        """The file of a schedule or plan, as `save` writes it."""
        path = self.folder / f"{strategy}-{count}.json"
        self.way(strategy, count).save(path)
        return path

    def _error(self, way: Schedule | Plan) -> Certificate:
        if isinstance(way, Schedule):
            return path_error(self.clock, way)
        assert way.predicted_error is not None
        return way.predicted_error


def free_tokens(model: Model) -> int:
    """Tokens that are drawn and not given."""
    return model.length - (0 if model.task is None else model.task.given)


def _within(value: float | None, low: int, high: int, what: str) -> int:
    """A whole number between two others."""
    if value is None or value != int(value) or not low <= value <= high:
        raise EigentimeError(f"{what} must be a whole number from {low} to {high:,}, not {value}.")
    return int(value)
