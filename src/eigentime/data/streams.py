"""Data that come batch by batch: a stream of the `datasets` library, a loader, or any iterable, of which only what is
used is ever held."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer
from torch import Tensor

from eigentime.errors import EigentimeError

COLUMN = "input_ids"
"""What tokens are called where a row has several columns."""


def is_stream(data: Any) -> bool:
    """Whether data have to be taken one after the other; arrays and lists are there at once."""
    at_once = isinstance(data, Tensor | list | tuple | str | bytes | Mapping) or hasattr(data, "__array__")
    return not at_once and isinstance(data, Iterable)


def taken(data: Any, count: int) -> Any:
    """The first `count` sequences of a stream as an array (n, L); anything else as it is."""
    if not is_stream(data):
        return data
    rows = list(islice(sequences(data), count))
    if not rows:
        raise EigentimeError("The stream of data holds no sequence.")
    if len({row.shape for row in rows}) > 1:
        raise EigentimeError(
            f"The stream holds sequences of {len(rows[0])} tokens and of others; cut them to one length first."
        )
    return np.stack(rows)


def sequences(data: Iterable[Any]) -> Iterator[Integer[np.ndarray, " length"]]:
    """Every sequence of a stream of sequences (L,), of batches (n, L), or of rows with a column of either."""
    for item in data:
        array = np.asarray(_tokens(item))
        if array.ndim not in (1, 2) or not np.issubdtype(array.dtype, np.integer):
            raise EigentimeError(
                f"A stream must hold sequences (L,) or batches (n, L) of whole numbers, not {array.dtype} of shape "
                f"{array.shape}."
            )
        yield from array if array.ndim == 2 else [array]


def _tokens(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    if COLUMN not in item and len(item) != 1:
        raise EigentimeError(f"Of the columns {', '.join(map(str, item))} of the stream none is called {COLUMN}.")
    return item[COLUMN] if COLUMN in item else next(iter(item.values()))


class Reading:
    """A stream that is read on and on, from the start again where it ends; sequences are numbered as they come."""

    def __init__(self, data: Iterable[Any]) -> None:
        self.data, self._at, self._left = data, 0, iter(sequences(data))

    def rows(self, first: int, count: int) -> Integer[Tensor, "count length"]:
        """Sequences first … first+count-1; those before them are gone."""
        for _ in range(first - self._at):
            self._next()
        self._at = first + count
        return torch.from_numpy(np.stack([self._next() for _ in range(count)]))

    def _next(self) -> Integer[np.ndarray, " length"]:
        found = next(self._left, None)
        if found is None:
            self._left = iter(sequences(self.data))
            found = next(self._left, None)
        if found is None:
            raise EigentimeError("The stream of data has come to its end, and begins no second time.")
        return found
