"""`eigentime recommend`: which way of sampling, before anything is sampled."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eigentime.cli.keeping import Keep, kept_beside
from eigentime.cli.nll import summary
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
)
from eigentime.cli.own import ModelOrOwn, OwnModel, load_named_or_own
from eigentime.files import check_writable
from eigentime.intervals import PerSequence
from eigentime.recommend import Recommendation
from eigentime.recommend import recommend as find
from eigentime.report.terminal import Fitted

SHOWN = 10


def recommend(
    model: ModelOrOwn = None,
    own: OwnModel = None,
    nfe: Annotated[int | None, typer.Option(help="Network evaluations per sequence that you can spend.")] = None,
    error: Annotated[float | None, typer.Option(help="Instead: nats above one token at a time that you allow.")] = None,
    kernel: Kernel = None,
    data: Data = None,
    sequences: Annotated[int, typer.Option(help="Sequences of the data at most; half choose, half certify.")] = 128,
    budget: Annotated[int, typer.Option(help="Network evaluations for the clock, and again for every order.")] = 512,
    cache_pass: Annotated[
        bool, typer.Option("--cache-pass", help="Count one more evaluation per block, as engines with a cache spend.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Save the schedule, plan or sampler as JSON.")] = None,
    length: Length = None,
    trust_remote_code: Trust = False,
    device: Device = None,
    dtype: Precision = None,
    seed: Seed = 0,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Compare schedules, plans and adaptive samplers, whole and in blocks, in nats on data, and say which one to use.

    --nfe bounds the mean number of evaluations on the half of the data that chooses; --error is a target there, and no
    guarantee.

    Example: eigentime recommend countdown --nfe 8

    Your own: eigentime recommend --model my_module:build --data held-out.npy --nfe 8
    """
    if out:
        check_writable(out)
    with kept_beside(out, keep) as kept:
        loaded = load_named_or_own(
            model, own, kernel, device, dtype, length=length, trust_remote_code=trust_remote_code
        )
        found = find(
            loaded,
            read_array(data, "data"),
            nfe=nfe,
            error=error,
            budget=budget,
            sequences=sequences,
            cache_pass=cache_pass,
            seed=seed,
            keep=kept,
            progress=not json,
        )
        if out:
            found.save(out)
    if json:
        return print_json(described(found))
    table = Fitted("way of sampling", "evaluations", "nats per sequence", "above the best", "reverse", "sequences")
    for each in found.frontier[:SHOWN]:
        above, reverse = ranged(each.above(found.frontier[0])), "" if each.reverse is None else ranged(each.reverse)
        row = (f"{each.evaluations:.3g}", ranged(each.cost), above, reverse, str(len(each.nats)))
        table.add_row(str(each.candidate), *row)
    console.print(table)
    console.print(str(found), soft_wrap=True)
    if out:
        console.print(f"Saved to {out}.")
    return None


def ranged(nats: PerSequence) -> str:
    """A mean with its 95 % interval."""
    low, high = nats.interval()
    return f"{nats.mean:.4g} ({low:.3g} to {high:.3g})"


def described(found: Recommendation) -> dict[str, Any]:
    """As plain values."""
    return {
        "recommendation": str(found.candidate),
        "sentence": str(found),
        "evaluations": vars(found.forward.evaluations),
        "nats": summary(found.forward.nats),
        "excess": summary(found.forward.excess),
        "reverse": summary(found.reverse),
        "block_length": found.candidate.block_length,
        "cache_passes": found.cache_passes,
        "planned": None if found.planned is None else found.planned.to_dict(),
        "spent": found.evaluations,
        "frontier": [
            {
                "candidate": str(each.candidate),
                "evaluations": each.evaluations,
                "nats": summary(each.cost),
                "above_the_best": summary(each.above(found.frontier[0])),
                "reverse": None if each.reverse is None else summary(each.reverse),
                "sequences": len(each.nats),
            }
            for each in found.frontier
        ],
    }
