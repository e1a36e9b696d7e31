"""`eigentime export`: a plan or a schedule as a file that an engine reads."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime.cli.options import console
from eigentime.engines.sglang import Settings
from eigentime.errors import EigentimeError
from eigentime.files import check_writable
from eigentime.samplers import Shaping
from eigentime.schedules import Plan, Schedule, is_plan

ENGINES = {"sglang": Settings}
"""What writes the file, by the engine's name."""


def export(
    planned: Annotated[Path, typer.Argument(help="A plan or a schedule, as `plan` and `schedule` save them.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    engine: Annotated[str, typer.Option(help=f"Who reads it: {', '.join(ENGINES)}.")] = "sglang",
    temperature: Annotated[float, typer.Option(help="1 draws from the posteriors; 0 takes the likeliest token.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Told apart by the requests' ids.")] = 0,
) -> None:
    """Write what an engine needs to follow a plan.

    Example: eigentime export plan8.json --engine sglang --out plan8.yaml
    """
    check_writable(out)
    if engine not in ENGINES:
        raise EigentimeError(f"Unknown engine {engine!r}; known are {', '.join(ENGINES)}.")
    followed = Plan.load(planned) if is_plan(planned) else Schedule.load(planned)
    ENGINES[engine].of(followed, Shaping(temperature), seed).save(out)
    console.print(f"{followed!r} for {engine}, saved to {out}.", markup=False)
