"""Where commands print: as wide as the terminal, and off a terminal as wide as the text, so that files, pipes and logs
hold whole sentences whatever the width of a window."""

from rich.console import Console, ConsoleDimensions

UNBOUNDED = 10_000


class Terminal(Console):
    """A console that wraps lines only where somebody looks at them."""

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        found = super().size
        return found if self.is_terminal else ConsoleDimensions(UNBOUNDED, found.height)
