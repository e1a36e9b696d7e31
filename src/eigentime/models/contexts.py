"""What an encoder made of contexts, kept: each is encoded once, however often it is asked about."""

from collections import OrderedDict
from copy import copy
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

ROOM = 2**31
"""Bytes that are kept; the contexts that were not asked for longest go first."""


class Contexts:
    """Key-value caches of a causal encoder of transformers, one for each context, put together for a batch.

    A context that continues a known one, such as a prompt and the first of its canvases, is encoded from there on.
    """

    def __init__(self, encoder: Any, config: Any, room: int = ROOM) -> None:
        self.encoder, self.config, self.room = encoder, config, room
        self.encoded = 0
        """Tokens that went through the encoder so far."""
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._batch: tuple[bytes, Any] = (b"", None)

    def forget(self) -> None:
        """Everything, for instance because the weights have changed."""
        self._kept.clear()
        self._batch = (b"", None)

    def of(self, tokens: Int[Tensor, "b p"], device: torch.device) -> Any:
        """The cache of a batch of contexts of one length."""
        tokens = tokens.cpu().long().contiguous()
        whole = tokens.numpy().tobytes()
        if self._batch[0] != whole or self._batch[1] is None:
            keys = [row.numpy().tobytes() for row in tokens]
            new = {key: row for key, row in zip(keys, tokens, strict=True) if key not in self._kept}
            rows = self._encode(new, device) if new else {}
            self._batch = (whole, _joined([rows[key] if key in rows else self._kept[key] for key in keys]))
            self._keep(rows, keys)
        return self._batch[1]

    def _encode(self, new: dict[bytes, Int[Tensor, " p"]], device: torch.device) -> dict[bytes, Any]:
        """Caches of contexts that are not known, all at once where as much of each is."""
        from transformers import DynamicCache

        found: dict[bytes, Any] = {}
        starts = [self._known(key) for key in new]
        for known in sorted({len(start) for start in starts}):
            keys = [key for key, start in zip(new, starts, strict=True) if len(start) == known]
            rows = torch.stack([new[key] for key in keys])
            past = _joined([self._kept[key[:known]] for key in keys]) if known else DynamicCache(config=self.config)
            done = known // rows.element_size()
            positions = torch.arange(done, rows.shape[1], device=device)[None]
            with torch.no_grad():
                self.encoder(input_ids=rows[:, done:].to(device), past_key_values=past, position_ids=positions)
            self.encoded += rows[:, done:].numel()
            found |= {key: _taken(past, row) for row, key in enumerate(keys)}
        return found

    def _known(self, key: bytes) -> bytes:
        """The longest beginning of a context that has been encoded."""
        return max((kept for kept in self._kept if len(kept) < len(key) and key.startswith(kept)), key=len, default=b"")

    def _keep(self, rows: dict[bytes, Any], asked: list[bytes]) -> None:
        self._kept |= rows
        for key in asked:
            self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(map(_bytes, self._kept.values())) > self.room:
            self._kept.popitem(last=False)


def _joined(rows: list[Any]) -> Any:
    """Caches of single contexts as one of a batch."""
    return _rebuilt(rows[0], lambda name, layer: torch.cat([getattr(row.layers[layer], name) for row in rows]))


def _taken(cache: Any, row: int) -> Any:
    """The cache of one context of a batch."""
    return _rebuilt(cache, lambda name, layer: getattr(cache.layers[layer], name)[row : row + 1].clone())


def _rebuilt(like: Any, make: Any) -> Any:
    """A cache as long as another, with keys and values of its own."""
    cache = copy(like)
    cache.layers = [copy(layer) for layer in like.layers]
    for number, layer in enumerate(cache.layers):
        layer.keys, layer.values = make("keys", number), make("values", number)
    return cache


def _bytes(cache: Any) -> int:
    return sum(part.numel() * part.element_size() for layer in cache.layers for part in (layer.keys, layer.values))
