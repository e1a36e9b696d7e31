"""`eigentime measure`: one pass over a model, saved as a clock."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from eigentime import api
from eigentime.certificates import path_error
from eigentime.cli.keeping import Keep, kept_beside
from eigentime.cli.options import (
    Data,
    Device,
    Json,
    Kernel,
    Length,
    Precision,
    Seed,
    Trust,
    console,
    print_json,
    read_array,
    read_list,
    read_numbers,
)
from eigentime.cli.own import ModelOrOwn, OwnModel, load_named_or_own
from eigentime.errors import EigentimeError
from eigentime.files import check_writable
from eigentime.measure import Clock, cumulative, wasserstein
from eigentime.measure.curves import BOUNDS
from eigentime.orders import ORDERS

PAPER_EVALUATIONS = 1024 * 1024
"""What the paper spends on count data: 1,024 samples × 1,024 times."""


def measure(
    model: ModelOrOwn = None,
    own: OwnModel = None,
    out: Annotated[Path, typer.Option(help="Where to save the clock.")] = Path("clock.safetensors"),
    kernel: Kernel = None,
    data: Data = None,
    fixed: Annotated[
        Path | None, typer.Option(help="Which tokens are given: booleans (L,) or (N, L) in a .npy.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Most network evaluations to spend, in sequences.")] = 512,
    tolerance: Annotated[float, typer.Option(help="Stop when a 16-step path error is known this well.")] = 0.03,
    times: Annotated[int | None, typer.Option(help="The paper's setting: this many uniform times …")] = None,
    samples: Annotated[int | None, typer.Option(help="… with this many sequences at each.")] = None,
    orders: Annotated[
        str | None, typer.Option(help=f"For plans, comma-separated: {', '.join(ORDERS)}; each takes the budget again.")
    ] = None,
    shape: Annotated[str | None, typer.Option(help="Of the grid that the tokens fill, such as 3,32,32.")] = None,
    length: Length = None,
    trust_remote_code: Trust = False,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    like: Annotated[
        Path | None,
        typer.Option(help="A pilot clock: measure its levels and orders on other sequences, --samples in all."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="With --like: part i/n of those sequences only, i from 0; `merge` adds them up.")
    ] = None,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Measure how a model generates information, and save it as a clock.

    Example: eigentime measure countdown --out countdown.safetensors
    """
    check_writable(out)
    with kept_beside(out, keep) as kept:
        clock = api.measure(
            load_named_or_own(model, own, kernel, device, dtype, length=length, trust_remote_code=trust_remote_code),
            read_array(data, "data"),
            fixed=read_array(fixed, "fixed"),
            budget=budget,
            tolerance=tolerance,
            times=times,
            samples=samples,
            orders=read_list(orders, "orders") if orders is not None else (),
            shape=read_numbers(shape, "shape") if shape is not None else None,
            seed=seed,
            like=None if like is None else Clock.load(like),
            shard=None if shard is None else read_shard(shard),
            keep=kept,
            progress=not json,
        )
        summary = describe(clock)  # what cannot be certified is refused before anything is written
        clock.save(out)
    if json:
        print_json({"file": str(out), **summary})
        return
    console.print(f"Measured [bold]{clock.model}[/] ({clock.process['kernel']['name']}) with {spent(clock)}.")
    table = Table(header_style="bold")
    table.add_column("quantity")
    table.add_column("value ± stderr", justify="right")
    for name, value in summary["quantities"].items():
        table.add_row(name, f"{value['mean']:.4g} ± {value['stderr']:.2g}")
    console.print(table)
    console.print(f"Saved to {out}. Next: eigentime schedule {out} --strategy ods --steps 16")


def read_shard(text: str) -> tuple[int, ...]:
    """Which part, and of how many."""
    number, _, of = text.partition("/")
    if not (number.isascii() and number.isdigit() and of.isascii() and of.isdigit()):
        raise EigentimeError(f"--shard takes a part and how many there are, such as 0/4, not {text!r}.")
    return int(number[:9]), int(of[:9])


def spent(clock: Clock) -> str:
    """The evaluations a clock took, beside the paper's."""
    ratio = PAPER_EVALUATIONS / clock.evaluations
    return f"{clock.evaluations:,} sequence evaluations ({ratio:,.0f} times fewer than the paper's 1024 × 1024)"


def _kind(clock: Clock, bound: str) -> str:
    """Without detailed balance only the first two are bounds."""
    return "surrogate" if clock.absorbing and bound in ("yoshimura", "practical") else "bound"


def describe(clock: Clock) -> dict[str, Any]:
    """The numbers that say most about a clock."""
    quantities = {
        "entropy produced (nats)": cumulative(clock, "nonadiabatic"),
        "… in the data gauge (nats)": cumulative(clock, "nonadiabatic_data"),
        "jumps (activity)": cumulative(clock, "activity"),
        **{f"W1 {_kind(clock, bound)}, {bound}": wasserstein(clock, bound) for bound in BOUNDS},
    }
    named = {name: {"mean": value.mean[-1], "stderr": value.stderr[-1]} for name, value in quantities.items()}
    for steps in (4, 8, 16, 32):
        error = path_error(clock, api.schedule(clock, "ods", steps=steps))
        named[f"ODS path error, {steps} steps (nats)"] = {"mean": error.mean, "stderr": error.stderr}
    return {
        "model": clock.model,
        "process": clock.process,
        "evaluations": clock.evaluations,
        "seed": clock.seed,
        "quantities": named,
    }
