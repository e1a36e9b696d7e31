"""Characters: enwik8 cleaned as text8 was, 27 symbols, with the customary split.

The clean-up follows Matt Mahoney's rules for text8: only what a reader of the article sees, digits spelled out, all in
a … z and single spaces.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Integer

from eigentime.data.packages import Package, cache_folder, fetch, own_folder
from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.reading import Unreadable, inflated

MINGRU = Package(
    "mingru-pytorch",
    "0.2.1",
    "mingru_pytorch-0.2.1.tar.gz",
    "fc9b278b4e04db930a5cd4cdab36e2713b1d6e14084269b161d4f133819e758d",
    "enwik8",
)
MEMBER, MD5, BYTES = "data/enwik8.gz", "a1fa5ffddb56f4953e226637dabbb36a", 10**8
SYMBOLS = " abcdefghijklmnopqrstuvwxyz"
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
Part = Literal["training", "validation", "test"]
SHARES: dict[Part, tuple[float, float]] = {"training": (0, 0.9), "validation": (0.9, 0.95), "test": (0.95, 1.0)}

_HIDDEN = [
    (re.compile(pattern, flags), by)
    for pattern, flags, by in (
        (r"<.*>", 0, ""),
        (r"&amp;", 0, "&"),
        (r"&lt;", 0, "<"),
        (r"&gt;", 0, ">"),
        (r"<ref[^<]*</ref>", 0, ""),
        (r"<[^>]*>", 0, ""),
        (r"\[http:[^] ]*", 0, "["),
        (r"\|thumb|\|left|\|right|\|\d+px", re.I, ""),
        (r"\[\[image:[^\[\]]*\|", re.I, ""),
        (r"\[\[category:([^|\]]*)[^]]*\]\]", re.I, r"[[\1]]"),
        (r"\[\[[a-z\-]*:[^\]]*\]\]", 0, ""),
        (r"\[\[[^\|\]]*\|", 0, "[["),
        (r"\{\{[^}]*\}\}", 0, ""),
        (r"\{[^}]*\}", 0, ""),
        (r"[\[\]]", 0, ""),
        (r"&[^;]*;", 0, " "),
    )
]
_OTHER = re.compile("[^a-z]+")
_SPELLED = str.maketrans({str(k): f" {word} " for k, word in enumerate(DIGITS)})


def enwik8() -> bytes:
    """The 100,000,000 bytes: $EIGENTIME_DATA/enwik8/enwik8.gz, else from the package."""
    folder = own_folder("enwik8")
    if folder is not None:
        path = folder / "enwik8.gz"
        if not path.exists():
            raise EigentimeError(f"{folder} holds no enwik8.gz.")
        data = _unpacked(path.read_bytes())
    else:
        path = fetch(MINGRU)
        with tarfile.open(path) as archive:
            member = next((entry for entry in archive.getmembers() if entry.name.endswith(MEMBER)), None)
            content = archive.extractfile(member) if member else None
            data = _unpacked(content.read()) if content else b""
    if hashlib.md5(data).hexdigest() != MD5:
        raise EigentimeError(f"{path} holds another enwik8 than expected; delete it and try again.")
    return data


def _unpacked(data: bytes) -> bytes:
    """Nothing where it is not a compressed file of the right size, which its checksum then says."""
    try:
        return inflated(data, BYTES, gzipped=True)
    except Unreadable:
        return b""


def cleaned(xml: str) -> str:
    """Articles of a Wikipedia dump as text8 has them: tags open and close what is visible, record by record."""
    return "".join(_visible(xml))


def _visible(xml: str) -> Iterator[str]:
    inside = False
    for part in xml.split(">"):
        record = part + ">"
        if "<text " in record:
            inside = True
        if "#redirect" in record.lower():
            inside = False
        if not inside:
            continue
        if "</text>" in record:
            inside = False
        for pattern, by in _HIDDEN:
            record = pattern.sub(by, record)
        # the space at the end of every record goes again, so that words of neighbouring records stay apart by one
        yield _OTHER.sub(" ", f" {record} ".lower().translate(_SPELLED))[:-1]


def characters() -> Integer[np.ndarray, " n"]:
    """All of enwik8's text as indices into `SYMBOLS`; cleaned once (a minute or two) and kept in the cache folder."""
    kept = cache_folder() / "enwik8-characters.npy"
    if not kept.exists():
        text = cleaned(enwik8().decode("latin-1"))
        codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
        buffer = io.BytesIO()
        np.save(buffer, np.where(codes == ord(" "), 0, codes - ord("a") + 1).astype(np.uint8))
        write_atomically(kept, buffer.getvalue())
    return np.asarray(np.load(kept, mmap_mode="r"))


def part_of(text: Integer[np.ndarray, " n"], part: Part) -> Integer[np.ndarray, " m"]:
    """The first 90 % to train on, then 5 % to validate and 5 % to test."""
    low, high = SHARES[part]
    return text[round(low * len(text)) : round(high * len(text))]


def spelled(tokens: Integer[np.ndarray, " n"]) -> str:
    """Indices as text."""
    return str(np.frombuffer(SYMBOLS.encode(), dtype=np.uint8)[np.asarray(tokens)].tobytes().decode())
