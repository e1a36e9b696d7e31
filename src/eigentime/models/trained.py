"""A trained network as a model, and the folder it is kept in: weights as safetensors, all else as JSON beside them."""

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from eigentime.errors import EigentimeError
from eigentime.files import make_folder, write_atomically
from eigentime.models.base import SplitModel, weights_fingerprint, width_of
from eigentime.models.ddit import DDiT, DDiTConfig
from eigentime.models.denoiser import Denoiser
from eigentime.models.finite import check_finite
from eigentime.models.mlp import MLP, MLPConfig
from eigentime.models.mosaic import Mosaic, MosaicConfig
from eigentime.models.piano import PianoConfig, PianoTransformer
from eigentime.models.unet import UNet, UNetConfig
from eigentime.process import Process, process_from_spec

NetworkConfig = DDiTConfig | MLPConfig | MosaicConfig | PianoConfig | UNetConfig
NETWORKS: dict[str, tuple[type[NetworkConfig], type[Denoiser]]] = {
    "ddit": (DDiTConfig, DDiT),
    "mlp": (MLPConfig, MLP),
    "mosaic": (MosaicConfig, Mosaic),
    "piano": (PianoConfig, PianoTransformer),
    "unet": (UNetConfig, UNet),
}
FORMAT, VERSION = "eigentime-model", 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"


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
    write_atomically(folder / CONFIG, json.dumps(config, indent=1) + "\n")


def is_model_folder(folder: str | Path) -> bool:
    """Whether a folder says that it is ours."""
    try:
        return bool(json.loads((Path(folder) / CONFIG).read_text()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def load_folder(folder: str | Path) -> Trained:
    """Read a model folder; weights of any precision are used in float32."""
    folder = Path(folder)
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise EigentimeError(f"{folder} is not a model folder: {file} is missing.")
    try:
        config = json.loads((folder / CONFIG).read_text())
        if config.get("format") != FORMAT or config.get("version") != VERSION:
            raise EigentimeError(f"{folder} is not a model folder of this version ({FORMAT} {VERSION}).")
        kind = config["network"].pop("kind")
        described, network_class = NETWORKS[kind]
        network = network_class(described(**config["network"]))
        process = process_from_spec(config["process"])
        weights = {name: value.float() for name, value in load_file(folder / WEIGHTS).items()}
        check_finite(weights, folder / WEIGHTS)
        network.load_state_dict(weights)
        return Trained(network, process, config["length"], config["name"], config["about"])
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise EigentimeError(f"{folder / CONFIG} does not describe a model ({error}).") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        detail = str(error).splitlines()[-1].strip()
        raise EigentimeError(f"{folder / WEIGHTS} does not hold the weights of this model ({detail}).") from None
