"""How many evaluations a strategy saves over uniform steps at equal quality."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from eigentime.report.rows import Row


def speedups(rows: Sequence[Row], metric: str, seed: int, draws: int = 400) -> list[dict[str, Any]]:
    """How many evaluations uniform steps need for what a strategy reaches with `steps`; lower must be better.

    Read off uniform's own curve, log against log, with the error bars of both carried along by resampling. Nothing
    without uniform's rows.
    """
    rng = np.random.default_rng(seed)
    uniform = sorted((row for row in rows if row["strategy"] == "uniform"), key=lambda row: row["steps"])

    if not uniform:
        return []

    def drawn(row: Row) -> np.ndarray:
        value = row["metrics"][metric]
        return np.log(np.maximum(rng.normal(value["mean"], value["stderr"], draws), 1e-6))

    nfe, curves = np.log([row["steps"] for row in uniform]), np.stack([drawn(row) for row in uniform], 1)
    found = []
    for row in rows:
        if row["strategy"] == "uniform":
            continue
        equal = [
            np.exp(np.interp(-value, -np.minimum.accumulate(curve), nfe))
            for value, curve in zip(drawn(row), curves, strict=True)
        ]
        ratio = np.array(equal) / row["steps"]
        found.append(
            {
                "strategy": row["strategy"],
                "steps": row["steps"],
                "uniform_steps": {"mean": float(np.mean(equal)), "stderr": float(np.std(equal))},
                "ratio": {"mean": float(ratio.mean()), "stderr": float(ratio.std())},
                "beyond": bool(np.mean(np.log(equal) > nfe[-1] - 1e-9) > 0.5),
            }
        )
    return found
