"""A progress bar with the time left, on standard error so that output stays clean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from eigentime.ranks import watched
from eigentime.report.terminal import Terminal


class Advance(Protocol):
    """Told how much is done and, where known, of how much, with a word on how it goes."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None: ...


@contextmanager
def progress_bar(title: str, show: bool | Advance = True) -> Iterator[Advance]:
    """Show a bar while the block runs, where someone can see it; the block calls what it is given. In place of a bar
    `show` may be a function that is told instead, with the title as the word where there is no other."""
    if callable(show):
        tell = show
        yield lambda done, total, note="": tell(done, total, note or title)
        return
    console = Terminal(stderr=True)
    if not (show and console.is_terminal) or Terminal.hushed or not watched():
        yield lambda done, total, note="": None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, note="")
        yield lambda done, total, note="": bar.update(task, completed=done, total=total, note=note)
