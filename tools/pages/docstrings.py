"""Docstrings as pages: the aligned lists of arguments and calls that our docstrings hold become definition lists."""

import re
from collections import Counter
from typing import Any

from griffe import Extension, Object

NAMED = re.compile(r"^(?:[a-z_][\w, ]*?|\w+\([^)]*\)) {2,}(?=\S)")
"""A name or a call, and the space before its meaning."""


class Aligned(Extension):
    """Turns blocks of `name    meaning` into lists of definitions."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change a docstring as soon as its object was read."""
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(aligned, re.split(r"\n\s*\n", obj.docstring.value)))


def aligned(block: str) -> str:
    """A block as definitions, if what it names stands in one column and what it means in another."""
    lines = block.splitlines()
    columns = Counter(found.end() for line in lines if (found := NAMED.match(line)))
    if not columns:
        return block
    column = columns.most_common(1)[0][0]
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        name, meaning = line[:column], line[column:]
        if name.strip() and meaning and not name.endswith(" "):
            name, meaning = line, ""  # too long a name has a line of its own
        if name.strip():
            if line.startswith(" "):
                return block
            entries.append((name.strip(), []))
        elif not entries:
            return block
        if meaning.strip():
            entries[-1][1].append(meaning.strip())
    return "\n\n".join(f"{_code(name)}\n:   {' '.join(meaning)}" for name, meaning in entries)


def _code(name: str) -> str:
    """A call as it is, names each for itself."""
    return f"`{name}`" if "(" in name else ", ".join(f"`{each.strip()}`" for each in name.split(","))
