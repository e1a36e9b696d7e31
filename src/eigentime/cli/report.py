"""`eigentime report`: a clock explained on one page."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime import reporting
from eigentime.cli.options import Kernel, Seed, console, read_list, read_numbers
from eigentime.cli.own import load_named_or_own
from eigentime.errors import EigentimeError
from eigentime.files import check_writable
from eigentime.measure import Clock
from eigentime.models import Model
from eigentime.report.rows import read_rows


def report(
    clock: Annotated[Path, typer.Argument(help="A clock file that `eigentime measure` wrote.")],
    rows: Annotated[
        list[Path] | None, typer.Argument(help="Rows that `eigentime compare … --json` wrote: quality of samples.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that was measured, by name or as my_module:build: samples and a film are drawn with it."
        ),
    ] = None,
    kernel: Kernel = None,
    strategies: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(reporting.STRATEGIES),
    evaluations: Annotated[str, typer.Option(help="Numbers of evaluations to draw samples with.")] = ",".join(
        map(str, reporting.SHOWN)
    ),
    samples: Annotated[int, typer.Option(help="Sequences to draw with each strategy.")] = reporting.SAMPLES,
    shape: Annotated[
        str | None, typer.Option(help="Channels,height,width, where the tokens of a model of yours are pixels.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    seed: Seed = 0,
) -> None:
    """Explain a clock on one page that opens offline: curves, steps, certificates, plan, quality, samples and a film.

    Example: eigentime report countdown.safetensors rows.json --model countdown -o report.html
    """
    check_writable(out)
    if kernel is not None and model is None:
        raise EigentimeError("--kernel goes with --model.")
    if shape is not None and model is None:
        raise EigentimeError("--shape goes with --model.")
    page = reporting.report(
        Clock.load(clock),
        {str(path): read_rows(path) for path in rows or ()},
        out=out,
        model=None if model is None else _loaded(model, kernel),
        strategies=read_list(strategies, "strategies"),
        shown=read_numbers(evaluations, "evaluations"),
        samples=samples,
        shape=None if shape is None else read_numbers(shape, "shape"),
        title=title,
        seed=seed,
        progress=True,
    )
    console.print(f"Wrote {out} ({len(page.encode()) / 1e6:.1f} MB): open it in any browser, no network needed.")


def _loaded(model: str, kernel: str | None) -> Model:
    """By name, or with the user's own function."""
    own = ":" in model and not Path(model).exists()
    name, built = (None, model) if own else (model, None)
    return load_named_or_own(name, built, kernel, None, None, length=None, trust_remote_code=False)
