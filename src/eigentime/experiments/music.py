"""Monophonic music: fourteen bars after two given ones, every schedule against held-out tunes and 512-step samples.

The paper's third experiment. For each of the held-out songs one continuation a cell; distances are per song, from the
true continuation and from what 512 uniform steps make of the same two bars.
"""

import warnings
from collections.abc import Sequence
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
from eigentime.experiments.dynamics import four_curves
from eigentime.experiments.kept_jys import kept_jys, made_of
from eigentime.experiments.speedup import speedups
from eigentime.measure import Clock
from eigentime.measure.curves import default_times
from eigentime.models import Model
from eigentime.report.figures import check_figures, save_figure
from eigentime.report.kept import remembered
from eigentime.report.provenance import save_results
from eigentime.report.quality import quality_figure
from eigentime.report.rolls import roll_figure
from eigentime.samplers import make_sampler, run
from eigentime.schedules import Schedule, check_steps
from eigentime.tasks import music
from eigentime.tasks.metrics import Estimate, over_sequences

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods"]
STEPS = [2, 4, 8, 16, 32, 64]
REFERENCE_STEPS, REFERENCE_SAMPLER = 512, "tau-leaping"
BUDGET = 2048
SHOWN = 6
"""Songs that are written as MIDI and drawn."""
METRICS = {"outlier": "outlier score", "hellinger": "Hellinger distance of note histograms"}


def reproduce(
    out: Path,
    model: str = "music",
    songs: int = 100,
    folder: Path | None = None,
    samplers: Sequence[str] = ("euler", "tau-leaping"),
    steps: Sequence[int] = STEPS,
    reference_steps: int = REFERENCE_STEPS,
    budget: int = BUDGET,
    jys_samples: int = api.JYS_SEQUENCES,
    seed: int = 0,
    progress: bool = False,
) -> dict[str, Any]:
    """Compare the strategies with every sampler; write results, figures and MIDI files to `out`.

    model   the bundled network, or a published piano checkpoint
    folder  `train.npy` and `test.npy` in place of the folk tunes (tauLDR's Lakh files)

    JYS schedules, the reference and finished cells are kept in `out`, so that an interrupted run goes on.
    """
    check_figures()
    for sampler in samplers:
        make_sampler(sampler)
    for count in (*steps, reference_steps):
        check_steps(count)
        if count in steps and count & (count - 1):
            raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
    network = api.load(model)
    if network.length != 256 or network.process.kernel.size != SYMBOLS:
        raise EigentimeError(f"{model} is not a network for 256 steps of {SYMBOLS} symbols.")
    folder = folder or own_folder("music")
    held_out = music.test().long() if folder is None else torch.from_numpy(read_folder(folder)[1])
    if len(held_out) < songs + 64:
        raise EigentimeError(f"There are {len(held_out)} held-out songs: {songs} to judge leave too few to measure on.")
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(held_out)))
    truth, others = held_out[order[:songs]], held_out[order[songs:]]
    fixed = torch.arange(network.length) < music.GIVEN
    out.mkdir(parents=True, exist_ok=True)
    clock = api.measure(network, others, fixed=fixed, budget=budget, tolerance=0.01, seed=seed, progress=progress)
    jys = kept_jys(network, clock, others[:jys_samples], fixed, steps, out / "jys.json", progress)
    reference = _reference(network, clock, truth, fixed, reference_steps, seed, out / "reference.json", progress)
    judge = _judge(truth, reference, others, reference_steps)
    parts, kept = {}, []
    for sampler in samplers:
        kept.append(out / f"{sampler}.partial.json")
        parts[sampler] = compare(
            network,
            STRATEGIES,
            steps,
            samples=songs,
            sampler=sampler,
            clock=clock,
            data=others,
            given=truth,
            fixed=fixed,
            jys=jys,
            seed=seed,
            metrics=judge,
            keep=kept[-1],
            made_with={"songs": songs, "reference_steps": reference_steps},
            progress=progress,
        )
    curves = four_curves(clock, default_times(128))
    content = {
        "model": model,
        "songs": songs,
        "data": "folk tunes" if folder is None else str(folder.name),
        "reference": {"steps": reference_steps, "sampler": REFERENCE_SAMPLER, "metrics": _values(judge(reference))},
        "real": _values(judge(truth)),
        "evaluations": clock.evaluations,
        "rows": parts,
        "speedup": {
            sampler: {metric: speedups(rows, metric, seed) for metric in METRICS} for sampler, rows in parts.items()
        },
        "dynamics": {name: vars(found) for name, found in curves.items()},
    }
    save_results(out / "music.json", content, songs=songs, budget=budget, jys_samples=jys_samples, seed=seed)
    level = f"{reference_steps} uniform steps"
    levels = {name: {level: content["reference"]["metrics"][name]["mean"]} for name in METRICS}  # type: ignore[index]
    save_figure(quality_figure(parts, METRICS, levels), out / "music.png")
    _write_songs(network, truth, reference, fixed, _shown_schedules(network, parts), samplers[-1], seed, out)
    for path in kept:
        path.unlink()
    return content


def _shown_schedules(model: Model, parts: dict[str, list[dict[str, Any]]]) -> dict[str, Schedule]:
    """The schedules of 16 steps, or of the middle number, that the last sampler used."""
    rows = list(parts.values())[-1]
    counts = sorted({row["steps"] for row in rows})
    count = 16 if 16 in counts else counts[len(counts) // 2]
    mine = {row["strategy"]: row["schedule"]["times"] for row in rows if row["steps"] == count}
    return {strategy: Schedule.from_times(times, model.process, strategy) for strategy, times in mine.items()}


def _judge(truth: Tensor, reference: Tensor, others: Tensor, steps: int) -> Any:
    """Distances from the true continuations and, with the reference's number of steps behind them, from its."""

    def judge(x: Int[Tensor, "n 256"]) -> dict[str, Estimate]:
        near = music.song_distances(x, reference)
        apart = {f"{name}_{steps}": over_sequences(value) for name, value in near.items()}
        return music.against(truth, others)(x) | apart

    return judge


def _reference(
    model: Model, clock: Clock, truth: Tensor, fixed: Tensor, steps: int, seed: int, path: Path, progress: bool
) -> Int[Tensor, "n 256"]:
    """Samples of many uniform steps, made once for the same network, songs, steps and seed."""

    def make() -> dict[str, Any]:
        grid = api.schedule("uniform", steps=steps, model=model)
        tokens = api.sample(
            model,
            grid,
            len(truth),
            sampler=REFERENCE_SAMPLER,
            given=truth,
            fixed=fixed,
            seed=seed + 1,
            progress=progress,
        )
        return {"tokens": tokens.tolist()}

    return torch.tensor(remembered(path, made_of(truth, model.name, clock.fingerprint, steps, seed), make)["tokens"])


def _values(metrics: dict[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: vars(value) for name, value in metrics.items()}


def _write_songs(
    model: Model,
    truth: Tensor,
    reference: Tensor,
    fixed: Tensor,
    schedules: dict[str, Schedule],
    sampler: str,
    seed: int,
    out: Path,
) -> None:
    """The first songs as MIDI, and the first one of all drawn beside the truth."""
    folder = out / "midi"
    folder.mkdir(exist_ok=True)
    versions = {"tune": truth, "reference": reference}
    for strategy, grid in schedules.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # clipping is in the rows
            shown = truth[:SHOWN]
            tokens, _ = run(model, grid, num_samples=len(shown), sampler=sampler, given=shown, fixed=fixed, seed=seed)
        versions[f"{strategy}, {grid.evaluations} steps"] = tokens
    for name, tokens in versions.items():
        for k in range(min(SHOWN, len(tokens))):
            write_midi(folder / f"{k}-{name.split(',')[0]}.mid", tokens[k].numpy())
    drawn = {name: tokens[0].numpy() for name, tokens in versions.items()}
    save_figure(roll_figure(drawn, music.GIVEN), out / "rolls.png")
