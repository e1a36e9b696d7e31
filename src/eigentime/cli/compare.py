"""`eigentime compare`: every strategy at every number of steps, judged by samples and by certificate."""

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from eigentime import api
from eigentime.arguments import whole
from eigentime.cli.keeping import Keep, kept_beside
from eigentime.cli.measure import spent
from eigentime.cli.options import (
    Data,
    Device,
    Kernel,
    Length,
    Precision,
    Sampler,
    Seed,
    Trust,
    console,
    read_array,
    read_list,
    read_numbers,
)
from eigentime.cli.own import ModelOrOwn, OwnMetric, OwnModel, function_named, load_named_or_own
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare as compare_strategies
from eigentime.files import check_writable, write_atomically
from eigentime.measure import Clock
from eigentime.process.process import as_tokens
from eigentime.report.figures import check_figures, comparison_figure, save_figure
from eigentime.report.provenance import jsonable
from eigentime.report.tables import certificate_tables, comparison_tables
from eigentime.schedules import check_steps, check_strategy, plan_order
from eigentime.tasks import generic_metrics
from eigentime.tasks.metrics import as_estimates

DEFAULT_ORDERS = "low-discrepancy,dilated"
DEFAULT_STRATEGIES = "uniform,cosine,eds,wds,wds-data,ods"


def compare(
    model: ModelOrOwn = None,
    own: OwnModel = None,
    strategies: Annotated[
        str, typer.Option(help="Comma-separated; `plan` (the best measured order) and `plan-ORDER` for masked models.")
    ] = DEFAULT_STRATEGIES,
    steps: Annotated[str, typer.Option(help="Comma-separated numbers of network evaluations.")] = "2,4,8,16,32",
    samples: Annotated[int, typer.Option(help="Sequences per cell.")] = 256,
    sampler: Sampler = "ancestral",
    kernel: Kernel = None,
    clock: Annotated[Path | None, typer.Option(help="A clock file; measured anew without.")] = None,
    orders: Annotated[
        str | None, typer.Option(help=f"For plans, the orders to measure (default: {DEFAULT_ORDERS}).")
    ] = None,
    data: Data = None,
    metric: OwnMetric = None,
    jys_samples: Annotated[int, typer.Option(help="Sequences that JYS looks at.")] = api.JYS_SEQUENCES,
    figure: Annotated[Path | None, typer.Option(help="Draw the comparison as a PNG.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file; - for standard output.")] = None,
    length: Length = None,
    trust_remote_code: Trust = False,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    keep: Keep = None,
) -> None:
    """Compare strategies at equal numbers of network evaluations.

    Example: eigentime compare countdown --strategies uniform,wds,ods --steps 4,8,16 --json rows.json

    Your own: eigentime compare --model my_module:build --data held-out.npy --metric my_module:judge
    """
    to_stdout = json is not None and str(json) == "-"
    for path in (figure, None if to_stdout else json):
        if path is not None:
            check_writable(path)
    if figure is not None:
        check_figures()
    names, counts = read_list(strategies, "strategies"), read_numbers(steps, "steps")
    for name in names:
        if plan_order(name) is None:
            check_strategy(name)
    wanted = _orders(names, orders)
    if clock is not None and orders is not None:
        raise EigentimeError("--orders say what to measure; a clock has its own, so leave one of the two out.")
    for count in counts:
        check_steps(count)
    whole(1)(jys_samples, "--jys-samples")
    if samples < 2:
        raise EigentimeError(f"--samples must be at least 2 for an error bar, not {samples}.")
    judged_by = None if metric is None else function_named(metric, "metric")
    with kept_beside(None if to_stdout else json, keep) as kept:
        network = load_named_or_own(
            model, own, kernel, device, dtype, length=length, trust_remote_code=trust_remote_code
        )
        sequences = read_array(data, "data")
        if sequences is None and (clock is None or "jys" in names or network.task is not None):
            sequences = api.own_data(network, max(256, jys_samples), seed).numpy()
        measured = (
            Clock.load(clock)
            if clock
            else api.measure(network, sequences, orders=wanted, seed=seed, keep=_beside(kept), progress=not to_stdout)
        )
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
            metrics=judged_by,
            keep=kept,
            progress=not to_stdout,
        )
        text = jsonlib.dumps(jsonable(rows), indent=1) + "\n"
        if to_stdout:
            print(text, end="")
        elif json is not None:
            write_atomically(json, text)
    judge = network.task if metric is None else None
    if figure is not None:
        headline = judge.fidelity if judge else None
        save_figure(comparison_figure(rows, measured, headline, counts[len(counts) // 2]), figure)
    if not to_stdout:
        console.print(f"Measured with {spent(measured)}. {samples} sequences per cell, {sampler} sampler.")
        if judge:
            console.print(*comparison_tables(rows, judge.fidelity, judge.diversity))
        else:
            judge = judged_by or generic_metrics
            known = {} if sequences is None else as_estimates(judge(as_tokens(sequences, "The data")))
            of_data = {name: value.mean for name, value in known.items()}
            console.print(*certificate_tables(rows, of_data))


def _beside(kept: Path | None) -> Path | None:
    """Where the clock is kept on the way."""
    return None if kept is None else kept.with_name(f"{kept.name}.clock")


def _orders(strategies: list[str], orders: str | None) -> list[str]:
    """What to measure for the plans that are asked for; `random` is always measured along."""
    named = [order for order in map(plan_order, strategies) if order is not None]
    if not named:
        if orders is not None:
            raise EigentimeError("--orders are measured for plans; add `plan` to --strategies.")
        return []
    asked = read_list(orders, "orders") if orders is not None else []
    usual = read_list(DEFAULT_ORDERS, "orders") if "" in named and not asked else []
    return list(dict.fromkeys([*asked, *usual, *filter(None, named)]))
