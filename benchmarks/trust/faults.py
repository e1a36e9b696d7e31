"""Runs that are killed, interrupted, starved of disk or of memory, at random moments, more than 200 times; each is then
started again, as often as it takes, and must end with the very result of a run that nothing happened to.

python benchmarks/trust/faults.py                          writes results/trust/faults.json, job by job: it goes on too
python benchmarks/trust/faults.py --faults 2 --jobs nll    fewer, of some jobs, printed as JSON and not written
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from provenance import ROOT, load, save  # noqa: E402

import eigentime as et  # noqa: E402
from eigentime.cli import main as command_line  # noqa: E402
from eigentime.models.ddit import DDiTConfig  # noqa: E402
from eigentime.training import Recipe, loop  # noqa: E402

FAULTS, SEED, LONGEST = 30, 0, 300
"""Faults of each job, the seed of when they strike, and seconds after which a run is said to hang."""
KINDS = ("kill -9", "SIGTERM", "SIGINT", "disk full", "out of memory")
TINY = """import eigentime as et
import numpy as np


def build():
    law = np.random.default_rng(0).dirichlet(np.full(3**5, 0.5)).reshape((3,) * 5)
    return et.Table(law, et.Process(et.Absorbing(4), et.LogLinear()))
"""
"""A model that answers at once: what is tried is what happens around it."""
ROUNDING = ("seconds", "file", "machine", "parent_commit")
"""Parts of results that say how long something took, or where."""


@dataclass(frozen=True)
class Job:
    """A command, and what it ends with."""

    name: str
    words: tuple[str, ...]
    result: Callable[[Path], Any]
    run: Callable[[], None] = command_line
    """What reads the words."""


def jobs() -> list[Job]:
    """One for each command that may take long."""
    network = ("--model", "tiny.py:build", "--data", "data.npy")
    planned = ("--schedule", "grid.json")
    named = {
        "measure": (*network, "--budget", "48", "--orders", "raster", "--out", "c.safetensors"),
        "sample": (*network, *planned, "--num-samples", "256", "--out", "x.npy"),
        "nll": (*network, *planned, "--sequences", "64", "--keep", "nll.json", "--json"),
        "recommend": (*network, "--nfe", "3", "--budget", "64", "--sequences", "24", "--out", "r.json"),
        "compare": (
            *(*network, "--clock", "clock.safetensors", "--strategies", "uniform,ods,plan", "--steps", "1,2"),
            *("--samples", "64", "--json", "rows.json"),
        ),
        "reproduce": ("dynamics", "--models", "countdown", "--budget", "16", "--out", "out"),
    }
    results = (_clock, _array, _printed, _json, _json, _folder)
    commands = [Job(name, (name, *words), result) for (name, words), result in zip(named.items(), results, strict=True)]
    return [*commands, Job("train", (), _weights, _train)]


def _train() -> None:
    """What `eigentime train` does, of a network as small as the model."""
    made: dict[str, Any] = {}
    exec(TINY, made)
    model = made["build"]()
    recipe = Recipe("tiny", model.process, 5, DDiTConfig(4, 16, 1, 2), steps=60, batch=4, learning_rate=1e-3, warmup=5)
    try:
        loop.train(recipe, model.draw(64, 1), model.draw(16, 2), Path("run"))
    except loop.Interrupted:
        sys.exit(130)
    except (et.EigentimeError, MemoryError) as error:  # as the command line says it
        print(f"eigentime: {error}", file=sys.stderr)
        sys.exit(2)


def _plain(value: Any) -> Any:
    """Without what takes its own time."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key not in ROUNDING}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _json(folder: Path) -> Any:
    content = _plain(json.loads(next(folder.glob("r*.json")).read_text()))
    return {key: value for key, value in content.items() if key != "sha256"} if isinstance(content, dict) else content


def _printed(folder: Path) -> Any:
    return _plain(json.loads((folder / "stdout").read_text()))


def _clock(folder: Path) -> Any:
    clock = et.Clock.load(folder / "c.safetensors")
    return clock.fingerprint, None if clock.dependence is None else clock.dependence.tolist()


def _array(folder: Path) -> Any:
    return np.load(folder / "x.npy").tolist()


def _folder(folder: Path) -> Any:
    return [_plain(json.loads(path.read_text())) for path in sorted((folder / "out").glob("*.json"))]


def _weights(folder: Path) -> Any:
    model = et.load(str(folder / "run"))
    return model.fingerprint, _plain(json.loads((folder / "run" / "log.json").read_text()))


def prepared() -> dict[str, bytes]:
    """What commands are given: sequences, a clock, a schedule."""
    made: dict[str, Any] = {}
    exec(TINY, made)
    model = made["build"]()
    data = model.draw(64, 0)
    clock = et.measure(model, data, budget=64, orders=["raster"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tiny.py").write_text(TINY)
        np.save(folder / "data.npy", data.numpy())
        clock.save(folder / "clock.safetensors")
        et.schedule(clock, "ods", steps=4).save(folder / "grid.json")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def started(job: Job, folder: Path, fault: Callable[[], None] = lambda: None) -> int:
    """The process of a run: a copy of this one, in which everything is imported already."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        loop.SAVE_SECONDS = 0.2
        sys.argv = ["eigentime", *job.words]
        fault()
        job.run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def ended(child: int) -> int:
    """The exit code, a negative signal, or 71 for a run that hangs."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 71


def _disk(size: int) -> Callable[[], None]:
    """No file may become larger."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _memory(after: float) -> Callable[[], None]:
    """Whatever is being done then, there is no memory for it."""

    def fail(*_: Any) -> None:
        raise MemoryError("injected")

    def arm() -> None:
        signal.signal(signal.SIGALRM, fail)
        signal.setitimer(signal.ITIMER_REAL, after)

    return arm


def struck(job: Job, folder: Path, kind: str, took: float, rng: random.Random) -> tuple[int, str]:
    """Run a job and let something happen to it: its exit code and what it says."""
    after = rng.uniform(0.0, took)
    if kind == "disk full":
        code = ended(started(job, folder, _disk(int(10 ** rng.uniform(1.5, 4.5)))))
    elif kind == "out of memory":
        code = ended(started(job, folder, _memory(max(after, 0.01))))
    else:
        child = started(job, folder)
        time.sleep(after)
        os.kill(child, {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}[kind])
        code = ended(child)
    return code, (folder / "stderr").read_text() if (folder / "stderr").exists() else ""


def campaign(job: Job, given: dict[str, bytes], faults: int, seed: int) -> dict[str, Any]:
    """So many faults, one to three for each result."""
    rng, found, wrong = random.Random(f"{job.name} {seed}"), Counter[str](), []
    with tempfile.TemporaryDirectory() as name:
        folder = _fresh(Path(name) / "whole", given)
        began = time.monotonic()
        if (code := ended(started(job, folder))) != 0:
            raise SystemExit(f"{job.name} ends with {code}: {(folder / 'stderr').read_text()}")
        took = time.monotonic() - began
        expected, left = job.result(folder), {path.name for path in folder.rglob("*")}
        while found["faults"] < faults:
            folder = _fresh(Path(name) / "struck", given)
            story = []
            for _ in range(rng.choice((1, 1, 2, 3))):
                kind = rng.choice(KINDS)
                code, said = struck(job, folder, kind, took, rng)
                if code == 0:
                    break  # it was done before anything happened
                story.append(kind)
                found["faults"] += 1
                found[kind] += 1
                found["interrupted"] += code == 130
                if code == 71 or "Traceback" in said:
                    found["raw"] += 1
                    wrong.append(f"{job.name}, {kind}: exit {code}: {said[-400:]}")
            if not story:
                found["too late"] += 1
                continue
            code = ended(started(job, folder))
            result = job.result(folder) if code == 0 else None
            same = result == expected
            found["results"] += 1
            found["survived"] += len(story) if same else 0
            found["lost"] += not same
            untidy = {path.name for path in folder.rglob("*")} - left
            found["untidy"] += bool(untidy)
            if not same or untidy:
                said = (folder / "stderr").read_text()[-400:]
                said += "" if same else f" not {str(expected)[:1500]} but {str(result)[:1500]}"
                wrong.append(f"{job.name} after {story}: exit {code}, left {sorted(untidy)}: {said}")
    words = ("faults", "results", "survived", "lost", "raw", "untidy", "too late", *KINDS)
    counts = {word: found[word] for word in words}
    return {**counts, "seconds_each": round(took, 2), "wrong": wrong[:20]}


def _fresh(folder: Path, given: dict[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file, content in given.items():
        (folder / file).write_bytes(content)
    return folder


def main() -> None:
    """All jobs, or what is missing of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int)
    parser.add_argument("--jobs", help="only these, separated by commas")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="Begin no job after that; the next call does."
    )
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.minutes
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    few = asked.faults is not None or asked.jobs is not None
    path, settings = ROOT / "results" / "trust" / "faults.json", {"faults": FAULTS, "seed": SEED}
    content: dict[str, Any] = {"jobs": {}}
    before = load("trust/faults.json") if path.exists() and not few else {}
    if before.get("provenance", {}).get("settings") == settings and not before.get("complete"):
        content = before
    given = prepared()
    for job in jobs():
        if time.monotonic() > until:
            sys.exit(3)
        if job.name in content["jobs"] or (asked.jobs and job.name not in asked.jobs.split(",")):
            continue
        began = time.perf_counter()
        content["jobs"][job.name] = campaign(job, given, asked.faults or FAULTS, SEED)
        content["jobs"][job.name]["seconds"] = round(time.perf_counter() - began)
        print(job.name, content["jobs"][job.name], file=sys.stderr, flush=True)
        if not few:
            save("trust/faults.json", {**content, "complete": False}, **settings)
    words = ("faults", "results", "survived", "lost", "raw", "untidy", *KINDS)
    content["total"] = {word: sum(each[word] for each in content["jobs"].values()) for word in words}
    wrong = [line for each in content["jobs"].values() for line in each["wrong"]]
    print(json.dumps({**content["total"], "wrong": wrong}))
    if not few:
        save("trust/faults.json", {**content, "complete": True}, **settings)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
