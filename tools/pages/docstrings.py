"""Docstrings as pages: the aligned lists of arguments that our docstrings hold stay aligned."""

import re
from typing import Any

from griffe import Extension, Object

ARGUMENT = re.compile(r"^[a-z_][\w, ]*?(\s{2,}|$)")
CONTINUED = re.compile(r"^ {4,}\S")


class Aligned(Extension):
    """Puts blocks of `name    meaning` into code blocks, where spaces count."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change a docstring as soon as its object was read."""
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(aligned, re.split(r"\n\s*\n", obj.docstring.value)))


def aligned(block: str) -> str:
    """A block as a code block if each of its lines names an argument or goes on with one."""
    lines = block.splitlines()
    named = [line for line in lines if re.match(r"^[a-z_][\w, ]*?\s{2,}\S", line)]
    if not named or not all(ARGUMENT.match(line) or CONTINUED.match(line) for line in lines):
        return block
    return "\n".join(["```text", *lines, "```"])
