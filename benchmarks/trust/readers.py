"""Every kind of file that eigentime reads: a valid one, how it is read, and what the object that comes of it says."""

import copy
import io
import json
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import eigentime as et
from eigentime.engines.diffusers_carried import packed, unpacked
from eigentime.engines.sglang import Settings
from eigentime.experiments.kept import KeptRows, remembered
from eigentime.gathering import Batch, BatchFile, Limits, gather
from eigentime.measure import Clock
from eigentime.models.checkpoints.files import read_config
from eigentime.models.checkpoints.masked_lm_files import _tokenizer_mask
from eigentime.models.checkpoints.unpickle import read_pickle
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.trained import Trained, save_folder
from eigentime.reading import inflated, read_npy, read_yaml
from eigentime.report.provenance import load_results
from eigentime.report.rows import read_rows
from eigentime.samplers import Candidate
from eigentime.training.checkpoint import FILE, load_checkpoint, save_checkpoint

Files = dict[str, bytes]
BESIDE = b"model:\n  length: 4\n  n_heads: 2\nnoise: &n\n  type: loglinear\nother: *n\nparameterization: subs\n"
CONFIG = b'{"model": {"length": 4, "n_heads": 2}, "parameterization": "subs", "noise": {"type": "loglinear"}}'
BERT, WORDS = "masked language model", "vocabulary"
SHAPE = DDiTConfig(size=4, width=8, blocks=1, heads=2, cond_width=4)


@dataclass(frozen=True)
class Kind:
    """A kind of file, or a folder of files that belong together.

    read     from the folder where the files lie
    says     all that the object holds, as text: equal objects say the same
    sealed   whether files of this kind carry a checksum, so that no change may pass
    share    of the inputs of a campaign, for kinds that are slow to read
    """

    name: str
    files: Files
    read: Callable[[Path], Any]
    says: Callable[[Any], str]
    sealed: bool = False
    share: float = 1.0
    steady: tuple[str, ...] = field(default=())
    """Files that are not changed."""


@cache
def world() -> et.Table:
    """A small exact model."""
    return table("absorbing")


def table(kernel: str) -> et.Table:
    """One of three or four values, four tokens long."""
    law = np.random.default_rng(3).dirichlet(np.full(3**4, 0.5)).reshape((3,) * 4)
    rates = np.array([[-0.7, 0.3, 0.4], [0.2, -0.5, 0.3], [0.5, 0.1, -0.6]])
    kernels = {"absorbing": et.Absorbing(4), "uniform": et.Uniform(3), "rate-matrix": et.RateMatrix(rates)}
    return et.Table(law, et.Process(kernels[kernel], et.LogLinear()))


def kinds(wanted: list[str] | None = None) -> dict[str, Kind]:
    """All of them, made afresh, or some."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [*_measured(folder), *_kept(folder), *_networks(folder), *_plain(folder)]
        if wanted is None or {BERT, WORDS} & set(wanted):
            made += _with_transformers(folder)
    found = {kind.name: kind for kind in made}
    return found if wanted is None else {name: found[name] for name in wanted}


def _saved(folder: Path, name: str, thing: Any) -> Files:
    thing.save(folder / name)
    return {name: (folder / name).read_bytes()}


def _clock(name: str, files: Files, sealed: bool = True) -> Kind:
    (file,) = files
    return Kind(name, files, lambda folder: et.Clock.load(folder / file), _clock_says, sealed)


def _clock_says(clock: Clock) -> str:
    extra = [None if each is None else each.tolist() for each in (clock.dependence, clock.pairs)]
    return f"{clock.fingerprint} {extra} {clock.batch_size} {clock.process}"


def _measured(folder: Path) -> list[Kind]:
    model = world()
    clock = et.measure(model, model.draw(24, 1), budget=64, orders=["raster", "farthest"])
    grid, plan = et.schedule(clock, "ods", steps=3), et.plan(clock, steps=2, order="raster")
    found = [_clock("clock", _saved(folder, "clock.safetensors", clock))]
    for kernel in ("uniform", "rate-matrix"):
        other = table(kernel)
        measured = et.measure(other, other.draw(24, 1), budget=64)
        found.append(_clock(f"clock, {kernel}", _saved(folder, f"{kernel}.safetensors", measured)))
    stored = Path(__file__).parent.parent.parent / "tests" / "stored" / "clock-orders.safetensors"
    found.append(_clock("clock of 0.1", {"old.safetensors": stored.read_bytes()}, sealed=False))
    text = packed(clock).encode()
    found.append(
        Kind(
            "carried clock",
            {"clock.txt": text},
            lambda at: unpacked((at / "clock.txt").read_bytes().decode("latin-1")),
            _clock_says,
            True,
            0.3,
        )
    )
    ways = {
        "sampler": Candidate("ancestral", grid),
        "sampler with a plan": Candidate("ancestral", plan, 4),
        "adaptive sampler": Candidate(et.Threshold(0.7)),
    }
    for name, way in ways.items():
        found.append(Kind(name, _saved(folder, "s.json", way), lambda at: Candidate.load(at / "s.json"), _way, True))
    found.append(
        Kind("schedule", _saved(folder, "g.json", grid), lambda at: et.Schedule.load(at / "g.json"), _dict, True)
    )
    found.append(Kind("plan", _saved(folder, "p.json", plan), lambda at: et.Plan.load(at / "p.json"), _dict, True))
    for name, followed in (("settings of a plan", plan), ("settings of a schedule", grid)):
        Settings.of(followed).save(folder / "s.yaml")
        files = {"s.yaml": (folder / "s.yaml").read_bytes()}
        found.append(
            Kind(name, files, lambda at: Settings.from_dict(read_yaml(at / "s.yaml")), lambda s: str(s.to_dict()), True)
        )
    return found


def _dict(thing: Any) -> str:
    return json.dumps(thing.to_dict(), sort_keys=True)


def _way(way: Candidate) -> str:
    planned = None if way.planned is None else way.planned.to_dict()
    return f"{way.sampler if isinstance(way.sampler, str) else vars(way.sampler)} {planned} {way.block_length}"


def _kept(folder: Path) -> list[Kind]:
    model = world()
    rows = et.compare(model, ["uniform", "ods"], [2], samples=4, data=model.draw(24, 1), keep=folder / "rows.json")
    settings = json.loads((folder / "rows.json").read_text())["settings"]
    (folder / "plain.json").write_text(json.dumps(rows, default=str))
    limits, size = Limits(48), {"model": "table", "seed": 3}

    def batch(first: int, last: int) -> Batch:
        return Batch({"nats": [float(k) for k in range(first, last)]}, {"steps": [1.0, 2.0]}, last - first)

    def gathered(at: Path) -> Any:
        return gather(
            batch, lambda first, last: f"{first}-{last}", limits, "nats", BatchFile(at / "batches.json", size)
        )

    gathered(folder)
    remembered(folder / "made.json", "of", lambda: {"times": [1.0, 0.5, 0.0]})
    (folder / "result.json").write_text(json.dumps({"provenance": {"seed": 1}, "rows": rows}, default=str))

    def read(name: str) -> Files:
        return {name: (folder / name).read_bytes()}

    return [
        Kind("kept rows", read("rows.json"), lambda at: KeptRows(at / "rows.json", **settings).rows, str, True),
        Kind("kept batches", read("batches.json"), gathered, str, True, 0.5),
        Kind(
            "kept results",
            read("made.json"),
            lambda at: remembered(at / "made.json", "of", lambda: {"times": [1.0, 0.5, 0.0]}),
            str,
            True,
            0.3,
        ),
        Kind("rows", read("plain.json"), lambda at: read_rows(at / "plain.json"), str),
        Kind("results", read("result.json"), lambda at: load_results(at / "result.json"), str),
    ]


def _network() -> DDiT:
    torch.manual_seed(0)
    return DDiT(SHAPE)


def _folder_of(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _model(model: Any) -> str:
    return f"{model.fingerprint} {model.length} {model.process.spec()} {model.network.config}"


class Foreign:
    """Stands for a class of another package inside a checkpoint."""

    def __init__(self) -> None:
        self._content = {"model": {"length": 4}}


def _networks(folder: Path) -> list[Kind]:
    network, process = _network(), et.Process(et.Absorbing(4), et.LogLinear())
    save_folder(Trained(network, process, 4, "tiny", {"seed": 1}), folder / "model")
    found = [Kind("model folder", _folder_of(folder / "model"), lambda at: et.load(str(at)), _model, True, 0.5)]

    weights, recipe = network.state_dict(), {"steps": 4, "cooldown": 0.3, "seed": 1}
    optimizer = torch.optim.AdamW(network.parameters())
    progress = {"recipe": recipe, "step": 2, "seconds": 1.0, "log": []}
    save_checkpoint(folder, network, copy.deepcopy(network), optimizer, progress)

    def resumed(at: Path) -> tuple[str, str]:
        fresh, average = _network(), _network()
        found = load_checkpoint(at, fresh, average, torch.optim.AdamW(fresh.parameters()), dict(recipe))
        both = {**fresh.state_dict(), **{f"average {name}": value for name, value in average.state_dict().items()}}
        return str(found), str({name: value.tolist() for name, value in both.items()})

    found.append(Kind("training run", {FILE: (folder / FILE).read_bytes()}, resumed, str, True, 0.3))

    inside = {"state_dict": {f"backbone.{name}": value for name, value in weights.items()}, "epoch": 3}
    for name, legacy in (("checkpoint", False), ("checkpoint of torch 1.5", True)):
        buffer = io.BytesIO()
        torch.save(inside, buffer, _use_new_zipfile_serialization=not legacy)
        files = {"model.ckpt": buffer.getvalue(), "config.json": CONFIG}
        found.append(Kind(name, files, lambda at: et.load(str(at)), _model, share=0.3))
    buffer = io.BytesIO()
    held = {**inside, "hyper_parameters": {"config": Foreign()}, "ema": {"shadow_params": list(network.parameters())}}
    torch.save(held, buffer)
    found.append(
        Kind("pickle of other classes", {"x.ckpt": buffer.getvalue()}, lambda at: read_pickle(at / "x.ckpt"), str)
    )

    from safetensors.torch import save

    files = {
        "model.safetensors": save(weights),
        "config.yaml": BESIDE,
    }
    found.append(Kind("checkpoint with YAML", files, lambda at: et.load(str(at)), _model, share=0.3))
    return found


def _with_transformers(folder: Path) -> list[Kind]:
    import transformers

    words = {"vocab.txt": b"[PAD]\na\nb\n[MASK]"}
    read = Kind(WORDS, words, lambda at: _tokenizer_mask(transformers, at, False), str, share=0.2)
    return [read, _masked_lm(folder / "bert")]


def _masked_lm(folder: Path) -> Kind:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(1)
    described = BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=4,
    )  # fmt: skip
    BertForMaskedLM(described).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "a", "b", "c", "d", "e", "f", "[MASK]"]))
    (folder / "generation_config.json").unlink(missing_ok=True)
    return Kind(BERT, _folder_of(folder), lambda at: et.load(str(at)), lambda m: str(m.length), share=0.02)


def _plain(folder: Path) -> list[Kind]:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(24, dtype=np.int64).reshape(6, 4))
    config = b"data:\n  S: 4\n  shape: [4]\nmodel: &m\n  d_model: 8\n  sigma: 1.0e-3\nmore: *m\n"
    return [
        Kind("array", {"data.npy": buffer.getvalue()}, lambda at: read_npy(at / "data.npy"), lambda a: repr(a)),
        Kind("YAML configuration", {"config.yaml": config}, read_config, str),
        Kind(
            "JSON configuration",
            {"config.json": b'{"model": {"length": 4}, "noise": {"type": "cosine"}}'},
            read_config,
            str,
        ),
        Kind(
            "compressed text",
            {"x.gz": zlib.compress(b"text " * 1000)},
            lambda at: inflated((at / "x.gz").read_bytes(), 10_000),
            str,
            share=0.2,
        ),
    ]
