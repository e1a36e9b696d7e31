"""`eigentime sample`: draw sequences along a schedule."""

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from eigentime import api
from eigentime.cli.keeping import Keep, kept_beside
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
from eigentime.files import check_writable, write_atomically
from eigentime.models import Model
from eigentime.process.process import as_tokens
from eigentime.samplers import make_sampler
from eigentime.schedules import UNMEASURED, Plan, Schedule, check_steps, check_strategy, is_plan
from eigentime.tasks import metrics_of


def sample(
    model: ModelOrOwn = None,
    own: OwnModel = None,
    schedule: Annotated[Path | None, typer.Option(help="A file from `eigentime schedule` or `eigentime plan`.")] = None,
    strategy: Annotated[str, typer.Option(help="Without a file: the strategy (measured first where needed) …")] = "ods",
    steps: Annotated[int, typer.Option(help="… and the network evaluations.")] = 16,
    num_samples: Annotated[int, typer.Option(help="How many sequences.")] = 64,
    sampler: Sampler = "ancestral",
    kernel: Kernel = None,
    data: Data = None,
    given: Annotated[
        Path | None, typer.Option(help="Tokens to keep: (L,) or (N, L) in a .npy file, -1 = free.")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Sharpen (below 1) or soften (above 1).")] = 1.0,
    top_p: Annotated[float, typer.Option(help="Keep the nucleus of this mass.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Keep the k likeliest values.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save the tokens as .npy.")] = None,
    length: Length = None,
    trust_remote_code: Trust = False,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Draw sequences from a model along a schedule.

    Example: eigentime sample countdown --strategy ods --steps 16 --num-samples 4
    """
    if out:
        check_writable(out)
    with kept_beside(out, keep) as kept:
        network = load_named_or_own(
            model, own, kernel, device, dtype, length=length, trust_remote_code=trust_remote_code
        )
        tokens_given = read_array(given, "given")
        if tokens_given is not None:
            tokens_given = as_tokens(tokens_given, "--given").numpy()
        sequences = read_array(data, "data")
        clock_kept = None if kept is None else kept.with_name(f"{kept.name}.clock")
        grid = _grid(network, schedule, strategy, steps, sampler, seed, not json, sequences, clock_kept)
        tokens = api.sample(
            network,
            grid,
            num_samples,
            sampler=sampler,
            seed=seed,
            given=tokens_given,
            fixed=None if tokens_given is None else tokens_given >= 0,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            keep=kept,
            progress=not json,
        )
        info = tokens.info
        if out:
            buffer = io.BytesIO()
            np.save(buffer, tokens.numpy())
            write_atomically(out, buffer.getvalue())
    metrics = {name: vars(value) for name, value in metrics_of(network)(tokens).items()}
    if json:
        print_json({"nfe": info.nfe, "evaluations": info.evaluations, "metrics": metrics, "tokens": tokens.numpy()})
        return
    for row in tokens[:4].tolist():
        console.print(" ".join(map(str, row[:40])) + (" …" if len(row) > 40 else ""), highlight=False, soft_wrap=True)
    console.print(
        f"{num_samples} sequences, {info.nfe:g} network evaluations each ({info.evaluations:,} made in all), "
        f"{info.seconds:.1f} s"
    )
    for name, value in metrics.items():
        error = f" ± {value['stderr']:.2g}" if num_samples > 1 else ""  # one sequence has none
        console.print(f"{name}  {value['mean']:.4g}{error}")
    if out:
        console.print(f"Saved to {out}.")


def _grid(
    model: Model,
    file: Path | None,
    strategy: str,
    steps: int,
    sampler: str,
    seed: int,
    progress: bool,
    data: Any,
    keep: Path | None,
) -> Schedule | Plan | None:
    if not make_sampler(sampler).scheduled:
        return None
    if file is not None:
        return Plan.load(file) if is_plan(file) else Schedule.load(file)
    if strategy in UNMEASURED:
        return api.schedule(strategy, steps=steps, model=model)
    if strategy == "jys":
        raise EigentimeError("Make the JYS schedule first with `eigentime schedule` and pass its file as --schedule.")
    check_strategy(strategy)
    check_steps(steps)
    clock = api.measure(model, data, seed=seed, keep=keep, progress=progress)
    return api.schedule(clock, strategy, steps=steps, sampler=sampler)
