"""Valid files of every kind that eigentime reads, changed a little, more than 100,000 times: each must be refused with
one sentence or give an object; with a checksum, only an equal one. Nothing may run, hang, fill the memory, or leave the
folder of the files.

python benchmarks/trust/fuzz.py                writes results/trust/fuzz.json, kind by kind: an interrupted run goes on
python benchmarks/trust/fuzz.py --inputs 500   another number of inputs of each kind, printed as JSON and not written
"""

import argparse
import contextlib
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import torch  # noqa: E402
from crafted import crafted  # noqa: E402
from mutations import mutated  # noqa: E402
from provenance import ROOT, load, save  # noqa: E402
from readers import Files, Kind, kinds  # noqa: E402
from watch import MEGABYTES, Hang, Watch, peak  # noqa: E402

import eigentime as et  # noqa: E402

INPUTS, GUIDED, SEED = 5500, 4000, 0
"""Changed files of each kind, inputs that coverage guides for each of the kinds of `GUIDED_KINDS`, and their seed."""
GUIDED_KINDS = (
    "clock",
    "schedule",
    "plan",
    "sampler with a plan",
    "settings of a plan",
    "array",
    "pickle of other classes",
)
LONGEST = 600
ROOM = 6 * 2**30
"""Bytes of address space beside what the campaign takes itself, so that a blow-up does not take the machine with it."""
WRONG = ("raw", "hang", "memory", "code", "escape", "different", "untidy")


@dataclass
class Found:
    """What came of the inputs of a kind."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, verdict: str, detail: str, what: str) -> None:
        """One input more."""
        self.counts[verdict] += 1
        if verdict in WRONG and len(self.wrong) < 20:
            self.wrong.append(f"{verdict}: {what}: {detail[:300]}")


class Reader:
    """Reads files of one kind under watch."""

    def __init__(self, kind: Kind, watch: Watch, folder: Path) -> None:
        self.kind, self.watch, self.folder = kind, watch, folder
        for _ in range(2):  # the first time imports what it needs
            self.good = self._read(kind.files)

    def _read(self, files: Files) -> str:
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            return self.kind.says(self.kind.read(self.folder))

    def judged(self, files: Files) -> tuple[str, str]:
        """What comes of reading these files: a word and a detail."""
        before = peak(anew=True)
        try:
            with self.watch.over(self.folder):
                said = self._read(files)
            found = ("equal", "") if said == self.good else self._changed(files)
        except et.EigentimeError as error:
            found = _sentence(str(error))
        except ValueError as error:  # of the readers that others make sentences of
            found = _sentence(str(error)) if type(error).__name__ == "Unreadable" else ("raw", f"ValueError: {error}")
        except Hang:
            found = "hang", "took too long"
        except BaseException as error:
            found = "raw", f"{type(error).__name__}: {error}"
        if self.watch.seen:
            return self.watch.seen[0].split(":")[0], self.watch.seen[0]
        if peak() - before > MEGABYTES:
            return "memory", f"{peak() - before} MB"
        return found

    def _changed(self, files: Files) -> tuple[str, str]:
        """Another object is right only where no checksum says what it was."""
        whole = all(_seals(content) >= _seals(self.kind.files[name]) for name, content in files.items())
        return ("different", "") if self.kind.sealed and whole else ("changed", "")


def _seals(content: bytes) -> int:
    """How many checksums a file names."""
    return len(re.findall(rb'sha256[\\":]', content))


def _sentence(message: str) -> tuple[str, str]:
    tidy = message and "\n" not in message and len(message) <= LONGEST
    return ("refused", message) if tidy else ("untidy", message)


def campaign(kind: Kind, watch: Watch, inputs: int, seed: int) -> Found:
    """So many changed files of a kind, and the crafted ones."""
    found, rng = Found(), random.Random(f"{kind.name} {seed}")
    with tempfile.TemporaryDirectory() as name:
        reader = Reader(kind, watch, Path(name))
        names = list(kind.files)
        for number in range(round(inputs * kind.share)):
            changed = rng.choice(names)
            files = {**kind.files, changed: mutated(kind.files[changed], rng)}
            found.add(*reader.judged(files), f"{kind.name} {number}")
        for what, changed, content in crafted(kind.files):
            found.add(*reader.judged({**kind.files, changed: content}), f"{kind.name}, {what}")
    return found


def guided(kind: str, runs: int) -> dict[str, Any] | None:
    """Inputs that atheris chooses by the lines of code that they reach; None where it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        command = [sys.executable, str(Path(__file__).parent / "guided.py"), kind, str(runs), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if not out.exists():
            missing = "No module named 'atheris'" in done.stderr
            return None if missing else {"runs": 0, "raw": 1, "wrong": [done.stderr[-300:]]}
        content: dict[str, Any] = json.loads(out.read_text())
        return content


def limit_memory() -> None:
    """Refuse more address space than `ROOM` beside what is there."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def total(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all kinds."""
    words = ("inputs", "refused", "equal", "changed", *WRONG)
    return {word: sum(each.get(word, 0) for each in found.values()) for word in words}


def main() -> None:
    """All kinds, or what is missing of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--kinds", help="only these, separated by commas")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="Begin no kind after that; the next call does."
    )
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    torch.set_num_threads(1)
    path, settings = ROOT / "results" / "trust" / "fuzz.json", {"inputs": INPUTS, "guided": GUIDED, "seed": SEED}
    content: dict[str, Any] = {"kinds": {}, "guided": {}}
    before = load("trust/fuzz.json") if asked.inputs is None and path.exists() else {}
    if before.get("provenance", {}).get("settings") == settings and not before.get("complete"):
        content = before
    watch, began = Watch(), time.perf_counter()
    made = kinds(asked.kinds.split(",") if asked.kinds else None)
    limit_memory()
    for name in made:
        if name in content["kinds"]:
            continue
        if time.monotonic() > until:
            sys.exit(3)
        start = time.perf_counter()
        found = campaign(made[name], watch, asked.inputs or INPUTS, SEED)
        counts = {"inputs": found.counts.total(), **found.counts, "wrong": found.wrong}
        content["kinds"][name] = {**counts, "seconds": round(time.perf_counter() - start, 1)}
        print(name, content["kinds"][name], flush=True, file=sys.stderr)
        if asked.inputs is None:
            save("trust/fuzz.json", {**content, "complete": False}, **settings)
    for name in GUIDED_KINDS if asked.inputs is None and not asked.kinds else ():
        if time.monotonic() > until:
            sys.exit(3)
        if name not in content["guided"]:
            content["guided"][name] = guided(name, GUIDED)
            print(name, content["guided"][name], flush=True, file=sys.stderr)
            save("trust/fuzz.json", {**content, "complete": False}, **settings)
    content["total"] = total(content["kinds"])
    steered = [each for each in content["guided"].values() if each is not None]
    content["total"]["guided_inputs"] = sum(each["runs"] for each in steered)
    content["total"]["guided_raw"] = sum(each["raw"] for each in steered)
    print(
        json.dumps(
            {**content["total"], "wrong": [line for each in content["kinds"].values() for line in each["wrong"]]}
        )
    )
    if asked.inputs is None and not asked.kinds:
        save("trust/fuzz.json", {**content, "complete": True}, **settings)
    bad = sum(content["total"][word] for word in (*WRONG, "guided_raw"))
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
