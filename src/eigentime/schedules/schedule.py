"""A schedule: checked decreasing times with the α they stand for, and where they come from."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from eigentime.arguments import checked, kind, place, whole, words
from eigentime.errors import EigentimeError
from eigentime.files import check_seal, sealed, write_atomically
from eigentime.pictured import Pictured
from eigentime.process import Noise, Process, noise_from_spec
from eigentime.reading import DAMAGED, Unreadable, first_line, read_json
from eigentime.schedules.citations import CITATIONS
from eigentime.sharing import Shareable

FORMAT = "eigentime-schedule"
VERSION = 1
MOST_STEPS = 2**20
NOISE, PROCESS = kind(Noise, "a noise curve such as et.LogLinear()"), kind(Process, "a Process(kernel, noise)")
MOST_SHOWN = 9
"""Times that are shown in short."""


@dataclass(frozen=True, eq=False)
class Schedule(Pictured, Shareable):
    """Times t_0 = 1 (noise) > … > t_K (data), and α at each, for one noise curve.

    A schedule that ends at 0 takes K network evaluations, the last one stepping to α = 1. Grids of published samplers
    stop just above 0 and add a denoising evaluation: they are kept as they are and that evaluation is counted.
    """

    shared_as = "schedule.json"

    times: Float[np.ndarray, " k"]
    alphas: Float[np.ndarray, " k"]
    noise: Noise
    strategy: str = "custom"
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("times", "alphas"):
            values = _numbers(getattr(self, name)) if name == "alphas" else check_times(self.times)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        NOISE(self.noise, "noise")
        words(self.strategy, "strategy")
        kind(dict, "a dictionary")(self.provenance, "provenance")
        if self.alphas.shape != self.times.shape or not np.all(np.diff(self.alphas) >= 0):
            raise EigentimeError("A schedule needs one α for every time, increasing towards the data.")

    @classmethod
    def from_times(
        cls, times: Any, process: Process, strategy: str = "custom", provenance: dict[str, Any] | None = None
    ) -> "Schedule":
        """Check a list of times (yours or a strategy's) and add the α of the process."""
        times, process = check_times(times), PROCESS(process, "process")
        return cls(times, process.grid_alphas(times), process.noise, strategy, provenance or {})

    @property
    def steps(self) -> int:
        """K, the number of intervals."""
        return len(self.times) - 1

    @property
    def evaluations(self) -> int:
        """Network evaluations of a one-evaluation-a-step sampler, the final denoising one included."""
        return self.steps + int(self.times[-1] > 0)

    @property
    def citation(self) -> str:
        """The work to cite for this strategy."""
        return CITATIONS.get(self.strategy, "A list of times given by the user.")

    @checked(length=whole(1))
    def counts(self, length: int) -> Int[np.ndarray, " steps"]:
        """How many of `length` tokens each evaluation of an absorbing model reveals, as whole numbers that add up."""
        reached = np.round(length * np.append(self.alphas[:-1], 1.0) if self.times[-1] == 0 else length * self.alphas)
        if self.times[-1] > 0:
            reached = np.append(reached, length)
        reached[0] = 0
        return np.diff(reached).astype(int)

    @checked(noise=NOISE)
    def convert(self, noise: Noise) -> "Schedule":
        """The same α for a model with another noise curve."""
        lowest, highest = noise.alpha(1.0).item(), noise.alpha(0.0).item()
        inner = self.alphas[1:-1] if self.times[-1] == 0 else self.alphas[1:]
        if len(inner) and not (lowest < inner[0] and inner[-1] < highest):
            raise EigentimeError(
                f"{noise} only reaches α from {lowest:.4g} to {highest:.4g}, this schedule needs others."
            )
        times, alphas = noise.time_of_alpha(self.alphas).numpy().copy(), self.alphas.copy()
        times[0] = 1.0
        alphas[0] = 0.0 if self.alphas[0] == 0 else lowest
        if self.times[-1] == 0:
            times[-1] = 0.0
        return Schedule(check_times(times), alphas, noise, self.strategy, self.provenance)

    @checked(path=place)
    def save(self, path: str | Path) -> None:
        """Write JSON; the file appears whole or not at all."""
        write_atomically(path, json.dumps(self.to_dict(), indent=1) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return sealed(
            {
                "format": FORMAT,
                "version": VERSION,
                "strategy": self.strategy,
                "steps": self.steps,
                "evaluations": self.evaluations,
                "times": self.times.tolist(),
                "alphas": self.alphas.tolist(),
                "noise": self.noise.spec(),
                "provenance": self.provenance,
                "citation": self.citation,
            }
        )

    @classmethod
    @checked(path=place)
    def load(cls, path: str | Path) -> "Schedule":
        """Read what `save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise EigentimeError(f"There is no schedule file {path}; make one with `eigentime schedule`.")
        try:
            content = read_json(path)
        except Unreadable as error:
            raise EigentimeError(f"{path} is not a whole JSON file ({error}); make the schedule again.") from None
        return cls.from_dict(content, path)

    @classmethod
    def from_dict(cls, content: Any, path: str | Path) -> "Schedule":
        """What `to_dict` made, read from a file of this name."""
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise EigentimeError(f"{path} is not an eigentime schedule of version {VERSION}.")
        try:
            noise = noise_from_spec(content["noise"])
            times = check_times(content["times"])
            grid = cls(
                times, np.array(content["alphas"], dtype=np.float64), noise, content["strategy"], content["provenance"]
            )
            check_seal(content, path, "give times of your own as a list: et.schedule(clock, [1.0, …, 0.0])")
            expected = noise.alpha(times).numpy()
            free = [0, len(times) - 1] if times[-1] == 0 else [0]  # the ends are the process's, not the curve's
            if not np.allclose(np.delete(grid.alphas, free), np.delete(expected, free), atol=1e-6):
                raise EigentimeError(f"{path} is a damaged schedule file (its α are not those of its times).")
            return grid
        except EigentimeError:
            raise
        except DAMAGED as error:
            raise EigentimeError(f"{path} is a damaged schedule file ({first_line(error)}).") from None

    def __eq__(self, other: object) -> bool:
        """The same times on the same noise, chosen in the same way: what was saved equals what is loaded again."""
        return isinstance(other, Schedule) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.strategy, self.times.tobytes()))

    def __repr__(self) -> str:
        shown = [f"{time:.3g}" for time in self.times]
        times = shown if len(shown) <= MOST_SHOWN else [*shown[:3], "…", *shown[-2:]]
        evaluations = "" if self.evaluations == self.steps else f", {self.evaluations} evaluations"
        return f"Schedule({self.strategy}, {self.steps} steps{evaluations}: {' '.join(times)})"


def check_times(times: Any) -> Float[np.ndarray, " k"]:
    """A fresh float64 copy of valid times, or a sentence that says what is wrong with them."""
    times = _numbers(times)
    if times.ndim != 1 or len(times) < 2:
        raise EigentimeError(f"A schedule is a flat list of at least two times, not shape {times.shape}.")
    if not np.all(np.isfinite(times)):
        raise EigentimeError(f"Time number {int(np.argmin(np.isfinite(times)))} of the schedule is not finite.")
    rising = np.flatnonzero(np.diff(times) >= 0)
    if rising.size:
        k = int(rising[0])
        raise EigentimeError(
            f"Times must strictly decrease from noise to data, but time {k + 1} ({times[k + 1]:.6g}) does not lie "
            f"below time {k} ({times[k]:.6g})."
        )
    if times[0] != 1.0:
        raise EigentimeError(f"A schedule starts at t = 1 (noise), not {times[0]:.6g}.")
    if times[-1] < 0:
        raise EigentimeError(f"A schedule ends at t = 0 (data) or just above it, not at {times[-1]:.6g}.")
    return np.asarray(times)


def _numbers(values: Any) -> Float[np.ndarray, "..."]:
    """A fresh float64 copy of what must be numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise EigentimeError("A schedule is a list of numbers from 1 (noise) down to 0 (data).") from None


def check_steps(steps: Any) -> int:
    """A number of steps that a schedule can have."""
    return int(whole(1, MOST_STEPS)(steps, "steps"))
