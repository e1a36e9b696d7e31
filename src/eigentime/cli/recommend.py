"""`eigentime recommend`: which way of sampling, before anything is sampled."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from eigentime import api
from eigentime.cli.options import (
    Data,
    Device,
    Json,
    Kernel,
    ModelName,
    Precision,
    Seed,
    console,
    print_json,
    read_array,
)
from eigentime.files import check_writable
from eigentime.recommend import Recommendation
from eigentime.recommend import recommend as find

SHOWN = 10


def recommend(
    model: ModelName,
    nfe: Annotated[int | None, typer.Option(help="Network evaluations per sequence that you can spend.")] = None,
    error: Annotated[float | None, typer.Option(help="Instead: nats above one token at a time that you allow.")] = None,
    kernel: Kernel = None,
    data: Data = None,
    sequences: Annotated[int, typer.Option(help="Sequences of the data at most; half choose, half certify.")] = 128,
    budget: Annotated[int, typer.Option(help="Network evaluations for the clock, and again for every order.")] = 512,
    out: Annotated[Path | None, typer.Option(help="Save the schedule, plan or sampler as JSON.")] = None,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare schedules, plans and adaptive samplers in nats on data, and say which one to use.

    Example: eigentime recommend countdown --nfe 8
    """
    if out:
        check_writable(out)
    loaded = api.load(model, kernel, device=device, dtype=dtype)
    found = find(
        loaded,
        read_array(data, "data"),
        nfe=nfe,
        error=error,
        budget=budget,
        sequences=sequences,
        seed=seed,
        progress=not json,
    )
    if out:
        found.save(out)
    if json:
        return print_json(described(found))
    table = Table("way of sampling", "evaluations", "nats per sequence", "sequences", title_justify="left")
    for each in found.frontier[:SHOWN]:
        table.add_row(str(each.candidate), f"{each.evaluations:.3g}", f"{each.mean:.4g}", str(len(each.nats)))
    console.print(table)
    console.print(str(found), soft_wrap=True)
    if out:
        console.print(f"Saved to {out}.")
    return None


def described(found: Recommendation) -> dict[str, Any]:
    """As plain values."""
    return {
        "recommendation": str(found.candidate),
        "sentence": str(found),
        "evaluations": vars(found.forward.evaluations),
        "nats": {"mean": found.forward.nats.mean, "interval": found.forward.nats.interval()},
        "excess": {"mean": found.forward.excess.mean, "interval": found.forward.excess.interval()},
        "reverse": {"mean": found.reverse.mean, "interval": found.reverse.interval()},
        "planned": None if found.planned is None else found.planned.to_dict(),
        "spent": found.evaluations,
        "frontier": [
            {
                "candidate": str(each.candidate),
                "evaluations": each.evaluations,
                "nats": each.mean,
                "sequences": len(each.nats),
            }
            for each in found.frontier
        ],
    }
