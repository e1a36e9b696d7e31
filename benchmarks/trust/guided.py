"""Inputs for one kind of file that atheris chooses by the lines of code that they reach.

python benchmarks/trust/guided.py KIND RUNS OUT   fuzz.py calls it, in a process of its own
"""

import json
import random
import sys
import tempfile
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

with atheris.instrument_imports(include=["eigentime"]):
    import eigentime  # noqa: F401

from fuzz import WRONG, Found, Reader, kinds  # noqa: E402
from mutations import mutated  # noqa: E402
from watch import Watch  # noqa: E402


def main() -> None:
    """So many runs; what came of them is written after every hundred, since libFuzzer ends the process itself."""
    name, runs, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    kind, found, folder = kinds([name])[name], Found(), Path(tempfile.mkdtemp(dir="."))
    reader, (file, *_) = Reader(kind, Watch(), folder), list(kind.files)
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "valid").write_bytes(kind.files[file])

    def one(data: bytes) -> None:
        found.add(*reader.judged({**kind.files, file: data}), f"{kind.name}, guided {found.counts.total()}")
        done = found.counts.total()
        if done % 100 == 0 or done >= runs:
            raw = sum(found.counts[word] for word in WRONG)
            out.write_text(json.dumps({"runs": done, "raw": raw, **found.counts, "wrong": found.wrong}))

    def custom(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = mutated(data, rng) if rng.random() < 0.5 else atheris.Mutate(data, most)
        return bytes(changed[:most])

    options = [f"-runs={runs}", "-max_len=65536", "-timeout=30", "-rss_limit_mb=0", "-verbosity=0", str(corpus)]
    atheris.Setup([sys.argv[0], *options], one, custom_mutator=custom)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
