"""Every sampler that teacher forcing covers, against a walk of its own over all sequences of a table (V = 3, L = 4).

The rules are written down again here, from their definitions, in plain numpy: law, divergences in both directions and
frequencies have to agree, whole and block by block, as they are and at another temperature.
"""

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
import torch

import eigentime as et
from laws import law_of_counts, law_of_steps, p_value
from worlds import random_table, states

MODEL = random_table(3, 4, concentration=0.3)
JOINT = MODEL.law.numpy().reshape((3,) * 4)
X = torch.from_numpy(states(3, 4))
GRIDS = {4: et.schedule([1.0, 0.5, 0.0], process=MODEL.process), 2: et.schedule([1.0, 0.0], process=MODEL.process)}
"""By how many tokens are generated at a time: all, or a block of two."""


def posterior(known, place):
    """P(x_place | known values), from the joint by sums."""
    index = tuple(known.get(i, slice(None)) for i in range(4))
    left = [i for i in range(4) if i not in known]
    row = JOINT[index].sum(tuple(k for k, i in enumerate(left) if i != place))
    return row / row.sum()


def entropy(row):
    return -(row[row > 0] * np.log(row[row > 0])).sum()


def by_count(score):
    """Two places at a time, those of the highest score."""

    def pick(rows, memory, length):
        ordered = sorted(rows, key=lambda i: -score(rows[i]))
        return ordered[:2]

    return pick


def entropy_bounded(rows, memory, length):
    ordered = sorted(rows, key=lambda i: entropy(rows[i]))
    sums = np.cumsum([entropy(rows[i]) for i in ordered])
    return [i for k, i in enumerate(ordered) if k == 0 or sums[k - 1] <= 1.5]


def surest(rows):
    return max(rows, key=lambda i: rows[i].max())


def threshold(rows, memory, length):
    return [i for i in rows if rows[i].max() >= 0.5] or [surest(rows)]


def prefix(rows, memory, length):
    ordered, chosen = sorted(rows, key=lambda i: -rows[i].max()), []
    for n, i in enumerate(ordered, 1):
        if (n + 1) * (1 - rows[i].max()) >= 1.5:
            break
        chosen.append(i)
    return chosen or ordered[:1]


def klass(rows, memory, length):
    before, calm = memory.get("before"), memory.setdefault("calm", {})
    for i, row in rows.items():
        if before is not None:
            seen = row > 0
            moved = (row[seen] * np.log(row[seen] / before[i][seen])).sum()
            calm[i] = calm.get(i, 0) + 1 if moved < 0.5 else 0
    memory["before"] = rows
    return [i for i in rows if rows[i].max() >= 0.4 and calm.get(i, 0) >= 1] or [surest(rows)]


def order_bounded(rows, memory, length):
    ordered = [i for i in (0, 2, 1, 3) if i in rows] if length == 4 else sorted(rows)
    chosen, sums, most = [], 0.0, 0.0
    for i in ordered:
        sums, most = sums + entropy(rows[i]), max(most, entropy(rows[i]))
        if sums - most > 1.0:
            break
        chosen.append(i)
    return chosen


def apart(rows, memory, length):
    felt, chosen = dict.fromkeys(rows, 0.0), []
    for i in sorted(rows, key=lambda i: entropy(rows[i])):
        if felt[i] <= 0.25:
            chosen.append(i)
            for j in rows:
                felt[j] += min((3.0, 0.3, 0.2, 0.1)[abs(i - j)], entropy(rows[i]), entropy(rows[j]))
    return chosen


def second(row):
    return np.sort(row)[-2]


RULES = {
    "confidence": (et.Confidence(), by_count(np.max)),
    "margin": (et.Margin(), by_count(lambda row: row.max() - second(row))),
    "entropy": (et.LowestEntropy(), by_count(lambda row: -entropy(row))),
    "entropy-bounded": (et.EntropyBounded(1.5), entropy_bounded),
    "threshold": (et.Threshold(0.5), threshold),
    "prefix": (et.Prefix(1.5), prefix),
    "klass": (et.Klass(0.4, 0.5, 1), klass),
    "order-bounded": (et.OrderBounded([0, 2, 1, 3], 1.0), order_bounded),
    "apart": (et.Apart([3.0, 0.3, 0.2, 0.1], 0.25), apart),
}


def shaped(row, temperature):
    sharp = row ** (1 / temperature)
    return sharp / sharp.sum()


def walked(x, pick, length, temperature):
    """q(x), and p(x) of the same sets one token at a time, within a set by position."""
    known, alone = {}, {}
    together, single = 1.0, 1.0
    for start in range(0, 4, length):
        memory = {}
        while len(known) < start + length:
            rows = {i: posterior(known, i) for i in range(start, start + length) if i not in known}
            chosen = sorted(pick(rows, memory, length))
            for i in chosen:
                together *= shaped(rows[i], temperature)[x[i]]
                single *= shaped(posterior(alone, i), temperature)[x[i]]
                alone[i] = x[i]
            known |= {i: x[i] for i in chosen}
    return together, single


@cache
def laws(pick, length, temperature):
    """Of all sequences, in the order of `X`."""
    return np.array([walked(x, pick, length, temperature) for x in product(range(3), repeat=4)]).T


def kl(p, q):
    seen = p > 0
    return (p[seen] * np.log(p[seen] / q[seen])).sum()


@pytest.mark.parametrize(("length", "temperature"), [(4, 1.0), (4, 0.6), (2, 0.6)])
@pytest.mark.parametrize("name", RULES)
def test_teacher_forcing_finds_the_law_of_a_walk_written_down_again(name, length, temperature):
    sampler, pick = RULES[name]
    if name == "order-bounded" and length == 2:
        sampler = et.OrderBounded("raster", 1.0)
    planned = GRIDS[length] if sampler.scheduled else None
    shaping = et.Shaping(temperature)
    blocks = None if length == 4 else length
    q, single = laws(pick, length, temperature)
    options = {"block_length": blocks, "shaping": shaping, "references": 4}
    found = et.nll(MODEL, X, sampler, planned, **options)
    assert q.sum() == pytest.approx(1.0, abs=1e-9) and found.exact
    np.testing.assert_allclose(np.exp(-found.nats.values), q, atol=1e-9)
    np.testing.assert_allclose(np.exp(-found.one_at_a_time.values), single, atol=1e-9)
    p = JOINT.ravel()
    forward = (p * found.nats.values).sum() - MODEL.entropy
    assert forward == pytest.approx(kl(p, q), abs=1e-9)
    assert forward > 1e-3 or (length == 2 and name in ("klass", "apart")), "they take one token at a time there"
    # the other direction, from one token of each sample and from all of them
    truth = kl(q, single)
    for references, samples in ((1, 320), (4, 64)):
        options = {"block_length": blocks, "shaping": shaping, "references": references}
        backward = et.reverse_kl(MODEL, sampler, planned, samples=samples, seed=5, **options)
        assert abs(backward.mean - truth) < 4 * backward.stderr + 1e-9


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("name", RULES)
def test_samples_come_as_often_as_the_law_says_and_know_it(name, temperature):
    sampler, pick = RULES[name]
    planned, shaping = GRIDS[4] if sampler.scheduled else None, et.Shaping(temperature)
    drawn = et.sample(MODEL, planned, 20_000, sampler=sampler, shaping=shaping, seed=3)
    q = laws(pick, 4, temperature)[0]
    assert p_value(drawn, q.reshape(JOINT.shape)) > 1e-4
    index = (drawn * torch.tensor([27, 9, 3, 1])).sum(1)
    np.testing.assert_allclose(drawn.log_q, np.log(q)[index], atol=1e-9)


@pytest.mark.parametrize("counts", [(2, 2), (1, 3)])
def test_where_chance_chooses_the_numbers_are_bounds_of_known_size(counts):
    """`counted` reveals these numbers at random places: on average over orders, forward and reverse."""
    grid = et.schedule([1.0, 1 - counts[0] / 4, 0.0], process=MODEL.process)
    p, mixture = JOINT.ravel(), law_of_counts(JOINT, counts).ravel()
    each = [
        law_of_steps(JOINT, list(np.searchsorted(np.cumsum(counts), np.argsort(order), side="right"))).ravel()
        for order in permutations(range(4))
    ]
    x = MODEL.draw(4000, 1)
    found = et.nll(MODEL, x, "counted", grid, sequences=len(x), references=1)
    forward, backward = (
        np.mean([kl(*ways) for ways in pairs]) for pairs in (((p, q) for q in each), ((q, p) for q in each))
    )
    assert not found.exact and abs(found.excess.mean - forward) < 4 * found.excess.stderr
    assert forward >= kl(p, mixture) - 1e-12
    reverse = et.reverse_kl(MODEL, "counted", grid, samples=4000, references=1, seed=2)
    assert abs(reverse.mean - backward) < 4 * reverse.stderr and backward >= kl(mixture, p)
    drawn = et.sample(MODEL, grid, 20_000, sampler="counted", seed=4)
    assert p_value(drawn, mixture.reshape(JOINT.shape)) > 1e-4
