"""The command line: one thin file a command."""

from eigentime.cli.app import main

__all__ = ["main"]
