"""An n-gram model of characters that judges samples: exact, and fast enough for every cell of a table."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Integer

Codes = Integer[np.ndarray, " k"]


@dataclass(frozen=True)
class Grams:
    """All strings of one length that occur, as numbers in base `size`, sorted, with their counts."""

    codes: Codes
    counts: Integer[np.ndarray, " k"]

    def count(self, codes: Integer[np.ndarray, "..."]) -> Integer[np.ndarray, "..."]:
        """How often each of these occurs."""
        place = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.counts[place], 0)

    def merged(self, codes: Codes) -> "Grams":
        """The same counts under other codes."""
        unique, inverse = np.unique(codes, return_inverse=True)
        return Grams(unique, np.bincount(inverse, weights=self.counts).astype(np.int64))


class CharacterModel:
    """An interpolated n-gram model (Witten–Bell): for a context h seen c(h) times before T(h) different symbols,

        p_k(y | h) = (c(h, y) + T(h)·p_{k-1}(y | h')) / (c(h) + T(h)),

    h' being h without its first symbol, and p_0 uniform. Every row sums to one.
    """

    def __init__(self, text: Integer[np.ndarray, " n"], size: int, order: int = 6) -> None:
        self.size, self.order = size, order
        text = np.asarray(text, dtype=np.int64)
        codes = np.zeros(len(text) - order + 1, dtype=np.int64)
        for k in range(order):
            codes = codes * size + text[k : len(text) - order + 1 + k]
        unique, counts = np.unique(codes, return_counts=True)
        self.grams = [Grams(unique, counts.astype(np.int64))]
        for k in range(order - 1, 0, -1):  # leave out the first symbol again and again
            longer = self.grams[0]
            self.grams.insert(0, longer.merged(longer.codes % size**k))
        self.followers = [Grams(*np.unique(grams.codes // size, return_counts=True)) for grams in self.grams]
        """For each length of context, how many different symbols follow it."""
        self.contexts = [grams.merged(grams.codes // size) for grams in self.grams]

    def log_probabilities(self, x: Integer[np.ndarray, "n length"]) -> Float[np.ndarray, "n length"]:
        """ln p(x_i | up to order - 1 symbols before it) at every place."""
        result = np.full(x.shape, 1.0 / self.size)
        x = np.asarray(x, dtype=np.int64)
        for k in range(self.order):
            context = np.zeros((x.shape[0], x.shape[1] - k), dtype=np.int64)
            for j in range(k):
                context = context * self.size + x[:, j : x.shape[1] - k + j]
            seen, kinds = self.contexts[k].count(context), self.followers[k].count(context)
            both = self.grams[k].count(context * self.size + x[:, k:])
            known = seen > 0
            mixed = (both + kinds * result[:, k:]) / np.maximum(seen + kinds, 1)
            result[:, k:] = np.where(known, mixed, result[:, k:])
        return np.asarray(np.log(result))

    def bits(self, x: Integer[np.ndarray, "n length"]) -> Float[np.ndarray, " n"]:
        """Bits a character of every sequence."""
        return np.asarray(-self.log_probabilities(x).mean(1) / np.log(2))
