"""The law of draws from a vocabulary of 131,072 with a tail of tiny probabilities: eleven million of them.

python benchmarks/draws.py      writes results/bench/draws.json; ten minutes

64 rows in single and in half precision, many uniforms each; the truth is the row normalised in double precision, cells
that expect fewer than 5 draws are pooled, and the p-values of the rows are joined by Fisher's method.
"""

import numpy as np
import torch
from provenance import save
from scipy.stats import chi2, kstest

from eigentime.process.drawing import draw
from eigentime.process.randomness import Purpose, uniforms

ROWS, SIZE, PART, SEED = 64, 131_072, 3_125, 7
EACH = {torch.float32: 156_250, torch.float16: 15_625}
"""Draws per row; CPUs add up half precision slowly, and no network of ours hands it out."""
LIKELY = 40


def long_tailed(row: int) -> torch.Tensor:
    """Forty likely tokens anywhere, the others of probability 1e-9 to 1e-5."""
    rng = np.random.default_rng((SEED, row))
    logits = rng.normal(0, 1, SIZE) - 14
    logits[rng.choice(SIZE, LIKELY, replace=False)] += np.linspace(14, 2, LIKELY)
    return torch.from_numpy(logits).softmax(-1)


def p_value(row: int, dtype: torch.dtype) -> float:
    """Chi-square of one row's draws."""
    exact = long_tailed(row)
    law = (exact / exact.max()).to(dtype)
    truth = (law.double() / law.double().sum()).numpy()
    counts, each = np.zeros(SIZE), EACH[dtype]
    for first in range(0, each, PART):
        u = uniforms(SEED, Purpose.DRAW, PART, 1, step=row, first=first).squeeze(1)
        counts += np.bincount(draw(law.expand(PART, -1), u).numpy(), minlength=SIZE)
    assert not counts[truth == 0].any(), "a token without probability was drawn"
    few = each * truth < 5
    observed, expected = (np.append(one[~few], one[few].sum()) for one in (counts, each * truth))
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def main() -> None:
    """Both precisions."""
    results = {}
    for dtype in (torch.float32, torch.float16):
        values = np.array([p_value(row, dtype) for row in range(ROWS)])
        joined = float(chi2.sf(-2 * np.log(values).sum(), 2 * ROWS))
        name = str(dtype).removeprefix("torch.")
        results[name] = {
            "draws": ROWS * EACH[dtype],
            "p": joined,
            "least_p": values.min(),
            "p_uniform": kstest(values, "uniform").pvalue,
        }
        print(name, results[name], flush=True)
    save("bench/draws.json", {"rows": results}, size=SIZE, seed=SEED)


if __name__ == "__main__":
    main()
