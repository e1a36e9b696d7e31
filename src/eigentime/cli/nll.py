"""`eigentime nll`: what data cost under a sampler with its very steps."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime.cli.options import (
    Data,
    Device,
    Json,
    Kernel,
    Length,
    Precision,
    Sampler,
    Seed,
    Trust,
    console,
    print_json,
    read_array,
)
from eigentime.cli.own import ModelOrOwn, OwnModel, load_named_or_own
from eigentime.errors import EigentimeError
from eigentime.intervals import PerSequence
from eigentime.likelihood import DataCost
from eigentime.likelihood import nll as cost_of
from eigentime.samplers import Shaping, make_sampler
from eigentime.schedules import Plan, Schedule, is_plan


def nll(
    model: ModelOrOwn = None,
    own: OwnModel = None,
    sampler: Sampler = "ancestral",
    schedule: Annotated[
        Path | None,
        typer.Option(help="A file from `eigentime schedule` or `eigentime plan`, for samplers that need one."),
    ] = None,
    kernel: Kernel = None,
    data: Data = None,
    temperature: Annotated[float, typer.Option(help="Of the law that values are drawn from.")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Keep the nucleus of this mass.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Keep the k likeliest values.")] = None,
    block_length: Annotated[int | None, typer.Option(help="Block by block from left to right.")] = None,
    sequences: Annotated[int, typer.Option(help="Sequences of the data at most.")] = 256,
    tolerance: Annotated[
        float | None, typer.Option(help="Stop when the standard error is so many nats; asked at 64, 128, 256, …")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Sequence evaluations at most, references and all.")] = None,
    references: Annotated[int, typer.Option(help="Evaluations per sequence for each of the two references.")] = 8,
    keep: Annotated[
        Path | None, typer.Option(help="A file for finished batches: the same command goes on from there.")
    ] = None,
    length: Length = None,
    trust_remote_code: Trust = False,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """What data cost in nats under a sampler with its very steps, beside one token at a time. Interrupt it; with --keep
    the same command goes on.

    Example: eigentime nll countdown --sampler entropy-bounded --sequences 64 --keep nll.json
    """
    if schedule is None and make_sampler(sampler).scheduled:
        raise EigentimeError(f"{sampler} walks along a schedule: give its file with --schedule.")
    planned = None if schedule is None else Plan.load(schedule) if is_plan(schedule) else Schedule.load(schedule)
    loaded = load_named_or_own(model, own, kernel, device, dtype, length=length, trust_remote_code=trust_remote_code)
    try:
        found = cost_of(
            loaded,
            read_array(data, "data"),
            sampler,
            planned,
            shaping=Shaping(temperature, top_p, top_k),
            block_length=block_length,
            sequences=sequences,
            tolerance=tolerance,
            budget=budget,
            references=references,
            seed=seed,
            keep=keep,
            progress=not json,
        )
    except KeyboardInterrupt:
        kept = f"finished batches are in {keep}, and the same command goes on" if keep else "with --keep it could go on"
        print(f"eigentime: Stopped; {kept}.", file=sys.stderr)
        sys.exit(130)
    if json:
        return print_json(described(found))
    console.print(f"{len(found.nats.values)} sequences: {found}.", soft_wrap=True)
    return None


def described(found: DataCost) -> dict[str, Any]:
    """As plain values."""
    parts = {name: getattr(found, name) for name in ("nats", "excess", "one_at_a_time", "nelbo", "unshaped")}
    return {
        "sequences": len(found.nats.values),
        "exact": found.exact,
        **{name: None if part is None else summary(part) for name, part in parts.items()},
        "forbidden": found.forbidden,
        "greedy": found.greedy,
        "by_step": found.by_step,
        "evaluations": vars(found.evaluations),
        "taught": vars(found.taught),
        "spent": found.spent,
    }


def summary(part: PerSequence) -> dict[str, Any]:
    """A mean and what is known of it."""
    return {"mean": part.mean, "stderr": part.stderr, "interval": part.interval()}
