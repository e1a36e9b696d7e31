"""The `eigentime` command: its subcommands, and the one place where errors become a sentence and an exit code."""

import logging
import sys
import warnings
from typing import Annotated

import typer

from eigentime import ranks
from eigentime.cli.compare import compare
from eigentime.cli.demo import demo
from eigentime.cli.draw import draw
from eigentime.cli.evaluate import evaluate
from eigentime.cli.export import export
from eigentime.cli.measure import measure
from eigentime.cli.merge import merge
from eigentime.cli.midi import midi
from eigentime.cli.models import models
from eigentime.cli.nll import nll
from eigentime.cli.plan import plan
from eigentime.cli.quiet import hushable
from eigentime.cli.recommend import recommend
from eigentime.cli.report import report
from eigentime.cli.reproduce import reproduce
from eigentime.cli.reproduce_all import all_experiments
from eigentime.cli.reproduce_mnist import mnist
from eigentime.cli.reproduce_stories import stories
from eigentime.cli.reproduce_text import choosing, text
from eigentime.cli.sample import sample
from eigentime.cli.schedule import schedule
from eigentime.cli.serve import app as serve
from eigentime.cli.shared import ALONE, EXPERIMENTS, SHARED
from eigentime.cli.train import train
from eigentime.code import package_version
from eigentime.errors import EigentimeError
from eigentime.models.batching import is_out_of_memory
from eigentime.report.terminal import Terminal, plain

looked_at = sys.stdout.isatty() and sys.stderr.isatty() and not plain()
app = typer.Typer(
    help="Sampling schedules for discrete diffusion models, measured from the model itself.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if looked_at else None,  # boxes wrap what they hold
)


NO_MEMORY = (
    "There was not enough memory. What is finished is kept where the command keeps it, and the same command goes on; "
    "fewer sequences at a time or a smaller budget take less."
)


def show_version(asked: bool) -> None:
    """Print it and leave, if asked to."""
    if asked:
        print(f"eigentime {package_version()}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Sampling schedules for discrete diffusion models, measured from the model itself."""


MEASURING = (demo, models, measure, merge, schedule, plan, sample)
JUDGING = (nll, recommend, compare, evaluate, report)
for command in (*MEASURING, *JUDGING, serve, draw, train, export, midi):
    app.command(epilog=SHARED.get(command.__name__, ALONE))(hushable(command))
for experiment in (text, choosing, mnist, stories):
    reproduce.command()(experiment)
reproduce.command("all")(all_experiments)
for known in reproduce.registered_commands:
    if known.callback is not None:
        known.callback = hushable(known.callback)
        known.epilog = EXPERIMENTS
app.add_typer(reproduce, name="reproduce")


def main() -> None:
    """Run the command line; bad input gets one sentence and exit code 2, a lost process exit code 3."""
    try:
        logging.basicConfig(format="%(message)s", level=logging.ERROR if ranks.silent() else logging.WARNING)
        logging.getLogger("eigentime").setLevel(logging.INFO)  # where data comes from
        ranks.begin_command()
        warnings.showwarning = lambda message, *_: None if _hushed() else print(f"note: {message}", file=sys.stderr)
        app()
    except EigentimeError as error:
        _leave(str(error), error.code)
    except KeyboardInterrupt:  # before or after a command that has a word of its own
        _leave("Stopped.", 130)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _leave(NO_MEMORY, 2)


def _leave(sentence: str, code: int) -> None:
    if ranks.speaks():
        print(f"eigentime: {sentence}", file=sys.stderr)
    ranks.leave(code)


def _hushed() -> bool:
    return Terminal.hushed or ranks.silent()
