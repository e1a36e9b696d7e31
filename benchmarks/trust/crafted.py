"""Files that someone made to do harm, of the forms that a reader of this folder expects."""

import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import torch

DEEP = "[" * 100_000
BOMB = b"\n".join(
    [b"a0: &a0 [x, x, x]", *(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]".encode() for k in range(1, 12))]
)
MERGED = b"\n".join(
    [b"a0: &a0 {k: 1}", *(f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}".encode() for k in range(1, 12))]
)


class Runs:
    """Asks whoever unpickles it to run a command."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch /tmp/eigentime-was-here",)


def crafted(files: dict[str, bytes]) -> Iterator[tuple[str, str, bytes]]:
    """What it is, the file that it stands in for, and its content."""
    for name in files:
        suffix = name.rpartition(".")[2]
        yield "empty", name, b""
        if suffix in ("json", "yaml", "txt"):
            yield from ((what, name, content) for what, content in _texts())
        if suffix == "ckpt":
            yield from ((what, name, content) for what, content in _pickles())
        if suffix == "safetensors":
            yield from ((what, name, content) for what, content in _tensors())
        if suffix == "npy":
            yield from ((what, name, content) for what, content in _arrays())
        if suffix in ("gz", "txt"):
            yield "a bomb", name, zlib.compress(bytes(200 * 2**20), 9)
            yield "a bomb of gzip", name, gzip.compress(bytes(200 * 2**20))


def _texts() -> Iterator[tuple[str, bytes]]:
    yield "deep lists", DEEP.encode()
    yield "deep objects", ('{"a":' * 50_000).encode()
    yield "closed deep lists", ("[" * 5000 + "]" * 5000).encode()
    yield "a number of 100,000 digits", b"9" * 100_000
    yield "an object with such a number", b'{"format": ' + b"9" * 100_000 + b"}"
    yield "too large", b" " * (17 * 2**20)
    yield "an unfolding list", BOMB
    yield "unfolding settings", MERGED
    yield "a command", b"!!python/object/apply:os.system ['touch /tmp/eigentime-was-here']"
    yield "itself", b"a: &a [*a]"
    yield "no text", b"\xff\xfe\x00"
    yield "a number as the whole", b"5"
    yield "a word as the whole", b'"x"'
    yield "nothing as the whole", b"null"
    yield "twice the same name", b'{"format": "eigentime-plan", "format": "eigentime-schedule"}'


def _archive(content: bytes, method: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a/data.pkl", content)
        archive.writestr("a/byteorder", b"little")
        for name, data in more.items():
            archive.writestr(f"a/{name.replace('_', '/')}", data)
    return buffer.getvalue()


def _tensor(size: tuple[int, ...], stride: tuple[int, ...], count: int) -> bytes:
    """A pickle of a tensor, written down by hand."""
    numbers = "".join(f"I{each}\n" for each in size)
    steps = "".join(f"I{each}\n" for each in stride)
    storage = f"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI{count}\ntQ"
    made = f"ctorch._utils\n_rebuild_tensor_v2\n({storage}I0\n({numbers}t({steps}tI00\nNtR"
    return f"}}S'state_dict'\n}}S'w'\n{made}ss.".encode()


def _pickles() -> Iterator[tuple[str, bytes]]:
    yield "a command, as it is", pickle.dumps(Runs())
    yield "a command in an archive", _archive(pickle.dumps({"state_dict": Runs()}))
    buffer = io.BytesIO()
    torch.save({"state_dict": {"w": Runs()}}, buffer)
    yield "a command among weights", buffer.getvalue()
    yield "a compressed bomb", _archive(pickle.dumps({}), zipfile.ZIP_DEFLATED, data_0=bytes(300 * 2**20))
    yield "a tensor beyond its bytes", _archive(_tensor((10**10,), (1,), 4), data_0=bytes(16))
    yield "a storage beyond the file", _archive(_tensor((4,), (1,), 10**11), data_0=bytes(16))
    yield "a tensor that repeats itself", _archive(_tensor((10**6, 10**6), (0, 0), 4), data_0=bytes(16))
    yield "a negative stride", _archive(_tensor((4,), (-1,), 4), data_0=bytes(16))
    yield "a huge buffer", _archive(b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".")
    yield "a huge text", _archive(b"\x80\x05\x8d" + struct.pack("<Q", 2**40) + b".")
    yield "a far place in the memo", _archive(b"\x80\x02}r" + struct.pack("<I", 0x7FFFFFF0) + b".")
    yield "a key that takes for ever", _archive(b"\x80\x02}" + b"K\x01" + b"2\x86" * 60 + b"K\x01s.")
    yield "a set that takes for ever", _archive(b"\x80\x04\x8f(" + b"K\x01" + b"2\x86" * 60 + b"\x90.")
    yield (
        "a program of TorchScript",
        _archive(pickle.dumps({}), constants_pkl=b"x").replace(b"constants/pkl", b"constants.pkl"),
    )
    yield "text without end", b"S'" + b"x" * 1000
    yield "a million empty lists", b"\x80\x02(" + b"]" * 10**6 + b"l."


def _tensors() -> Iterator[tuple[str, bytes]]:
    yield "a huge header", struct.pack("<Q", 2**60) + b"{}"
    yield "a header of 90 MB that is not there", struct.pack("<Q", 90 * 2**20) + b"{}"
    for what, told in (
        ("a huge tensor", {"w": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8]}}),
        ("an empty huge tensor", {"levels": {"dtype": "F64", "shape": [0, 10**15], "data_offsets": [0, 0]}}),
        ("overlapping tensors", {name: {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]} for name in "ab"}),
        ("a strange kind", {"w": {"dtype": "F4", "shape": [1], "data_offsets": [0, 8]}}),
        ("a deep head", {"__metadata__": {"format": "eigentime-clock", "version": "1", "head": DEEP}}),
    ):
        text = json.dumps(told).encode()
        yield what, struct.pack("<Q", len(text)) + text + bytes(8)


def _arrays() -> Iterator[tuple[str, bytes]]:
    for what, head in (
        ("a huge array", "{'descr': '<i8', 'fortran_order': False, 'shape': (100000000000,)}"),
        ("a negative length", "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}"),
        ("objects", "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
        ("an expression", "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,)}"),
        ("nested lists", "{'descr': " + "[" * 3000 + "]" * 3000 + ", 'fortran_order': False, 'shape': (1,)}"),
    ):
        text = head.encode() + b" " * (-(len(head) + 11) % 64) + b"\n"
        yield what, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(64)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(100 * 2**20))
    yield "an archive", buffer.getvalue()
