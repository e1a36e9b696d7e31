"""How much places tell of each other, place by place: reveal one token, and see whose entropy falls.

With everything else masked, D_ij = E[H(x_j) - H(x_j | x_i)]: for an exact model the mutual information of two tokens.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from eigentime.ledger import Rows
from eigentime.measure.levels import Source
from eigentime.measure.masked import MASKED_SUMS, masked_values
from eigentime.orders import offsets

ENTROPY = MASKED_SUMS.index("entropy")
LEAST_SEQUENCES = 2
"""From one sequence nobody can tell how much sequences differ."""

Table = Float[np.ndarray, "length length"]


def measure_pairs(source: Source, budget: int, shape: tuple[int, ...], skipped: int = 0) -> tuple[Table, int]:
    """D (L, L), and the evaluations it took: one per free token and sequence, of which there are at least two.

    The first sequences are `skipped`, so that, where data suffice, an order made of D is certified on others. What few
    sequences leave uncertain is mended by `shrunk`: tokens are the cells of a grid of this shape.
    """
    sums, spent = pair_sums(source, skipped, pair_sequences(source, budget))
    return pairs_of(sums, shape), spent


def pair_sequences(source: Source, budget: int) -> int:
    """How many sequences a budget is for."""
    return max(LEAST_SEQUENCES, budget // int(source.free))


def pairs_of(sums: Float[np.ndarray, "3 length length"], shape: tuple[int, ...]) -> Table:
    """D of sums over sequences: of what a known token takes, of its squares, and how often that was seen."""
    total, squares, number = sums
    mean = total / np.maximum(number, 1)
    variance = np.maximum(squares / np.maximum(number, 1) - mean**2, 0.0) / np.maximum(number - 1, 1)
    return shrunk(mean, variance, number > 1, shape)


def pair_sums(source: Source, skipped: int, sequences: int) -> tuple[Float[np.ndarray, "3 length length"], int]:
    """What `pairs_of` is made of, for so many sequences after those that are skipped, and the evaluations it took."""
    model, count, length = source.model, int(source.free), source.data.shape[1]
    plain = source.cond is None and not bool(source.fixed.any())
    sums, squares, number = (np.zeros((length, length)) for _ in range(3))

    def entropies(first: int, many: int, known: int) -> tuple[np.ndarray, np.ndarray]:
        """Of rows (sequence, free place), `known` being 1; or of sequences of which nothing is known."""
        rows = torch.arange(first, first + many)
        at = rows // count if known else rows
        x0, fixed, cond = source.rows(skipped + int(at[0]), int(at[-1] - at[0]) + 1)
        within = at - at[0]
        x0, fixed, cond = x0[within], fixed[within], None if cond is None else cond[within]
        place = _free_place(fixed, rows % count)
        hidden = ~fixed
        if known:
            hidden[torch.arange(many), place] = False
        t = torch.full((many,), model.process.noise.time_of_alpha(known / count).item(), dtype=torch.float64)
        x = x0.masked_fill(hidden, model.process.mask)
        found = masked_values(model, x, x0, t, cond, shared=plain and not known)[..., ENTROPY]
        return np.where(hidden.numpy(), found, np.nan), place.numpy()

    def measured(known: int) -> Rows:
        def work(first: int, many: int) -> Rows:
            found, place = entropies(first, many, known)
            return {"entropies": found, "place": place}

        rows, name = (sequences * count, "one token known") if known else (sequences, "nothing known of pairs")
        return source.ledger.rows(f"{name} after {skipped}", 0, rows, source.batch, work)

    before, after = measured(0)["entropies"], measured(1)
    drop = before[np.arange(sequences * count) // count] - after["entropies"]
    seen = np.isfinite(drop)
    drop = np.where(seen, drop, 0.0)
    for into, values in ((sums, drop), (squares, drop**2), (number, seen)):
        np.add.at(into, after["place"], values)
    spent = sequences * count + (1 if plain else sequences)
    return np.stack([sums, squares, number]), spent


def shrunk(mean: Table, variance: Table, measured: np.ndarray, shape: tuple[int, ...]) -> Table:
    """Each pair drawn towards the average of the pairs at the same offset, the more the less their differences exceed
    what chance makes of them (empirical Bayes): D_d + (D - D_d)·max(0, 1 - noise_d/spread_d), symmetric.

    Where all places are alike that leaves the dependence by offset, with its little noise; where they are not, it
    leaves what was measured.
    """
    measured = measured & ~np.eye(len(mean), dtype=bool)
    at, size = offsets(shape)[measured], int(np.prod(shape))

    def average(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.asarray((np.bincount(at, values, size) / np.maximum(np.bincount(at, minlength=size), 1))[at])

    centre = average(mean[measured])
    apart = mean[measured] - centre
    spread, noise = average(apart**2), average(variance[measured])
    weight = np.clip(1 - noise / np.maximum(spread, 1e-30), 0.0, 1.0)
    table = np.zeros_like(mean)
    table[measured] = centre + weight * apart
    return np.asarray(np.maximum((table + table.T) / 2, 0.0))


def _free_place(fixed: Tensor, which: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The place of each sequence's `which`-th free token."""
    places: Tensor = fixed.long().argsort(dim=1, stable=True)[torch.arange(len(fixed)), which]
    return places
