"""How tokens look: as text, as a graph of values, as a piano roll, or as a picture. A new way is a function here, one
in the script `tokens.js`, and one line in `VIEWS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from eigentime.data.text import SYMBOLS
from eigentime.errors import EigentimeError
from eigentime.models import Model
from eigentime.tasks.lists import Words
from eigentime.tasks.story_law import stories

Spell = Callable[[int], str]
"""The text of a token."""


@dataclass(frozen=True)
class View:
    """How the script draws sequences of a model."""

    kind: str
    """text, graph, roll or image."""
    values: int
    """How many values data have; what lies outside of 0 … values - 1 is not known yet."""
    mask: int | None
    """The token that stands for what is not known yet."""
    spell: Spell | None = None
    """For text."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What the kind needs to know."""

    def symbols(self, used: set[int]) -> dict[str, str]:
        """The text of every token that occurs."""
        if self.spell is None:
            return {}
        return {str(token): "" if token == self.mask else self.spell(token) for token in sorted(used)}


def _characters(model: Model) -> dict[str, Any]:
    return {"kind": "text", "spell": lambda token: SYMBOLS[token] if token < len(SYMBOLS) else "?"}


def _pieces(model: Model) -> dict[str, Any]:
    pieces = stories().pieces
    return {"kind": "text", "spell": lambda token: pieces[token] if token < len(pieces) else "?"}


def _words(model: Model) -> dict[str, Any]:
    words = Words().words
    return {"kind": "text", "spell": lambda token: f"{words[token]} " if token < len(words) else "? "}


def _values(model: Model) -> dict[str, Any]:
    return {"kind": "graph"}


def _notes(model: Model) -> dict[str, Any]:
    return {"kind": "roll", "settings": {"rest": 128, "bar": 16}}


def _pixels(model: Model) -> dict[str, Any]:
    return {"kind": "image", "settings": {"shape": list(model.task.shape)}}


VIEWS: dict[str, Callable[[Model], dict[str, Any]]] = {
    "binomial": _values,
    "countdown": _values,
    "digits": _pixels,
    "images": _pixels,
    "lists": _words,
    "mnist": _pixels,
    "music": _notes,
    "stories": _pieces,
    "text": _characters,
    "trigram": _characters,
}
"""By the name of the task; any other model's tokens are numbers in a row."""


def view_of(model: Model, spell: Spell | None = None, shape: Sequence[int] | None = None) -> View:
    """How a model's tokens look; for models of one's own `spell` says what a token reads like, or `shape` that tokens
    are the pixels of pictures (channels, height, width)."""
    if spell is not None and shape is not None:
        raise EigentimeError("Tokens are text (spell=) or pixels (shape=), not both.")
    kernel = model.process.kernel
    mask = getattr(kernel, "mask", None)
    values = kernel.size - (mask is not None)
    if shape is not None:
        if len(shape) != 3 or shape[0] not in (1, 3) or prod(shape) != model.length:
            raise EigentimeError(
                f"A picture's shape is (channels, height, width) with 1 or 3 channels, {model.length} numbers in all, "
                f"not {tuple(shape)}."
            )
        return View("image", values, mask, settings={"shape": list(shape)})
    known = VIEWS.get(model.task.name) if model.task is not None and spell is None else None
    if known is not None:
        return View(values=values, mask=mask, **known(model))
    return View("text", values, mask, spell or (lambda token: f"{token} "))
