"""One seed, one result: the same samples again, with other numbers of threads, and from other batches. Only where a
network rounds otherwise may a draw turn, and how many do is counted.

python benchmarks/trust/splits.py     writes results/trust/splits.json
"""

import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from provenance import save  # noqa: E402

import eigentime as et  # noqa: E402

COUNT, STEPS, SEED, THREADS = 16, 8, 7, (1, 2)
MODELS = ("countdown-exact", "countdown", "countdown-uniform")
BATCHES = (1, 5, 16)


def drawn(name: str, batch: int, threads: int) -> np.ndarray:
    """Samples of a model in batches of one size."""
    torch.set_num_threads(threads)
    model = et.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = et.schedule("uniform", steps=STEPS, model=model)
        return et.sample(model, grid, COUNT, seed=SEED, batch_size=batch).numpy()


def elsewhere(name: str) -> np.ndarray:
    """The same in another process."""
    text = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import splits; import numpy as np; "
    text += f"np.save(sys.stdout.buffer, splits.drawn({name!r}, {BATCHES[-1]}, 1))"
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, env=dict(os.environ))
    return np.load(io.BytesIO(done.stdout))


def main() -> None:
    """All models and all changes."""
    rows = []
    for name in MODELS:
        first = drawn(name, BATCHES[-1], 1)
        changes = {"nothing": drawn(name, BATCHES[-1], 1), "another process": elsewhere(name)}
        changes |= {f"{threads} threads": drawn(name, BATCHES[-1], threads) for threads in THREADS[1:]}
        changes |= {f"batches of {batch}": drawn(name, batch, 1) for batch in BATCHES[:-1]}
        for change, tokens in changes.items():
            different = int((tokens != first).sum())
            rows.append({"model": name, "change": change, "tokens": first.size, "different": different})
            print(rows[-1], flush=True)
    save("trust/splits.json", {"rows": rows}, samples=COUNT, steps=STEPS, seed=SEED)
    again = [row for row in rows if row["change"] in ("nothing", "another process") and row["different"]]
    sys.exit(1 if again else 0)


if __name__ == "__main__":
    main()
