"""`eigentime app`: the same in a browser, on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from eigentime.app import serve


def app(
    folder: Annotated[
        list[Path] | None, typer.Option(help="A folder that `eigentime train` wrote, to offer as well; repeatable.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Of the address (default: the first free one from 7860).")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser window.")] = False,
) -> None:
    """Play with models in a browser: measure, compare two schedules at equal cost, download one. Needs the `app` extra.

    Example: eigentime app --open
    """
    serve(folder or (), port, open_browser=open_browser)
