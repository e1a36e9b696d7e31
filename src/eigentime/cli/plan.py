"""`eigentime plan`: when and where to reveal."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime.cli.options import Json, console, print_json
from eigentime.files import check_writable
from eigentime.measure import Clock
from eigentime.schedules import plan as make_plan


def plan(
    clock: Annotated[Path, typer.Argument(help="A clock file measured with --orders.")],
    steps: Annotated[int, typer.Option(help="Network evaluations in all.")] = 8,
    order: Annotated[str | None, typer.Option(help="Only this order; otherwise the best of those measured.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save as JSON.")] = None,
    json: Json = False,
) -> None:
    """Choose how many tokens each evaluation reveals, and where, by the error that was measured beforehand.

    Example: eigentime plan countdown.safetensors --steps 8 --out plan8.json
    """
    if out:
        check_writable(out)
    made = make_plan(Clock.load(clock), steps, order=order)
    if out:
        made.save(out)
    if json:
        return print_json(made.to_dict())
    console.print(f"[bold]{made.order.name}[/] order, {made.steps} network evaluations")
    console.print("tokens per step  " + " ".join(map(str, made.counts)), soft_wrap=True)
    console.print(f"predicted path error  {made.predicted_error}")
    if out:
        console.print(f"Saved to {out}.")
    return None
