"""`eigentime compare`: every strategy at every number of steps, judged by samples and by certificate."""

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from eigentime import api
from eigentime.cli.measure import spent
from eigentime.cli.options import (
    Data,
    Kernel,
    ModelName,
    Sampler,
    Seed,
    console,
    read_array,
    read_list,
    read_numbers,
)
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare as compare_strategies
from eigentime.files import check_writable, write_atomically
from eigentime.measure import Clock
from eigentime.report.figures import check_figures, comparison_figure, save_figure
from eigentime.report.provenance import jsonable
from eigentime.report.tables import comparison_tables
from eigentime.schedules import check_steps, check_strategy
from eigentime.tasks import judge_of

DEFAULT_STRATEGIES = "uniform,cosine,eds,wds,wds-data,ods"


def compare(
    model: ModelName,
    strategies: Annotated[str, typer.Option(help="Comma-separated.")] = DEFAULT_STRATEGIES,
    steps: Annotated[str, typer.Option(help="Comma-separated numbers of network evaluations.")] = "2,4,8,16,32",
    samples: Annotated[int, typer.Option(help="Sequences per cell.")] = 256,
    sampler: Sampler = "ancestral",
    kernel: Kernel = None,
    clock: Annotated[Path | None, typer.Option(help="A clock file; measured anew without.")] = None,
    data: Data = None,
    jys_samples: Annotated[int, typer.Option(help="Sequences that JYS looks at.")] = api.JYS_SEQUENCES,
    figure: Annotated[Path | None, typer.Option(help="Draw the comparison as a PNG.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file; - for standard output.")] = None,
    seed: Seed = 0,
) -> None:
    """Compare strategies at equal numbers of network evaluations.

    Example: eigentime compare countdown --strategies uniform,wds,ods --steps 4,8,16 --json rows.json
    """
    to_stdout = json is not None and str(json) == "-"
    for path in (figure, None if to_stdout else json):
        if path is not None:
            check_writable(path)
    if figure is not None:
        check_figures()
    names, counts = read_list(strategies, "strategies"), read_numbers(steps, "steps")
    for name in names:
        check_strategy(name)
    for count in counts:
        check_steps(count)
    if samples < 2:
        raise EigentimeError(f"--samples must be at least 2 for an error bar, not {samples}.")
    network = api.load(model, kernel)
    sequences = read_array(data, "data")
    if sequences is None:
        sequences = api.own_data(network, max(256, jys_samples), seed).numpy()
    measured = Clock.load(clock) if clock else api.measure(network, sequences, seed=seed, progress=not to_stdout)
    rows = compare_strategies(
        network,
        names,
        counts,
        samples=samples,
        sampler=sampler,
        clock=measured,
        data=sequences,
        jys_samples=jys_samples,
        seed=seed,
        progress=not to_stdout,
    )
    text = jsonlib.dumps(jsonable(rows), indent=1) + "\n"
    if to_stdout:
        print(text, end="")
    elif json is not None:
        write_atomically(json, text)
    judge = judge_of(network.name)
    if figure is not None:
        save_figure(comparison_figure(rows, measured, judge.fidelity, counts[len(counts) // 2]), figure)
    if not to_stdout:
        console.print(f"Measured with {spent(measured)}. {samples} sequences a cell, {sampler} sampler.")
        console.print(*comparison_tables(rows, judge.fidelity, judge.diversity))
