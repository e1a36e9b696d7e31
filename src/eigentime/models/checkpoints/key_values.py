"""Keys and values of tokens that are not computed again: two ways in which networks take them.

A network is asked for a window of its sequence. What attention needs of the tokens before and after it is handed in:
keys and values of every layer, tokens along the last axis but one. Published networks take them in one of two ways.
"""

import inspect
from abc import ABC, abstractmethod
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of every layer, (b, …, tokens, width)."""
Output = tuple[Float[Tensor, "b window d"], Layers]
"""The network's rows for a window, and the window's own keys and values."""
KEPT_BYTES = 2**31
"""What may be kept of all sequences together; what does not fit is computed again."""


def between(layers: Layers, first: int, last: int | None) -> Layers:
    """Those of tokens first … last-1."""
    return [(keys[..., first:last, :], values[..., first:last, :]) for keys, values in layers]


def joined(parts: list[Layers], axis: int = -2) -> Layers:
    """Parts one after the other: tokens, or with axis 0 sequences."""
    return [
        (torch.cat([keys for keys, _ in layer], axis), torch.cat([values for _, values in layer], axis))
        for layer in zip(*parts, strict=True)
    ]


class Taking(ABC):
    """How a network takes keys and values."""

    @abstractmethod
    def ask(
        self, network: Any, x: Int[Tensor, "b window"], before: Layers, after: Layers, told: dict[str, Any]
    ) -> Output:
        """Rows for the window x, which sees also what is kept of the tokens before and after it; either may be
        empty."""


class Objects(Taking):
    """As transformers has it: `past_key_values` is an object whose `update` is called with every layer's new keys and
    values and answers with all that attention is to see (LLaDA2, SDAR, Dream)."""

    def __init__(self, extra: dict[str, Any]) -> None:
        self.extra = extra

    def ask(
        self, network: Any, x: Int[Tensor, "b window"], before: Layers, after: Layers, told: dict[str, Any]
    ) -> Output:
        kept = _spliced()(before, after)
        rows = network(input_ids=x, past_key_values=kept, use_cache=True, **told, **self.extra).logits
        return rows, [kept.fresh[layer] for layer in sorted(kept.fresh)]


class PairLists(Taking):
    """As Fast-dLLM has it: a list of pairs; new ones are put behind them, or with `replace_position` in their midst, in
    place, so that the network gets a copy."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def ask(
        self, network: Any, x: Int[Tensor, "b window"], before: Layers, after: Layers, told: dict[str, Any]
    ) -> Output:
        first, width = (before[0][0].shape[-2] if before else 0), x.shape[1]
        handed: dict[str, Any] = {"use_cache": True, **told}
        if after:
            room = [(keys[..., :1, :], values[..., :1, :]) for keys, values in after]
            handed["past_key_values"] = joined([*([before] if before else []), *[room] * width, after])
            total = handed["past_key_values"][0][0].shape[-2]
            inside = (torch.arange(total) >= first) & (torch.arange(total) < first + width)
            # they ask where it is True in the whole batch at once, so that one sequence must speak for all
            handed["replace_position"] = inside[None].to(x.device)
            handed |= {"dual_cache": True} if "dual_cache" in self.names else {}
        elif before:
            handed["past_key_values"] = before
        answer = network(input_ids=x, **handed)
        return answer.logits, between(list(answer.past_key_values), first, first + width)


def taking(network: Any, extra: dict[str, Any]) -> Taking | None:
    """How a network takes keys and values, read off its arguments; None where it takes none."""
    names = set(inspect.signature(network.forward).parameters)
    if "past_key_values" not in names:
        return None
    return PairLists(names) if "replace_position" in names else Objects(extra)


@cache
def _spliced() -> Any:
    """The class of objects that transformers' networks take; made late, because transformers is optional."""
    from transformers.cache_utils import Cache

    class Spliced(Cache):
        """Answers with what is kept before, what is new, and what is kept after; keeps nothing itself."""

        def __init__(self, before: Layers, after: Layers) -> None:
            super().__init__(layers=[])
            self.before, self.after = before, after
            self.fresh: dict[int, tuple[Tensor, Tensor]] = {}

        def update(
            self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
        ) -> tuple[Tensor, Tensor]:
            self.fresh[layer_idx] = (key_states, value_states)
            kept = [part[layer_idx : layer_idx + 1] for part in (self.before, self.after)]
            return joined([part for part in (kept[0], [self.fresh[layer_idx]], kept[1]) if part])[0]

        def get_seq_length(self, layer_idx: int = 0) -> int:
            return self.before[0][0].shape[-2] if self.before else 0

        def __len__(self) -> int:
            return len(self.fresh)

    return Spliced


class Kept:
    """Keys and values of sequences, found by their tokens. Only those of one place and of the one before it stay."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self.most = most
        self.clear()

    def clear(self) -> None:
        """Forget everything: weights that change make other keys."""
        self.bytes, self._rows = 0, dict[Any, dict[bytes, Layers]]()
        self._last: tuple[Any, list[bytes], Layers] | None = None

    @property
    def places(self) -> list[Any]:
        """Of which something is kept, the newest last."""
        return list(self._rows)

    def get(self, place: Any, x: Int[Tensor, "b n"]) -> tuple[Layers | None, list[int]]:
        """Those of sequences x at a place, where all are kept; else the numbers of those that are not."""
        names = [row.tobytes() for row in x.cpu().numpy()]
        if self._last is not None and self._last[0] == place and self._last[1] == names:
            return self._last[2], []
        known = self._rows.get(place, {})
        missing = [number for number, name in enumerate(names) if name not in known]
        if missing:
            return None, missing
        self._last = (place, names, joined([known[name] for name in names], 0))
        return self._last[2], []

    def put(self, place: Any, x: Int[Tensor, "b n"], layers: Layers) -> None:
        """Keep those of sequences x, as far as there is room; other places make room."""
        known = self._rows.setdefault(place, {})
        for old in self.places[:-2]:
            self._drop(old)
        for number, row in enumerate(x.cpu().numpy()):
            one = [(keys[number : number + 1], values[number : number + 1]) for keys, values in layers]
            while self.bytes + _size(one) > self.most and self.places[0] != place:
                self._drop(self.places[0])
            if row.tobytes() not in known and self.bytes + _size(one) <= self.most:
                known[row.tobytes()] = one
                self.bytes += _size(one)

    def _drop(self, place: Any) -> None:
        self.bytes -= sum(_size(layers) for layers in self._rows.pop(place).values())


def _size(layers: Layers) -> int:
    return sum(part.numel() * part.element_size() for layer in layers for part in layer)
