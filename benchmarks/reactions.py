"""A published masked model of chemical reactions, half of the tokens given: schedules and plans at equal evaluations.

python benchmarks/reactions.py [--reactions 32]    writes results/reactions.json; interrupt it, the same command goes on

The network (rxnmapper's ALBERT) was trained to map atoms, with 15 % of the tokens masked. With all masked it is of no
use, so a random half of every reaction is given. Held-out reactions are taught each sampler's own steps (nats, paired
by reaction), and samples are judged by RDKit (does a side parse?) and by whether they are the reaction itself.
"""

import argparse
import csv
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from provenance import ROOT, save
from torch import Tensor

import eigentime as et
from eigentime.data.packages import Package, cache_folder, fetch
from eigentime.errors import EigentimeError
from eigentime.experiments.trial import Cell, Trial
from eigentime.files import write_atomically
from eigentime.intervals import PerSequence
from eigentime.report.rows import Row
from eigentime.samplers import Condition
from eigentime.samplers.teacher import log_likelihood, nelbo
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
STRATEGIES = ("uniform", "eds", "wds", "ods", "plan-random", "plan-low-discrepancy", "plan-pairs")
STEPS, ORDERS, BUDGET, SEED = (2, 4, 8), ("low-discrepancy", "pairs"), 128, 0
MEASURED = 64
"""Reactions that the clock is measured on; others are taught and sampled."""


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

    def judge(samples: Int[Tensor, "n length"]) -> dict[str, Any]:
        x = samples.as_subclass(Tensor)
        sides = ["".join(words[token] for token in row[1:-1]).split(">>") for row in x.tolist()]
        whole = [len(each) == 2 for each in sides]
        found = {
            "reactants": [ok and reads(each[0]) for ok, each in zip(whole, sides, strict=True)],
            "product": [ok and reads(each[1]) for ok, each in zip(whole, sides, strict=True)],
        }
        found["both"] = [a and b for a, b in zip(*found.values(), strict=True)]
        right = ((x == true) & ~fixed).sum(1) / (~fixed).sum(1)
        shares = {name: over_sequences(torch.tensor(values).double()) for name, values in found.items()}
        return shares | {"recovered": over_sequences((x == true).all(1).double()), "right": over_sequences(right)}

    return judge


@dataclass
class Followed(Trial):
    """Also what the given reactions cost under the same steps, one number each."""

    def row(self, cell: Cell) -> Row:
        condition = Condition(fixed=self.fixed)
        logs = log_likelihood(self.model, self.given, self.planned(cell), condition=condition, seed=self.seed)
        return {**super().row(cell), "nats": (-logs).tolist()}  # type: ignore[typeddict-unknown-key]


def paired(rows: list[dict[str, Any]]) -> None:
    """Nats of every row, and above those of uniform steps with as many evaluations, paired by reaction."""
    nats = {(row["strategy"], row["steps"]): PerSequence(torch.tensor(row["nats"]).double().numpy()) for row in rows}
    for row in rows:
        own, uniform = nats[row["strategy"], row["steps"]], nats["uniform", row["steps"]]
        above = own - uniform
        row["cost"] = {"mean": own.mean, "stderr": own.stderr}
        row["above_uniform"] = {"mean": above.mean, "stderr": above.stderr if row["strategy"] != "uniform" else 0.0}


def main(count: int) -> None:
    """Measure on some reactions, teach and sample others, judge."""
    place = folder()
    words = (place / "vocab.txt").read_text().split()
    model = et.load(str(place), length=LENGTH)
    model.name = "rxnmapper"  # not the folder of this machine
    known = encoded(reactions(), words, LENGTH)
    chosen = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(SEED))][: MEASURED + count]
    fixed = half_given(len(chosen), LENGTH, FREE, SEED)
    path = cache_folder() / f"rxnmapper-{model.fingerprint}-{BUDGET}-{SEED}.safetensors"
    if not path.exists():
        options: dict[str, Any] = {"budget": BUDGET, "tolerance": 0.0, "orders": ORDERS, "seed": SEED}
        et.measure(model, chosen[:MEASURED], fixed=fixed[:MEASURED], progress=True, **options).save(path)
    clock, x, held = et.Clock.load(path), chosen[MEASURED:], fixed[MEASURED:]
    judge = judged(x, held, words)
    trial = Followed(model, clock, judge, SEED, given=x, fixed=held)
    kept = ROOT / "results" / "reactions.partial.json"
    cells = [Cell(strategy, steps, count) for steps in STEPS for strategy in STRATEGIES]
    rows: list[dict[str, Any]] = [dict(row) for row in trial.rows(cells, kept, progress=True)]
    paired(rows)
    content = {
        "parameters": sum(p.numel() for p in model.network.parameters()),
        "reactions_of_this_length": len(known),
        "evaluations": clock.evaluations,
        "one_at_a_time": vars(over_sequences(nelbo(model, x, ~held, 8, seed=SEED))),
        "real": {name: vars(value) for name, value in judge(x).items()},
        "rows": rows,
    }
    settings = {"reactions": count, "measured": MEASURED, "budget": BUDGET, "free": FREE, "length": LENGTH}
    save("reactions.json", content, seed=SEED, **settings)
    kept.unlink()
    for row in rows:
        print(row["steps"], row["strategy"], {name: round(row[name]["mean"], 2) for name in ("cost", "above_uniform")})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reactions", type=int, default=32, help="how many are taught and sampled in every cell")
    main(parser.parse_args().reactions)
