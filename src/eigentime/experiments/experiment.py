"""What every experiment is: settings that are checked, results that are saved, figures that are drawn."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from eigentime.alone import alone
from eigentime.experiments.kept import timed
from eigentime.files import make_folder
from eigentime.measure import Clock, cumulative, curve, wasserstein
from eigentime.measure.curves import Curve, default_times, wasserstein_rate
from eigentime.report.figures import check_figures
from eigentime.report.provenance import save_results

DRAWN_TIMES = 128


@dataclass
class Desk:
    """The folder that a run writes to, what it keeps there while it works, and whether it shows how far it is."""

    out: Path
    progress: bool = False
    kept: list[Path] = field(default_factory=list)

    def keep(self, name: str) -> Path:
        """A file for finished rows that goes when all is done."""
        self.kept.append(self.out / f"{name}.partial.json")
        return self.kept[-1]

    def clear(self) -> None:
        """Everything is saved: what was kept on the way is no longer needed."""
        for path in self.kept:
            for kept in path.parent.glob(f"{path.stem}.*"):
                kept.unlink()


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """One run: check, measure, sample, judge, save, draw. A subclass declares its settings and what is its own."""

    seed: int = 0

    @property
    @abstractmethod
    def stem(self) -> str:
        """The name of its files."""

    @abstractmethod
    def check(self) -> None:
        """Refuse, before any work, what cannot be done."""

    @abstractmethod
    def results(self, desk: Desk) -> dict[str, Any]:
        """Measure, sample and judge."""

    @abstractmethod
    def draw(self, content: dict[str, Any], out: Path) -> None:
        """Write figures, and whatever else people would rather look at."""

    def run(self, out: Path, progress: bool = False) -> dict[str, Any]:
        """All of it; what was finished before an interruption is not made again."""
        check_figures()
        self.check()
        make_folder(out)
        desk = Desk(out, progress)
        with alone(out / self.stem):
            with timed(desk.keep(self.stem).with_suffix(".took.json")) as took:
                content = self.results(desk)
                save_results(out / f"{self.stem}.json", content, took(), **self.settings())
                self.draw(content, out)
            desk.clear()
        return content

    def settings(self) -> dict[str, Any]:
        """What the results were made with."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value.name if isinstance(value, Path) else value for name, value in values.items()}


def four_curves(clock: Clock, times: Any = None) -> dict[str, Curve]:
    """Rate and amount of the non-adiabatic entropy production and of the paper's Wasserstein surrogate."""
    times = default_times(DRAWN_TIMES) if times is None else times
    return {
        "entropy rate": curve(clock, "nonadiabatic", times),
        "cumulative entropy": cumulative(clock, "nonadiabatic", times),
        "Wasserstein rate": wasserstein_rate(clock, times),
        "Wasserstein distance": wasserstein(clock, "practical", times),
    }


def described(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Estimates or curves as plain values."""
    return {name: vars(value) for name, value in values.items()}
