"""`--quiet`, which every command takes."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from eigentime.report.terminal import Terminal

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors and what is asked for as JSON.")]


def hushable(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command with an option that hushes it."""

    @functools.wraps(command)
    def called(*arguments: Any, quiet: bool = False, **settings: Any) -> Any:
        Terminal.hushed = quiet
        try:
            return command(*arguments, **settings)
        finally:
            Terminal.hushed = False

    signature = inspect.signature(command)
    option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    called.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    called.__annotations__ = {**command.__annotations__, "quiet": Quiet}
    return called
