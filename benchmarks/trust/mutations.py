"""Valid files, changed a little: bits, bytes and pieces of them, and in a way that keeps the file's form (values of
JSON and YAML, the header of tensors, the pickle inside an archive), so that what lies deeper is reached too."""

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]
WORDS = (
    *("NaN", "Infinity", "-1", "0", "1e999", "-0.0", "null", "true", '""', '"x"', "[]", "{}", "[[]]", "1.5"),
    *("9" * 19, "9" * 21, "9" * 400, "9" * 5000, "-" + "9" * 25, "18446744073709551615", "1000000000", "4294967296"),
    *("[" * 50, "[" * 2000 + "]" * 2000, '{"a":' * 200 + "1" + "}" * 200, '"../../../etc/passwd"', '"/etc/passwd"'),
    *(
        '"' + "x" * 5000 + '"',
        '"\\u0000"',
        '"\\ud800"',
        "!!python/object/apply:os.system ['true']",
        "&a [*a]",
        "*b",
        "? 1",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        2**31,
        2**63,
        2**64 - 1,
        -(2**63),
        10**6,
        10**9,
        10**15,
        0.5,
        1.5,
        1e308,
        -1e-9,
    ),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "../../x",
        "/etc/passwd",
        "random",
        "given",
        [],
        [1],
        [[0]],
        [0, 1, 2, 3],
        {},
        {"a": 1},
    ),
    *([0] * 1000, "y" * 1000, {"name": "lattice", "period": 10**12}, {"name": "sobol", "shape": [10**6, 10**6]}),
    *({"name": "given", "permutation": [0, 0, 1]}, {"kernel": {"name": "uniform", "size": 10**9}}, [[[[[[]]]]]]),
)
INTEGERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 10**9)
PICKLED = (
    *(b"\x8e" + struct.pack("<Q", 2**40), b"\x96" + struct.pack("<Q", 2**40), b"r" + struct.pack("<I", 0xFFFFFFF0)),
    *(
        b"cos\nsystem\n(S'true'\ntR",
        b"cbuiltins\neval\n(S'1'\ntR",
        b"ctorch\nload\n",
        b"((tttttt",
        b"2" * 200,
        b"u",
        b"s",
        b"b",
    ),
    *(
        b"e",
        b"a",
        b"d",
        b"\x8f\x90",
        b"\x91",
        b"}",
        b"]",
        b")R",
        b"0",
        b"1",
        b"Q",
        b"N.",
        b"\x8a\xff" + b"9" * 255,
        b"\x81",
        b"o",
    ),
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(fitting(data))(data, rng)
    return data


def fitting(data: bytes) -> list[Mutation]:
    """The changes that a file's form allows for."""
    ways: list[Mutation] = [bit, bit, byte, cut, removed, doubled, inserted, integer]
    if data[:2] == b"PK":
        return [*ways, *([archived] * 6)]
    if data[:1] == b"\x80":
        return [*ways, *([pickled] * 6)]
    if len(data) > 8 and data[8:9] == b"{":
        return [*ways, *([header] * 6)]
    if data[:1] in b"{[":
        return [*ways, *([value] * 6), word, word]
    return [*ways, word, word, word, word] if data.isascii() else ways


def bit(data: bytes, rng: random.Random) -> bytes:
    """One bit flipped."""
    return _with(data, _place(data, rng), lambda old: old ^ (1 << rng.randrange(8)))


def byte(data: bytes, rng: random.Random) -> bytes:
    """Another byte."""
    return _with(data, _place(data, rng), lambda old: rng.randrange(256))


def cut(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: _place(data, rng)]


def removed(data: bytes, rng: random.Random) -> bytes:
    """A piece is missing."""
    start = _place(data, rng)
    return data[:start] + data[start + rng.choice((1, 2, 8, 64)) :]


def doubled(data: bytes, rng: random.Random) -> bytes:
    """A piece is there again, once or many times."""
    start, size = _place(data, rng), rng.choice((1, 8, 64))
    return data[:start] + data[start : start + size] * rng.choice((2, 3, 500)) + data[start + size :]


def inserted(data: bytes, rng: random.Random) -> bytes:
    """Something is there that was not."""
    start = _place(data, rng)
    return data[:start] + rng.randbytes(rng.choice((1, 2, 8, 64))) + data[start:]


def integer(data: bytes, rng: random.Random) -> bytes:
    """Four or eight bytes become a number at the edge of what they can hold."""
    start, size = _place(data, rng), rng.choice((2, 4, 8))
    number = (rng.choice(INTEGERS) % 256**size).to_bytes(size, "little")
    return data[:start] + number + data[start + size :]


def word(data: bytes, rng: random.Random) -> bytes:
    """A word of a text becomes a strange one."""
    words = list(re.finditer(rb"[\w.+-]+", data))
    if not words:
        return data
    found = rng.choice(words)
    return data[: found.start()] + rng.choice(WORDS).encode("utf-8", "replace") + data[found.end() :]


def value(data: bytes, rng: random.Random) -> bytes:
    """A value of JSON becomes another, is left out, or stands there twice."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return word(data, rng)
    return json.dumps(changed(content, rng)).encode("utf-8", "replace")


def changed(content: Any, rng: random.Random) -> Any:
    """JSON with one value changed, somewhere."""
    inside = isinstance(content, dict | list) and len(content)
    if not inside or rng.random() < 0.1:
        number = isinstance(content, int | float) and not isinstance(content, bool) and rng.random() < 0.5
        return content + rng.choice((1, -1, 1e-9, 0.5)) if number else rng.choice(VALUES)
    content = content.copy()
    key = rng.choice(list(content) if isinstance(content, dict) else range(len(content)))
    what = rng.random()
    if what < 0.1:
        del content[key]
    elif what < 0.15 and isinstance(content, dict):
        content[str(key) + rng.choice("xX ")] = content.pop(key)
    elif what < 0.15:
        content.insert(key, content[key])
    else:
        content[key] = changed(content[key], rng)
    return content


def header(data: bytes, rng: random.Random) -> bytes:
    """The header of a file of tensors, its length put right."""
    size = int.from_bytes(data[:8], "little")
    text = data[8 : 8 + size]
    try:
        content = json.loads(text)
        head = content.get("__metadata__", {}).get("head")
        if isinstance(head, str) and rng.random() < 0.5:
            content["__metadata__"]["head"] = json.dumps(changed(json.loads(head), rng))
        else:
            content = changed(content, rng)
        text = json.dumps(content).encode("utf-8", "replace")
    except (ValueError, AttributeError, TypeError, RecursionError):
        text = bit(text, rng)
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def pickled(data: bytes, rng: random.Random) -> bytes:
    """An instruction is put into a pickle."""
    start = _place(data, rng)
    return data[:start] + rng.choice(PICKLED) + data[start + rng.choice((0, 0, 1, 4)) :]


def archived(data: bytes, rng: random.Random) -> bytes:
    """A file inside an archive changes, and the archive's checksums too; or it is compressed, or named elsewhere."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except Exception:  # damaged already
        return bit(data, rng)
    if not files:
        return data
    name = rng.choice([*files, *(each for each in files if each.endswith("data.pkl"))])
    new = name
    what = rng.random()
    if what < 0.7:
        files[name] = rng.choice((pickled, bit, byte, integer, removed, doubled))(files[name], rng)
    elif what < 0.8:
        new = rng.choice(("../" + name, "/tmp/" + name, name + "x", "x/constants.pkl", name.upper()))
    elif what < 0.9:
        files.pop(name)
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for each, content in files.items():
            archive.writestr(new if each == name else each, content)
    return buffer.getvalue()


def _place(data: bytes, rng: random.Random) -> int:
    """Often near the beginning, where numbers say what follows."""
    return rng.randrange(max(1, min(len(data), 256) if rng.random() < 0.3 else len(data)))


def _with(data: bytes, place: int, new: Callable[[int], int]) -> bytes:
    return data[:place] + bytes([new(data[place])]) + data[place + 1 :] if data else data
