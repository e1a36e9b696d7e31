"""Where commands print: as wide as the terminal, and off a terminal as wide as the text, so that files, pipes and logs
hold whole sentences whatever the width of a window. Nothing is coloured or bold off a terminal, or with NO_COLOR."""

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

UNBOUNDED = 10_000


def plain() -> bool:
    """Whether somebody asked for no colours, by the convention of no-color.org."""
    return bool(os.environ.get("NO_COLOR"))


class Terminal(Console):
    """A console that wraps lines only where somebody looks at them."""

    hushed: bool = False
    """Whether nothing is to be said but errors and what was asked for as JSON."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, color_system=None if plain() else "auto")

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        found = super().size
        return found if self.is_terminal else ConsoleDimensions(UNBOUNDED, found.height)

    def print(self, *things: Any, **settings: Any) -> None:
        """Print, unless hushed."""
        if not Terminal.hushed:
            super().print(*things, **settings)


class Fitted(Table):
    """A table that goes on below itself where a terminal is too narrow: its first column stands again before the rest,
    and no cell is cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self._parts(console, options):
            yield from Table.__rich_console__(part, console, options)

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        first, *rest = self.columns
        while rest:
            fitting = [1, *(k for k in range(2, len(rest) + 1) if self._fits([first, *rest[:k]], console, options))]
            yield self._of([first, *rest[: fitting[-1]]])
            rest = rest[fitting[-1] :]

    def _fits(self, columns: Iterable[Column], console: Console, options: ConsoleOptions) -> bool:
        unbounded = options.update(width=UNBOUNDED)
        return Measurement.get(console, unbounded, self._of(columns)).maximum <= options.max_width

    def _of(self, columns: Iterable[Column]) -> Table:
        part = copy(self)
        part.columns = [replace(column, _index=k) for k, column in enumerate(columns)]
        return part
