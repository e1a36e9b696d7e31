"""The `eigentime` command: its subcommands, and the one place where errors become a sentence and an exit code."""

import logging
import sys
import warnings

import typer

from eigentime.cli.compare import compare
from eigentime.cli.demo import demo
from eigentime.cli.draw import draw
from eigentime.cli.evaluate import evaluate
from eigentime.cli.export import export
from eigentime.cli.measure import measure
from eigentime.cli.midi import midi
from eigentime.cli.models import models
from eigentime.cli.nll import nll
from eigentime.cli.plan import plan
from eigentime.cli.recommend import recommend
from eigentime.cli.report import report
from eigentime.cli.reproduce import reproduce
from eigentime.cli.reproduce_text import choosing, text
from eigentime.cli.sample import sample
from eigentime.cli.schedule import schedule
from eigentime.cli.serve import app as serve
from eigentime.cli.train import train
from eigentime.errors import EigentimeError

app = typer.Typer(
    help="Sampling schedules for discrete diffusion models, measured from the model itself.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,  # boxes wrap what they hold
)
MEASURING = (demo, models, measure, schedule, plan, sample)
JUDGING = (nll, recommend, compare, evaluate, report)
for command in (*MEASURING, *JUDGING, serve, draw, train, export, midi):
    app.command()(command)
for experiment in (text, choosing):
    reproduce.command()(experiment)
app.add_typer(reproduce, name="reproduce")


def main() -> None:
    """Run the command line; bad input gets one sentence and exit code 2."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("eigentime").setLevel(logging.INFO)  # where data comes from
    warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
    try:
        app()
    except EigentimeError as error:
        print(f"eigentime: {error}", file=sys.stderr)
        sys.exit(2)
