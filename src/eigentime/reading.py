"""Files of unknown origin, read strictly: sizes are known before contents, nesting and digits are bounded, and nothing
is allocated because a number in a file asks for it.

What is wrong with a file is an `Unreadable`; whoever reads says in a sentence what to do about it.
"""

import json
import re
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

MB = 2**20
MOST_TEXT, MOST_ROWS, MOST_YAML, MOST_HEADER = 16 * MB, 256 * MB, MB // 4, 32 * MB
"""Bytes of a file of text, of one that grows by rows, of YAML (which is read slowly), and of a header of tensors."""
DEEPEST, MOST_DIGITS, MOST_NODES = 100, 20, 100_000
"""Levels of lists within lists, digits of a whole number (2⁶⁴ has 20), and values that a YAML file unfolds into."""
LONGEST = 200
"""Characters of what others say went wrong: some repeat all of a file."""
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class Unreadable(ValueError):
    """What is wrong with a file."""


DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, MemoryError, RecursionError)
"""What the parts of a damaged file may provoke while objects are made of them."""


def file_size(path: str | Path, most: int | None = None) -> int:
    """Bytes of a regular file; anything else could hang, and is refused like what is too large."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise Unreadable(getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable("it is no regular file")
    if most is not None and found.st_size > most:
        raise Unreadable(f"it has {found.st_size:,} bytes, more than the {most:,} that are read")
    return found.st_size


def read_bytes(path: str | Path, most: int) -> bytes:
    """All of a file that is not too large."""
    file_size(path, most)
    try:
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise Unreadable(error.strerror or "it cannot be read") from None
    if len(content) > most:
        raise Unreadable(f"it has more than the {most:,} bytes that are read")
    return content


def read_text(path: str | Path, most: int = MOST_TEXT) -> str:
    """A file of text."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("it is no text") from None


def read_json(path: str | Path, most: int = MOST_TEXT) -> Any:
    """A file of JSON."""
    return parse_json(read_text(path, most))


def parse_json(text: str) -> Any:
    """JSON with bounded nesting and digits, and no name twice in an object."""
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise Unreadable(f"it nests more than {DEEPEST} levels")
    try:
        return json.loads(text, parse_int=_whole, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise Unreadable(f"{error.msg} in line {error.lineno}") from None


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Unreadable(f"it holds a whole number of {len(digits)} digits")
    return int(digits)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("it says something twice")
    return found


def read_yaml(path: str | Path) -> Any:
    """A file of YAML, plain values only, that does not unfold into more than it seems to hold."""
    import yaml

    text = read_text(path, MOST_YAML)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _unfolded(node, yaml, {}, 0)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Unreadable("it is no YAML" + (f", line {mark.line + 1}" if mark else "")) from None
    except RecursionError:
        raise Unreadable(f"it nests more than {DEEPEST} levels") from None
    except DAMAGED as error:  # a tag that does not fit its value
        raise Unreadable(first_line(error)) from None


def _unfolded(node: Any, yaml: Any, known: dict[int, int], depth: int) -> int:
    """Values that a node of YAML stands for, those counted again that it refers to again."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith(":int") and len(node.value) > MOST_DIGITS:
            raise Unreadable(f"it holds a whole number of {len(node.value)} digits")
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_NODES  # what refers to itself never ends
        inner = node.value if isinstance(node, yaml.SequenceNode) else [each for pair in node.value for each in pair]
        if depth > DEEPEST:
            raise Unreadable(f"it nests more than {DEEPEST} levels")
        known[id(node)] = 1 + sum(_unfolded(each, yaml, known, depth + 1) for each in inner)
    if known[id(node)] >= MOST_NODES:
        raise Unreadable(f"it unfolds into more than {MOST_NODES:,} values")
    return known[id(node)]


def read_tensors(path: str | Path, framework: str = "numpy") -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors of a safetensors file and what its header says beside them."""
    size = file_size(path)
    try:
        with Path(path).open("rb") as file:
            header = int.from_bytes(file.read(8), "little")
        if header > MOST_HEADER:
            raise Unreadable(f"it announces a header of {header:,} bytes")
        with safe_open(path, framework=framework) as content:
            names = list(content.keys())
            for name in names:
                if max(content.get_slice(name).get_shape(), default=0) > size:
                    raise Unreadable(f"{name} is longer than the file")
            return {name: content.get_tensor(name) for name in names}, content.metadata() or {}
    except Unreadable:
        raise
    except (SafetensorError, OSError, *DAMAGED) as error:
        raise Unreadable(first_line(error)) from None


def read_npy(path: str | Path) -> np.ndarray:
    """An array from a .npy file, never a pickle, whose header asks for no more than follows."""
    size = file_size(path)
    try:
        with Path(path).open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise Unreadable(f"it is of version {version}")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            count = 1
            for length in shape:
                count *= length
            if dtype.hasobject or min(shape, default=0) < 0 or count * dtype.itemsize != size - file.tell():
                raise Unreadable(f"its header ({dtype}, {shape}) does not fit what follows")
        return np.asarray(np.load(path, allow_pickle=False))
    except (Unreadable, FileNotFoundError):
        raise
    except (OSError, SyntaxError, EOFError, TokenError, *DAMAGED) as error:
        raise Unreadable(first_line(error)) from None


def inflated(data: bytes, most: int, gzipped: bool = False) -> bytes:
    """What was compressed, if it is not more than that."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzipped else zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(data, most)
    except zlib.error as error:
        raise Unreadable(str(error)) from None
    if not unpacker.eof:
        raise Unreadable(f"it is cut short or unfolds into more than {most:,} bytes")
    return content


def first_line(error: BaseException) -> str:
    """What went wrong, in short."""
    return (str(error).splitlines() or [type(error).__name__])[0][:LONGEST]


def check_inside(names: Iterable[Any]) -> None:
    """Refuse names of files that lead out of the folder they are named in."""
    for name in names:
        if not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            raise Unreadable(f"it names {str(name)[:60]!r}, which lies outside its folder")
