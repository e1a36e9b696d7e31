"""Monophonic music: fourteen bars after two given ones, every schedule against held-out tunes and 512-step samples.

The paper's third experiment. For each of the held-out songs one continuation a cell; distances are per song, from the
true continuation and from what 512 uniform steps make of the same two bars.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.data.folk import SYMBOLS, read_folder
from eigentime.data.midi import write_midi
from eigentime.data.packages import own_folder
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.experiments.kept import remembered
from eigentime.experiments.kept_jys import kept_jys, made_of
from eigentime.experiments.speedup import speedups
from eigentime.experiments.trial import Cell, Judge, Trial
from eigentime.measure import Clock
from eigentime.models import Model
from eigentime.report.figures import save_figure
from eigentime.report.quality import quality_figure
from eigentime.report.rolls import roll_figure
from eigentime.report.rows import Row
from eigentime.samplers import make_sampler
from eigentime.schedules import Schedule, check_steps
from eigentime.tasks import music
from eigentime.tasks.metrics import Estimate, over_sequences

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods"]
STEPS = [2, 4, 8, 16, 32, 64]
REFERENCE_STEPS, REFERENCE_SAMPLER = 512, "tau-leaping"
SHOWN = 6
"""Songs that are written as MIDI and drawn."""
METRICS = {"outlier": "outlier score", "hellinger": "Hellinger distance of note histograms"}


@dataclass(frozen=True, kw_only=True)
class Music(Experiment):
    """The strategies with every sampler, on the bundled network or a published piano checkpoint."""

    model: str = "music"
    songs: int = 100
    folder: Path | None = None
    """`train.npy` and `test.npy` in place of the folk tunes (tauLDR's Lakh files)."""
    samplers: Sequence[str] = ("euler", "tau-leaping")
    steps: Sequence[int] = tuple(STEPS)
    reference_steps: int = REFERENCE_STEPS
    budget: int = 2048
    jys_samples: int = api.JYS_SEQUENCES
    stem = "music"

    def check(self) -> None:
        if self.songs < 4 or self.jys_samples < 1:
            raise EigentimeError(
                f"songs must be at least 4 and jys_samples 1, not {self.songs} and {self.jys_samples}."
            )
        for sampler in self.samplers:
            make_sampler(sampler)
        for count in (*self.steps, self.reference_steps):
            check_steps(count)
            if count in self.steps and count & (count - 1):
                raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
        if self._network.length != 256 or self._network.process.kernel.size != SYMBOLS:
            raise EigentimeError(f"{self.model} is not a network for 256 steps of {SYMBOLS} symbols.")
        truth, others = self._songs
        if len(truth) < self.songs or len(others) < 64:
            raise EigentimeError(
                f"There are {len(truth) + len(others)} held-out songs: {self.songs} to judge leave too few to measure "
                "on."
            )

    @cached_property
    def _network(self) -> Model:
        return api.load(self.model)

    @cached_property
    def _place(self) -> Path | None:
        return self.folder or own_folder("music")

    @cached_property
    def _songs(self) -> tuple[Int[Tensor, "n 256"], Int[Tensor, "m 256"]]:
        """Held-out songs: those that are judged, and others to measure on."""
        held_out = music.test().long() if self._place is None else torch.from_numpy(read_folder(self._place)[1])
        order = torch.from_numpy(np.random.default_rng(self.seed).permutation(len(held_out)))
        return held_out[order[: self.songs]], held_out[order[self.songs :]]

    def results(self, desk: Desk) -> dict[str, Any]:
        network, (truth, others) = self._network, self._songs
        fixed = torch.arange(network.length) < music.GIVEN
        clock = api.measure(
            network,
            others,
            fixed=fixed,
            budget=self.budget,
            tolerance=0.01,
            seed=self.seed,
            progress=desk.progress,
        )
        jys = kept_jys(
            network, clock, others[: self.jys_samples], fixed, self.steps, desk.out / "jys.json", desk.progress
        )
        reference = self._reference(clock, truth, fixed, desk)
        judge = _judge(truth, reference, others, self.reference_steps)
        parts = {
            sampler: compare(
                network,
                STRATEGIES,
                self.steps,
                samples=self.songs,
                sampler=sampler,
                clock=clock,
                data=others,
                given=truth,
                fixed=fixed,
                jys=jys,
                seed=self.seed,
                metrics=judge,
                keep=desk.keep(sampler),
                made_with={"songs": self.songs, "reference_steps": self.reference_steps},
                progress=desk.progress,
            )
            for sampler in self.samplers
        }
        last = Trial(network, clock, judge, self.seed, truth, fixed)
        _write_songs(last, {"tune": truth, "reference": reference}, parts[self.samplers[-1]], desk.out)
        return {
            "model": self.model,
            "songs": self.songs,
            "data": "folk tunes" if self._place is None else str(self._place.name),
            "reference": {
                "steps": self.reference_steps,
                "sampler": REFERENCE_SAMPLER,
                "metrics": described(judge(reference)),
            },
            "real": described(judge(truth)),
            "evaluations": clock.evaluations,
            "rows": parts,
            "speedup": {
                sampler: {metric: speedups(rows, metric, self.seed) for metric in METRICS}
                for sampler, rows in parts.items()
            },
            "dynamics": described(four_curves(clock)),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        level = f"{self.reference_steps} uniform steps"
        levels = {name: {level: content["reference"]["metrics"][name]["mean"]} for name in METRICS}
        save_figure(quality_figure(content["rows"], METRICS, levels), out / "music.png")

    def _reference(self, clock: Clock, truth: Tensor, fixed: Tensor, desk: Desk) -> Int[Tensor, "n 256"]:
        """Samples of many uniform steps, made once for the same network, songs, steps and seed."""
        model, steps = self._network, self.reference_steps

        def make() -> dict[str, Any]:
            tokens = api.sample(
                model,
                api.schedule("uniform", steps=steps, model=model),
                len(truth),
                sampler=REFERENCE_SAMPLER,
                given=truth,
                fixed=fixed,
                seed=self.seed + 1,
                progress=desk.progress,
            )
            return {"tokens": tokens.tolist()}

        made = made_of(truth, model.name, clock.fingerprint, steps, self.seed)
        return torch.tensor(remembered(desk.out / "reference.json", made, make)["tokens"])


def _judge(truth: Tensor, reference: Tensor, others: Tensor, steps: int) -> Judge:
    """Distances from the true continuations and, with the reference's number of steps behind them, from its."""

    def judge(x: Int[Tensor, "n 256"]) -> dict[str, Estimate]:
        near = music.song_distances(x, reference)
        apart = {f"{name}_{steps}": over_sequences(value) for name, value in near.items()}
        return music.against(truth, others)(x) | apart

    return judge


def _write_songs(trial: Trial, versions: dict[str, Tensor], rows: Sequence[Row], out: Path) -> None:
    """The first songs as MIDI, and the first one of all drawn beside the truth, with 16 steps or the middle number."""
    folder = out / "midi"
    folder.mkdir(exist_ok=True)
    counts = sorted({row["steps"] for row in rows})
    count = 16 if 16 in counts else counts[len(counts) // 2]
    for row in rows:
        if row["steps"] == count:
            cell = Cell(row["strategy"], count, SHOWN, row["sampler"])
            grid = Schedule.from_times(row["schedule"]["times"], trial.model.process, cell.strategy)
            number = min(SHOWN, len(versions["tune"]))
            versions[f"{cell.strategy}, {grid.evaluations} steps"] = trial.sample(cell, number, grid)
    for name, tokens in versions.items():
        for k in range(min(SHOWN, len(tokens))):
            write_midi(folder / f"{k}-{name.split(',')[0]}.mid", tokens[k].numpy())
    drawn = {name: tokens[0].numpy() for name, tokens in versions.items()}
    save_figure(roll_figure(drawn, music.GIVEN), out / "rolls.png")
