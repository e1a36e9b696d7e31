"""Bad calls of all public verbs and objects, and of the command line: each must get one clear sentence, or be right.

python benchmarks/trust/edge.py             writes results/trust/edge.json
python benchmarks/trust/edge.py --sample    tries about 150 of the calls, and prints what came of them as JSON
"""

import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from calls import ABSTRACT, NOTHING_TO_PASS, RECORDS, Call, calls, verbs  # noqa: E402
from commands import Line, lines, run_line  # noqa: E402
from provenance import save  # noqa: E402

import eigentime as et  # noqa: E402

LONGEST = 600
"""Characters of a sentence."""
HEAVY = {"report", "recommend", "compare", "load"}
"""Good calls of these take seconds: a sample leaves them out."""


@dataclass(frozen=True)
class Verdict:
    """What came of a call: right, raw (another error than ours), accepted (though it must not be), refused (though it
    is right), different (from the plain value's answer), or untidy (no single sentence, or a file left behind)."""

    kind: str
    detail: str = ""


def judged(call: Call) -> Verdict:
    """Make a call in an empty folder, and judge what comes of it."""
    with empty_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call.verb.call(**call.arguments())
        except et.EigentimeError as error:
            if call.expected != "refused":
                return Verdict("refused", str(error))
            left = [path.name for path in folder.iterdir()]
            untidy = _untidy(str(error)) or (f"left {left}" if left else "")
            return Verdict("untidy", untidy) if untidy else Verdict("right", str(error))
        except TypeError as error:
            missing = call.expected == "missing" and "missing" in str(error)
            return Verdict("right") if missing else Verdict("raw", f"TypeError: {error}")
        except Exception as error:
            return Verdict("raw", f"{type(error).__name__}: {error}")
    if call.expected != "same":
        return Verdict("accepted", _text(result)[:80])
    with empty_folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = call.verb.call(**call.verb.good())
    return Verdict("right") if _text(result) == _text(reference) else Verdict("different", _text(result)[:80])


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in a folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def _untidy(message: str) -> str:
    if "\n" in message or not message.endswith(".") or len(message) > LONGEST:
        return f"no single sentence: {message[:120]!r}"
    return ""


def _text(value: Any) -> str:
    """Everything that a result says, as text: results that agree have the same."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return str(np.asarray(value).tolist())
    if isinstance(value, dict):
        return str({str(key): _text(each) for key, each in value.items() if key != "seconds"})
    if isinstance(value, list | tuple):
        return str([_text(each) for each in value])
    if isinstance(value, str | int | float | type(None)):
        return str(value)
    if isinstance(value, torch.nn.Module):
        return type(value).__name__
    if isinstance(value, et.Model):
        return f"{value.name} {value.length} {value.fingerprint}"
    if isinstance(value, et.Clock):
        return value.fingerprint
    told = getattr(value, "__dict__", {})
    return f"{type(value).__name__} {_text({k: v for k, v in told.items() if k not in HIDDEN and not callable(v)})}"


HIDDEN = ("seconds", "evaluations", "taught", "frontier")
"""Parts of results that hold how long things took."""


def uncovered() -> set[str]:
    """Public names that no call is made of."""
    covered = {verb.name.split(".")[0] for verb in verbs()} | RECORDS | ABSTRACT | NOTHING_TO_PASS
    return set(et.__all__) - covered


def campaign(wanted: Iterable[Call], asked: Iterable[Line]) -> tuple[dict[str, Any], list[str]]:
    """Judge calls and command lines: counts, and what is wrong."""
    found: Counter[str] = Counter()
    by_verb: Counter[str] = Counter()
    wrong, slowest, count, typed = [], ("", 0.0), 0, 0
    for call in wanted:
        began = time.perf_counter()
        verdict = judged(call)
        took = time.perf_counter() - began
        slowest = max(slowest, (str(call), took), key=lambda each: each[1])
        count += 1
        by_verb[call.verb.name] += 1
        found[verdict.kind] += 1
        if verdict.kind != "right":
            wrong.append(f"{verdict.kind}: {call}: {verdict.detail}")
    for line in asked:
        with empty_folder() as folder:
            problem = run_line(line, folder)
        typed += 1
        found["right" if not problem else problem.split(":")[0]] += 1
        if problem:
            wrong.append(f"{problem}: eigentime {' '.join(line.words)[:160]}")
    kinds = ("raw", "accepted", "refused", "different", "untidy")
    content = {
        "calls": count,
        "verbs": len(by_verb),
        "command_lines": typed,
        "right": found["right"],
        **{kind: found[kind] for kind in kinds},
        "uncovered": sorted(uncovered()),
        "slowest": {"call": slowest[0], "seconds": round(slowest[1], 2)},
    }
    return content, wrong


def main() -> None:
    """Everything."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    if "--sample" in sys.argv:
        some = [call for call in calls() if call.expected != "same" or call.verb.name not in HEAVY]
        content, wrong = campaign(some[:: len(some) // 150], list(lines())[::20])
        print(json.dumps({**content, "wrong": wrong}))
        return
    content, wrong = campaign(calls(), lines())
    for each in wrong:
        print(each)
    print({key: value for key, value in content.items() if key != "slowest"}, f"{time.perf_counter() - began:.0f} s")
    save("trust/edge.json", {**content, "wrong": wrong})
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
