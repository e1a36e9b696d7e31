"""Bad command lines: every option of every command with values that it must refuse, and with values that may be right;
none may end in a traceback."""

import contextlib
import inspect
import io
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import typer

import eigentime as et
from eigentime.cli import app as cli

GOOD: dict[str, list[str]] = {
    "measure": ["binomial-exact", "--budget", "32", "--out", "c.safetensors"],
    "schedule": ["clock.safetensors", "--steps", "2", "--out", "g.json"],
    "plan": ["clock.safetensors", "--steps", "2", "--out", "p.json"],
    "sample": ["binomial-exact", "--strategy", "uniform", "--steps", "2", "--num-samples", "2", "--out", "x.npy"],
    "nll": ["countdown-exact", "--sampler", "threshold", "--sequences", "1", "--references", "1"],
    "recommend": ["countdown-exact", "--nfe", "1", "--sequences", "16", "--budget", "16"],
    "compare": ["binomial-exact", "--strategies", "uniform", "--steps", "2", "--samples", "2"],
    "report": ["clock.safetensors", "--out", "r.html", "--strategies", "uniform", "--evaluations", "2"],
    "export": ["made.json", "--out", "e.yaml"],
    "midi": ["tunes.npy", "--out", "midi"],
    "draw": ["binomial", "--sequences", "4", "--out", "d.npy"],
}
"""A good line of every command that this can be tried on within a second or so, were it to be carried out."""
SLOW = {"recommend", "nll"}
"""Only tried with what must be refused."""
REFUSED = {
    "integer": ["x", "1.5", "nan", "inf", "", "1e3", "9" * 30, "None"],
    "float": ["x", "nan", "inf", "-inf", "", "None"],
    "path": ["", "no/such/folder/file", "x" * 300],
    "text": ["", "no such thing"],
}
NEGATIVE = ["-1", "-99999999999"]
FREE_TEXT = {"--title"}
"""Any text is right."""
MAY_MAKE = {("midi", "--out")}
"""Folders that are made if they are not there."""
PATIENCE = 20
"""Seconds after which a line hangs."""


@dataclass(frozen=True)
class Line:
    """A command line, and whether it must be refused."""

    words: tuple[str, ...]
    refused: bool


def lines() -> Iterator[Line]:
    """Every option of every command."""
    commands: dict[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    for name, good in GOOD.items():
        for option in commands[name].params:
            flags = [word for word in option.opts if word.startswith("--")]
            if not flags or option.is_flag:
                continue
            kind = _kind(commands[name].callback, option.name)
            free = flags[0] in FREE_TEXT
            values = [] if free or (name, flags[0]) in MAY_MAKE else REFUSED[kind]
            for value in values:
                yield Line((name, *_with(good, flags[0], value)), True)
            if kind in ("integer", "float") and flags[0] != "--seed":
                for value in NEGATIVE:
                    yield Line((name, *_with(good, flags[0], value)), True)
            if name not in SLOW:
                for value in (
                    ("0", "1")
                    if kind in ("integer", "float")
                    else (".", "/dev/null")
                    if kind == "path"
                    else ("a,b", "0")
                ):
                    yield Line((name, *_with(good, flags[0], value)), False)
        for wrong in ("no such thing", "", "x" * 300, "/dev/null", "text.npy"):
            yield Line((name, wrong, *good[1:]), True)
        yield Line((name, *good, "--no-such-option"), True)
        yield Line((name, *good, "one more"), name != "report")
    yield from HAND_WRITTEN


HAND_WRITTEN = [
    Line(("compare", "binomial-exact", "--strategies", "jys", "--steps", "2", "--jys-samples", "0"), True),
    Line(("midi", "tunes.npy", "--out", "text.npy"), True),
    Line(("train", "binomial", "--steps", "1", "--out", "text.npy"), True),
    Line(("train", "binomial", "--steps", "0"), True),
    Line(("train", "binomial", "--batch", "-1"), True),
    Line(("train", "binomial", "--learning-rate", "nan"), True),
    Line(("train", "binomial", "--width", "0"), True),
    Line(("train", "no-such-recipe"), True),
    Line(("reproduce", "binomial", "--out", "text.npy"), True),
    Line(("reproduce", "countdown", "--out", "text.npy"), True),
    Line(("reproduce", "no-such-experiment"), True),
    Line(("sample", "binomial-exact", "--strategy", "uniform", "--given", "strings.npy"), True),
    Line(("sample", "binomial-exact", "--strategy", "uniform", "--given", "huge.npy"), True),
    Line(("measure", "binomial-exact", "--data", "huge.npy"), True),
    Line(("measure", "binomial-exact", "--data", "strings.npy"), True),
    Line(("measure", "binomial-exact", "--fixed", "strings.npy"), True),
    Line(("measure", "countdown-exact", "--budget", "16", "--seed", "9" * 30), True),
    Line(("demo", "--out", "text.npy"), True),
    Line(("demo", "--samples", "0"), True),
    Line(("no-such-command",), True),
]


@cache
def _files() -> dict[str, bytes]:
    """What lines refer to."""
    model = et.load("countdown-exact")
    clock = et.measure(model, budget=32, orders=["raster"])
    with tempfile.TemporaryDirectory() as folder:
        clock.save(Path(folder) / "clock.safetensors")
        et.plan(clock, steps=2).save(Path(folder) / "made.json")
        np.save(Path(folder) / "tunes.npy", np.zeros((1, 256), dtype=int))
        np.save(Path(folder) / "strings.npy", np.full((2, 1), "a"))
        (Path(folder) / "text.npy").write_text("hello")
        header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999, 99999), }\n"
        huge = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        (Path(folder) / "huge.npy").write_bytes(huge)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def run_line(line: Line, folder: Path) -> str:
    """Carry out a line in this folder; what was wrong with what came of it, or nothing."""
    for name, content in _files().items():
        (folder / name).write_bytes(content)
    before = {path.name for path in folder.iterdir()}
    out, err, code, argv = io.StringIO(), io.StringIO(), 0, sys.argv
    sys.argv = ["eigentime", *line.words]
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(PATIENCE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:
        return f"raw: {type(error).__name__}: {str(error)[:100]}"
    finally:
        signal.alarm(0)
        sys.argv = argv
    told = [row for row in err.getvalue().splitlines() if row.strip()]
    left = {path.name for path in folder.iterdir()} - before
    if code not in (0, 2):
        return f"raw: exit code {code}"
    if code == 0:
        return "accepted: exit code 0" if line.refused else ""
    ours = [row for row in told if row.startswith("eigentime: ")]
    if not ours and not any("Error" in row or "Usage" in row for row in told):
        return f"untidy: exit code 2 and {told[-1:]}"
    if left:
        return f"untidy: left {sorted(left)}"
    return ""


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no answer after {PATIENCE} s")


def _kind(command: Any, name: str) -> str:
    """What an option takes, as its annotation says it."""
    hint = str(get_type_hints(inspect.unwrap(command))[name])
    return next(
        (kind for word, kind in (("int", "integer"), ("float", "float"), ("Path", "path")) if word in hint), "text"
    )


def _with(good: list[str], option: str, value: str) -> list[str]:
    """The line with one option replaced."""
    if option in good:
        at = good.index(option) + 1
        return [*good[:at], value, *good[at + 1 :]]
    return [*good, option, value]
