"""`eigentime report`: a clock explained on one page."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime import api, reporting
from eigentime.cli.options import Kernel, Seed, console, read_list, read_numbers
from eigentime.errors import EigentimeError
from eigentime.files import check_writable
from eigentime.measure import Clock
from eigentime.report.rows import read_rows


def report(
    clock: Annotated[Path, typer.Argument(help="A clock file that `eigentime measure` wrote.")],
    rows: Annotated[
        list[Path] | None, typer.Argument(help="Rows that `eigentime compare … --json` wrote: quality of samples.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    model: Annotated[
        str | None, typer.Option(help="The model that was measured, to draw samples and a film for the page.")
    ] = None,
    kernel: Kernel = None,
    strategies: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(reporting.STRATEGIES),
    evaluations: Annotated[str, typer.Option(help="Numbers of evaluations to draw samples with.")] = ",".join(
        map(str, reporting.SHOWN)
    ),
    samples: Annotated[int, typer.Option(help="Sequences to draw with each strategy.")] = reporting.SAMPLES,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    seed: Seed = 0,
) -> None:
    """Explain a clock on one page that opens offline: curves, steps, certificates, plan, quality, samples and a film.

    Example: eigentime report countdown.safetensors rows.json --model countdown -o report.html
    """
    check_writable(out)
    if kernel is not None and model is None:
        raise EigentimeError("--kernel goes with --model.")
    page = reporting.report(
        Clock.load(clock),
        {str(path): read_rows(path) for path in rows or ()},
        out=out,
        model=None if model is None else api.load(model, kernel),
        strategies=read_list(strategies, "strategies"),
        shown=read_numbers(evaluations, "evaluations"),
        samples=samples,
        title=title,
        seed=seed,
        progress=True,
    )
    console.print(f"Wrote {out} ({len(page.encode()) / 1e6:.1f} MB): open it in any browser, no network needed.")
