"""`eigentime demo`: the whole story on one trained network in less than a minute."""

import json as jsonlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime import api
from eigentime.arguments import SEED, whole
from eigentime.cli.measure import spent
from eigentime.cli.options import Seed, console, print_json
from eigentime.experiments.compare import compare as compare_strategies
from eigentime.files import make_folder, write_atomically
from eigentime.report.figures import check_figures, comparison_figure, save_figure
from eigentime.report.provenance import jsonable
from eigentime.report.tables import comparison_tables
from eigentime.reporting import report as make_report
from eigentime.tasks import MODELS

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods", "plan"]
ORDERS = ["low-discrepancy"]
STEPS = [2, 4, 8, 16]
STEPS_SHOWN = 16
PAGE: dict[str, Any] = {
    "strategies": ["uniform", "eds", "wds", "ods"],
    "counts": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32],
    "shown": [4, 8],
    "samples": 2,
}
"""What the report page shows: less than it could, so that the demo stays short."""
JYS_SAMPLES = 6
"""Sequences that JYS looks at: with as many as its paper takes it would take longer than all else."""


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the clock, the schedules, the rows, the figure and the page.")
    ] = Path("eigentime-demo"),
    samples: Annotated[int, typer.Option(help="Sequences per cell.")] = 24,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON instead of the table.")] = False,
) -> None:
    """Measure a model, build every schedule, sample with each, and show why a schedule matters.

    Example: eigentime demo --out my-demo
    """
    check_figures()
    whole(2)(samples, "--samples")
    SEED(seed, "--seed")
    began = time.perf_counter()
    make_folder(out / "schedules")
    name = "countdown"
    model = api.load(name)
    if not json:
        console.print(
            f"[bold]{name}[/]: a small trained network (MDLM) for {model.length} tokens that count down to 0 and "
            "restart anywhere. Same network, same number of evaluations: what differs is when, and for plans where."
        )
    data = api.own_data(model, 256, seed)
    clock = api.measure(model, data, orders=ORDERS, seed=seed, progress=not json)
    clock.save(out / "clock.safetensors")
    if not json:
        console.print(f"Measured with {spent(clock)}.")
    rows = compare_strategies(
        model,
        STRATEGIES,
        STEPS,
        samples=samples,
        clock=clock,
        data=data,
        jys_samples=JYS_SAMPLES,
        seed=seed,
        progress=not json,
    )
    for row in rows:
        file = out / "schedules" / f"{row['strategy']}-{row['steps']}.json"
        write_atomically(file, jsonlib.dumps(row["schedule"], indent=1) + "\n")
    task = MODELS[name]
    write_atomically(out / "rows.json", jsonlib.dumps(jsonable(rows), indent=1) + "\n")
    save_figure(comparison_figure(rows, clock, task.fidelity, STEPS_SHOWN), out / "demo.png")
    page = out / "report.html"
    make_report(clock, rows, out=page, model=model, seed=seed, progress=not json, **PAGE)
    if json:
        print_json(rows)
        return
    console.print(*comparison_tables(rows, task.fidelity, task.diversity))
    console.print(
        f"violation: transitions that break the rule, in {samples} sequences per cell. path error: what the "
        f"schedule adds to the network's own error, known before sampling. JYS looked at "
        f"{JYS_SAMPLES} sequences. plan: also chooses where to reveal."
    )
    console.print(f"Saved clock, schedules, rows and figure in {out}/ after {time.perf_counter() - began:.0f} s.")
    console.print(f"[bold]Open {page.resolve()} in a browser[/]: all of it to look at, and a film of both. No network.")
