"""A trained network as a model, and the folder it is kept in: weights as safetensors, all else as JSON beside them."""

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import save
from torch import Tensor

from eigentime.arguments import whole, words
from eigentime.errors import EigentimeError
from eigentime.files import check_seal, make_folder, sealed, write_atomically
from eigentime.models.base import SplitModel, weights_fingerprint, width_of
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.denoiser import Denoiser
from eigentime.models.finite import check_finite
from eigentime.models.fitting import fitting, weights_hash
from eigentime.models.mlp import MLP, MLPConfig
from eigentime.models.mosaic import Mosaic, MosaicConfig
from eigentime.models.piano import PianoConfig, PianoTransformer
from eigentime.models.unet import UNet, UNetConfig
from eigentime.process import Process, process_from_spec
from eigentime.reading import DAMAGED, Unreadable, first_line, read_json, read_tensors

NetworkConfig = DDiTConfig | MLPConfig | MosaicConfig | PianoConfig | UNetConfig
NETWORKS: dict[str, tuple[type[NetworkConfig], type[Denoiser]]] = {
    "ddit": (DDiTConfig, DDiT),
    "mlp": (MLPConfig, MLP),
    "mosaic": (MosaicConfig, Mosaic),
    "piano": (PianoConfig, PianoTransformer),
    "unet": (UNetConfig, UNet),
}
FORMAT, VERSION = "eigentime-model", 1
WEIGHTS, CONFIG, MADE_FOR = "model.safetensors", "config.json", "weights_sha256"


def build(config: NetworkConfig) -> Denoiser:
    """The network that a configuration describes, freshly initialised."""
    for described, network in NETWORKS.values():
        if isinstance(config, described):
            return network(config)
    raise EigentimeError(f"No network is described by {type(config).__name__}.")


class Trained(SplitModel):
    """A network of ours with the process it was trained on."""

    def __init__(self, network: Denoiser, process: Process, length: int, name: str, about: dict[str, Any]) -> None:
        self.network, self.process, self.length, self.name = network.eval(), process, length, name
        self.predicts = "score" if network.config.head == "score" else "posterior"
        self.time_dependent = network.config.time_conditioned
        classes = getattr(network.config, "classes", 0)
        self.no_class = classes - 1 if classes else None
        self.precision = torch.float32
        self.about = about
        """Where it comes from: recipe, training, evaluation."""

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def width(self) -> int:
        return width_of(self.network)

    def to(self, device: torch.device | str) -> "Trained":
        self.network.to(device)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        """Matrices are multiplied in this precision; norms and noise stay in single, as in the published networks."""
        self.precision = dtype

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.precision)

    @property
    def fingerprint(self) -> str:
        return weights_fingerprint(self.name, self.network.state_dict())

    def hidden(
        self, x: Int[Tensor, "b length"], t: Float[Tensor, " b"], cond: Tensor | None = None
    ) -> Float[Tensor, "b length d"]:
        """Everything before the vocabulary projection."""
        time = t if self.network.takes == "t" else self.process.noise.sigma(t)
        classes = None if cond is None else cond.to(self.device)
        with torch.no_grad(), self._autocast():
            return self.network.hidden(x.to(self.device), time.to(self.device, torch.float32), classes)

    def head(self, rows: Float[Tensor, "... d"]) -> Float[Tensor, "... size"]:
        with torch.no_grad(), self._autocast():
            logs = self.network.head(rows).float()
        if self.predicts == "score":
            return logs
        if self.network.config.head == "cavity":
            logs = self.process.dense.with_evidence(logs, rows[..., -1].long(), rows[..., -2])
        return self.process.kernel.forbid_(logs)


def save_folder(model: Trained, folder: str | Path, dtype: torch.dtype = torch.float32) -> None:
    """Write weights and configuration; the configuration last, so that a folder with one is complete."""
    folder = make_folder(folder)
    weights = {name: value.detach().to("cpu", dtype).contiguous() for name, value in model.network.state_dict().items()}
    kind = next(kind for kind, (_, network) in NETWORKS.items() if isinstance(model.network, network))
    config = {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "length": model.length,
        "process": model.process.spec(),
        "network": {"kind": kind, **asdict(model.network.config)},  # type: ignore[call-overload]
        "about": model.about,
    }
    write_atomically(folder / WEIGHTS, save(weights))
    config[MADE_FOR] = weights_hash(weights)
    write_atomically(folder / CONFIG, json.dumps(sealed(config), indent=1) + "\n")


def is_model_folder(folder: str | Path) -> bool:
    """Whether a folder says that it is ours."""
    try:
        return bool(read_json(Path(folder) / CONFIG).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def load_folder(folder: str | Path) -> Trained:
    """Read a model folder; weights of any precision are used in float32."""
    folder = Path(folder)
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise EigentimeError(f"{folder} is not a model folder: {file} is missing.")
    config = _config(folder)
    try:
        kind = config["network"].pop("kind")
        described, network_class = NETWORKS[kind]
        shape = described(**config["network"])
        process = process_from_spec(config["process"])
        length, name = whole(1)(config["length"], "length"), words(config["name"], "name")
        if process.kernel.size != shape.size:
            raise Unreadable(f"the process has {process.kernel.size} symbols, the network {shape.size}")
    except EigentimeError as error:
        raise EigentimeError(f"{folder / CONFIG} does not describe a model: {error}") from None
    except DAMAGED as error:
        raise EigentimeError(f"{folder / CONFIG} does not describe a model ({first_line(error)}).") from None
    try:
        stored = read_tensors(folder / WEIGHTS, "pt")[0]
        if MADE_FOR in config and config[MADE_FOR] != weights_hash(stored):
            raise Unreadable("its checksum differs")
        network = fitting(lambda: network_class(shape), stored)
        weights = {name: value.float() for name, value in stored.items()}
        check_finite(weights, folder / WEIGHTS)
        network.load_state_dict(weights)
        return Trained(network, process, length, name, config.get("about", {}))
    except EigentimeError:
        raise
    except (RuntimeError, *DAMAGED) as error:
        detail = (str(error).splitlines() or [type(error).__name__])[-1].strip()
        raise EigentimeError(f"{folder / WEIGHTS} does not hold the weights of this model ({detail}).") from None


def _config(folder: Path) -> dict[str, Any]:
    """What a folder says of itself, as it was written."""
    try:
        config: dict[str, Any] = read_json(folder / CONFIG)
        ours = config.get("format") == FORMAT and config.get("version") == VERSION
    except (ValueError, AttributeError) as error:
        raise EigentimeError(f"{folder / CONFIG} does not describe a model ({error}).") from None
    if not ours:
        raise EigentimeError(f"{folder} is not a model folder of this version ({FORMAT} {VERSION}).")
    check_seal(config, folder / CONFIG, "if you changed it yourself, take its sha256 out")
    return config
