"""The exact law of a masked model's samples when the places of each step are known, by enumeration."""

from itertools import permutations

import numpy as np
from scipy.stats import chi2


def law_of_steps(joint, steps):
    """Π over steps k, Π over places i with steps[i] = k, of P(x_i | x at earlier steps and given places); given: -1.

    joint  (V,)*L, the data's law; the answer has the same shape and, where places are given, sums to one for each of
    their values.
    """
    law = np.ones_like(joint)
    for step in range(max(steps) + 1):
        known = [i for i, at in enumerate(steps) if at < step]
        for place in (i for i, at in enumerate(steps) if at == step):
            keep = {*known, place}
            together = joint.sum(tuple(i for i in range(joint.ndim) if i not in keep), keepdims=True)
            law = law * together / together.sum(place, keepdims=True)
    return law


def law_of_counts(joint, counts):
    """The same at random places: the mean over all orders."""
    stops = np.cumsum(counts)
    orders = list(permutations(range(joint.ndim)))
    steps = [np.searchsorted(stops, np.argsort(order), side="right") for order in orders]
    return sum(law_of_steps(joint, each) for each in steps) / len(orders)


def p_value(tokens, law):
    """Of Pearson's χ² test that rows of tokens (n, L) come from a law of shape (V,)*L; rare sequences are pooled."""
    seen = np.zeros(law.shape)
    np.add.at(seen, tuple(np.asarray(tokens).T), 1)
    hoped = law.ravel() * len(tokens)
    common = hoped >= 5
    seen, hoped = (np.append(each[common], each[~common].sum()) for each in (seen.ravel(), hoped))
    seen, hoped = seen[hoped > 0], hoped[hoped > 0]
    return chi2.sf(((seen - hoped) ** 2 / hoped).sum(), len(hoped) - 1)
