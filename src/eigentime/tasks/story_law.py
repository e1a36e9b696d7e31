"""The law of stories: a published Llama, at temperature 1, restricted to its most frequent tokens.

    p(x) = Π_i p(x_i | story, x_1 … x_{i-1}),  each factor renormalised over the tokens that are kept,

so that ln p of any sequence is exact, and so is everything that is said about data drawn from it. Written in plain
PyTorch, the head over kept tokens only and the cache made once: with transformers' Llama, with which the tests compare
it, drawing takes 1.7 times as long.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.numpy import save
from torch import Tensor

from eigentime.data import cache_folder
from eigentime.data.storyteller import STORY, Storyteller, storyteller
from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.models.zoo import FOLDER
from eigentime.process.randomness import Purpose, uniforms
from eigentime.reading import Unreadable, read_tensors

LENGTH = 128
BATCH = 256
"""Sequences that are drawn and kept together."""
KEPT = FOLDER / "stories-law" / "law.json"
EPSILON, ROTARY_BASE = 1e-5, 10_000.0


@dataclass(frozen=True)
class Drawn:
    """Sequences with what the law says of them."""

    tokens: Int[Tensor, "n length"]
    log_likelihood: Float[Tensor, " n"]
    entropy: Float[Tensor, " n"]
    """Σ_i H(x_i | x_1 … x_{i-1}) along each sequence; its mean is the entropy of the data, with less noise than that
    of -ln p."""


class StoryLaw:
    """An autoregressive law over `tokens`, indices into the storyteller's own."""

    def __init__(self, told: Storyteller, tokens: Int[np.ndarray, " n"], length: int = LENGTH) -> None:
        self.length, self.heads = length, told.heads
        self.layers, self.width = told.query.shape[:2]
        self.start = torch.from_numpy(told.embedding[STORY])
        self.embedding = torch.from_numpy(told.embedding[tokens])
        self.norm = torch.from_numpy(told.norm)
        self.norms = [
            (torch.from_numpy(a), torch.from_numpy(m)) for a, m in zip(told.attention_norm, told.mlp_norm, strict=True)
        ]
        self.qkv = [_transposed(*matrices) for matrices in zip(told.query, told.key, told.value, strict=True)]
        self.out = [_transposed(matrix) for matrix in told.out]
        self.gate_up = [_transposed(*matrices) for matrices in zip(told.gate, told.up, strict=True)]
        self.down = [_transposed(matrix) for matrix in told.down]
        head_width = self.width // self.heads
        rates = ROTARY_BASE ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
        self.rotation = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)

    @torch.no_grad()
    def draw(self, numbers: Float[Tensor, "b length"]) -> Drawn:
        """Sequences by inverse CDF, one uniform for each token."""
        b, length = numbers.shape
        shape = (b, self.heads, length, self.width // self.heads)
        caches = [(torch.empty(shape), torch.empty(shape)) for _ in range(self.layers)]
        tokens = torch.empty(b, length, dtype=torch.long)
        surprise, entropy = torch.zeros(2, b, dtype=torch.float64)
        inputs = self.start.expand(b, self.width)
        for position in range(length):
            logits = self._features(inputs[:, None], caches, position)[:, 0] @ self.embedding.T
            logs = logits.log_softmax(-1)
            law = logs.exp()
            cumulative = law.cumsum(-1, dtype=torch.float64)
            thresholds = numbers[:, position : position + 1] * cumulative[:, -1:]
            drawn = torch.searchsorted(cumulative, thresholds, right=True).clamp(max=law.shape[1] - 1)
            tokens[:, position] = drawn.squeeze(1)
            surprise -= logs.gather(1, drawn).squeeze(1)
            entropy -= (law * logs).sum(1)
            inputs = self.embedding[tokens[:, position]]
        return Drawn(tokens, -surprise, entropy)

    @torch.no_grad()
    def features(self, x: Int[Tensor, "b length"]) -> Float[Tensor, "b length width"]:
        """What the head sees at every token: a function of those before it."""
        inputs = torch.cat([self.start.expand(len(x), 1, self.width), self.embedding[x[:, :-1]]], 1)
        return self._features(inputs, None, 0)

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p(x), one pass for each sequence."""
        return self.token_logs(x).sum(1)

    def token_logs(self, x: Int[Tensor, "n length"]) -> Float[Tensor, "n length"]:
        """ln p(x_i | x_1 … x_{i-1}) of every token."""
        if x.ndim != 2 or not 1 <= x.shape[1] <= self.length:
            raise EigentimeError(f"Stories have up to {self.length} tokens; got shape {tuple(x.shape)}.")
        if len(x) and not 0 <= int(x.min()) <= int(x.max()) < len(self.embedding):
            raise EigentimeError(f"Tokens of stories lie in 0 … {len(self.embedding) - 1}; a mask has no likelihood.")
        parts = [x.new_zeros((0, x.shape[1]), dtype=torch.float64)]
        for part in x.long().split(32):
            logs = (self.features(part) @ self.embedding.T).log_softmax(-1)
            parts.append(logs.gather(-1, part[..., None]).squeeze(-1).double())
        return torch.cat(parts)

    def _features(
        self, h: Float[Tensor, "b n width"], caches: list[tuple[Tensor, Tensor]] | None, first: int
    ) -> Float[Tensor, "b n width"]:
        """Positions first … first + n - 1, after those whose keys and values are cached, or from the start."""
        b, n, width = h.shape
        rotation = self.rotation[first : first + n]
        for layer, (attention_norm, mlp_norm) in enumerate(self.norms):
            projected = F.rms_norm(h, (width,), attention_norm, EPSILON) @ self.qkv[layer]
            q, k, v = projected.view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            q, k = _rotated(q, rotation), _rotated(k, rotation)
            if caches is not None:
                keys, values = caches[layer]
                keys[:, :, first : first + n], values[:, :, first : first + n] = k, v
                k, v = keys[:, :, : first + n], values[:, :, : first + n]
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=caches is None)
            h = h + mixed.transpose(1, 2).reshape(b, n, width) @ self.out[layer]
            gate, up = (F.rms_norm(h, (width,), mlp_norm, EPSILON) @ self.gate_up[layer]).chunk(2, -1)
            h = h + (F.silu(gate) * up) @ self.down[layer]
        return F.rms_norm(h, (width,), self.norm, EPSILON)


def _transposed(*matrices: Float[np.ndarray, "out width"]) -> Float[Tensor, "width total"]:
    return torch.from_numpy(np.concatenate(matrices)).T.contiguous()


def _rotated(x: Float[Tensor, "b heads n d"], rotation: Tensor) -> Float[Tensor, "b heads n d"]:
    """Rotary positions of the interleaved kind: neighbours are the real and imaginary part of one number."""
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * rotation).flatten(-2)


class Stories:
    """The restricted law as the package describes it, and sequences drawn from it, kept in the cache folder.

    The description (which tokens are kept, how they are written, the entropy) comes with the package; the weights are
    fetched when they are first needed.
    """

    def __init__(self, path: Path = KEPT) -> None:
        content = path.read_bytes()
        self.about: dict[str, Any] = json.loads(content)
        self.pieces: list[str] = self.about["pieces"]
        self.size = len(self.pieces)

    @cached_property
    def law(self) -> StoryLaw:
        """The network, restricted."""
        return StoryLaw(storyteller(), np.array(self.about["tokens"]))

    @property
    def entropy(self) -> float:
        """H of a sequence in nats, measured once on more sequences than anyone draws again."""
        return float(self.about["entropy"]["mean"])

    def log_likelihood(self, x: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """ln p(x) of clean sequences."""
        return self.law.log_likelihood(x)

    def token_logs(self, x: Int[Tensor, "n length"]) -> Float[Tensor, "n length"]:
        """ln p of every token, given those before it."""
        return self.law.token_logs(x)

    def draw(self, count: int, seed: int = 0) -> Int[Tensor, "count length"]:
        """Sequences 0 … count-1 of a seed; different seeds are different data."""
        return self.drawn(count, seed).tokens

    def drawn(
        self, count: int, seed: int, advance: Callable[[int, int | None], None] = lambda done, total: None
    ) -> Drawn:
        """The same with what the law says of them. Every batch goes to the cache folder as soon as it is there."""
        folder = cache_folder() / "stories" / self.about["digest"] / str(seed)
        folder.mkdir(parents=True, exist_ok=True)
        batches = -(-count // BATCH)
        parts: dict[str, list[np.ndarray]] = {"tokens": [], "log_likelihood": [], "entropy": []}
        for number in range(batches):
            advance(min(count, number * BATCH), count)
            arrays = _kept_batch(folder / f"{number:05d}.safetensors", lambda: self._batch(seed, number))  # noqa: B023
            for name, part in parts.items():
                part.append(arrays[name])
        advance(count, count)
        tokens, log_likelihood, entropy = (np.concatenate(part)[:count] for part in parts.values())
        return Drawn(
            torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(log_likelihood), torch.from_numpy(entropy)
        )

    def _batch(self, seed: int, number: int) -> dict[str, np.ndarray]:
        numbers = uniforms(seed, Purpose.DATA, BATCH, LENGTH, first=number * BATCH)
        drawn = self.law.draw(numbers)
        return {
            "tokens": drawn.tokens.numpy().astype(np.uint16),
            "log_likelihood": drawn.log_likelihood.numpy(),
            "entropy": drawn.entropy.numpy(),
        }

    def text(self, x: Int[Tensor, "n length"]) -> list[str]:
        """Sequences as people read them; a new story inside one begins after an empty line, a mask shows as ░."""
        pieces = [*self.pieces, "░"]
        return ["".join(pieces[token] for token in row.tolist()).strip() for row in x]


def _kept_batch(path: Path, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """A batch from its file; where there is none, or no whole one, it is made and written."""
    try:
        return read_tensors(path)[0]
    except (Unreadable, OSError):
        arrays = make()
        write_atomically(path, save(arrays))
        return arrays


@cache
def stories() -> Stories:
    """The law that comes with the package."""
    return Stories()
