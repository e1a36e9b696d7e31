"""`eigentime schedule`: times from a clock, or from a model where the strategy needs no clock."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime import api
from eigentime.arguments import SEED, place
from eigentime.certificates import path_error
from eigentime.cli.options import Data, Json, Kernel, Sampler, console, print_json, read_array
from eigentime.errors import EigentimeError
from eigentime.files import check_writable
from eigentime.measure import Clock
from eigentime.schedules import STRATEGIES, UNMEASURED, Schedule, check_steps, check_strategy
from eigentime.tasks import MODELS


def schedule(
    source: Annotated[str, typer.Argument(help="A clock file, or a model's name for jys and the fixed strategies.")],
    strategy: Annotated[str, typer.Option(help=f"One of {', '.join(STRATEGIES)}.")] = "ods",
    steps: Annotated[int, typer.Option(help="Network evaluations in all.")] = 16,
    sampler: Sampler = "ancestral",
    kernel: Kernel = None,
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="Save as JSON.")] = None,
    seed: Annotated[int, typer.Option(help="For jys, whose reference takes 42; nothing else draws.")] = 42,
    json: Json = False,
) -> None:
    """Turn a clock into a sampling schedule, with its predicted error in nats.

    Example: eigentime schedule countdown.safetensors --strategy ods --steps 16 --out ods16.json
    """
    check_strategy(strategy)
    check_steps(steps)
    if out:
        check_writable(out)
    SEED(seed, "--seed")
    place(source, "A clock file or a model's name")
    clock = None if source in MODELS or Path(source).is_dir() else Clock.load(source)
    if clock is not None and (kernel is not None or data is not None):
        raise EigentimeError("--kernel and --data go with a model's name; a clock file has its own.")
    if clock is None:
        grid = _without_clock(source, strategy, steps, kernel, data, seed, not json)
    elif strategy == "jys":
        raise EigentimeError("JYS asks the network itself: give a model's name instead of a clock file.")
    else:
        grid = api.schedule(clock, strategy, steps=steps, sampler=sampler)
    if out:
        grid.save(out)
    error = path_error(clock, grid, sampler=sampler) if clock else None
    if json:
        certificate = None if error is None else {"mean": error.mean, "stderr": error.stderr, "note": error.note}
        print_json({**grid.to_dict(), "path_error": certificate})
        return
    console.print(f"[bold]{strategy}[/], {grid.steps} steps, {grid.evaluations} network evaluations")
    console.print("times  " + " ".join(f"{time:.4f}" for time in grid.times), soft_wrap=True)
    console.print("alpha  " + " ".join(f"{alpha:.4f}" for alpha in grid.alphas), soft_wrap=True)
    if error:
        console.print(f"predicted path error  {error}")
    console.print(f"cite  {grid.citation}", soft_wrap=True)
    if out:
        console.print(f"Saved to {out}.")


def _without_clock(
    name: str, strategy: str, steps: int, kernel: str | None, data: Path | None, seed: int, progress: bool
) -> Schedule:
    model = api.load(name, kernel)
    if strategy in UNMEASURED:
        return api.schedule(strategy, steps=steps, model=model)
    if strategy != "jys":
        raise EigentimeError(
            f"{strategy} is chosen by a clock: run `eigentime measure {name}` first and give its file."
        )
    sequences = read_array(data, "data")
    if sequences is None:
        sequences = api.own_data(model, api.JYS_SEQUENCES, seed).numpy()
    return api.schedule("jys", steps=steps, model=model, data=sequences, seed=seed, progress=progress)
