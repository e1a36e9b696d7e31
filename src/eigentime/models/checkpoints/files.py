"""Where a checkpoint's files are: a local folder or file, or a repository of the hub."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from eigentime.errors import EigentimeError
from eigentime.models.checkpoints.unpickle import read_pickle
from eigentime.models.finite import check_finite
from eigentime.models.fitting import Network, fitting
from eigentime.reading import Unreadable, read_json, read_tensors, read_yaml

WEIGHTS = ("model.safetensors", "pytorch_model.bin", "checkpoint.pt", "ckpt.pt", "checkpoint.pth", "model.ckpt")
CONFIGS = ("config.json", "config.yaml", "config_001.yaml", ".hydra/config.yaml")
PICKLES = (".bin", ".pt", ".pth", ".ckpt")


@dataclass
class Checkpoint:
    """What was found: weights under their stored names, the configuration beside them, and all else a file held."""

    source: str
    path: Path
    config: dict[str, Any]
    weights: dict[str, Tensor]
    extra: dict[str, Any] = field(default_factory=dict)


def find(source: str, revision: str | None = None) -> Path:
    """A local path as it is; a hub id from the cache, or downloaded where that is allowed."""
    path = Path(source)
    if path.exists():
        return path
    if source.count("/") != 1 or source.startswith((".", "/")):
        raise EigentimeError(f"There is no checkpoint {source}: neither a file, a folder nor a hub id owner/name.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError:
        raise EigentimeError("Loading from the hub needs huggingface_hub: pip install 'eigentime[hub]'.") from None
    patterns = ["*.json", "*.yaml", "*.txt", "*.model", "*.py", "*.safetensors", *(f"*{suffix}" for suffix in PICKLES)]
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=patterns))
    except (LocalEntryNotFoundError, ConnectionError, OSError) as error:
        if isinstance(error, HfHubHTTPError):
            raise EigentimeError(f"The hub does not give out {source} ({str(error).splitlines()[0]}).") from None
        offline = " (offline mode is on)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise EigentimeError(
            f"{source} is not in the local hub cache and cannot be downloaded here{offline}: fetch it where there is a "
            f"network with `hf download {source}`, or give the path of a local copy."
        ) from None
    except (HfHubHTTPError, HFValidationError) as error:
        raise EigentimeError(f"The hub does not give out {source} ({str(error).splitlines()[0]}).") from None


def read(source: str, path: Path, config: dict[str, Any]) -> Checkpoint:
    """The weights of a checkpoint; nothing that it holds is executed."""
    folder = path if path.is_dir() else path.parent
    file = path if path.is_file() else next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if file is None:
        others = sorted(
            found for found in folder.iterdir() if found.suffix in (".safetensors", *PICKLES) and not _is_ours(found)
        )
        if not others:
            raise EigentimeError(f"{folder} holds no weights (none of {', '.join(WEIGHTS)}).")
        if len(others) > 1:
            names = ", ".join(found.name for found in others)
            raise EigentimeError(f"{folder} holds several files that may be the weights ({names}); give one of them.")
        file = others[0]
    if file.suffix == ".safetensors":
        try:
            return Checkpoint(source, file, config, read_tensors(file, "pt")[0])
        except Unreadable as error:
            raise EigentimeError(f"{file} is not a whole safetensors file ({error}).") from None
    content = read_pickle(file)
    if not isinstance(content, dict):
        raise EigentimeError(f"{file} holds no dictionary of weights.")
    inner = next((content[key] for key in ("state_dict", "model") if isinstance(content.get(key), dict)), content)
    weights = {str(name): value for name, value in inner.items() if isinstance(value, Tensor)}
    rest = {key: value for key, value in {**content, **inner}.items() if not isinstance(value, Tensor)}
    if not weights:
        raise EigentimeError(f"{file} holds no weights.")
    return Checkpoint(source, file, config, weights, rest)


def _is_ours(file: Path) -> bool:
    """Whether a file says that it is something else of this package, such as a clock beside the weights."""
    if file.suffix != ".safetensors":
        return False
    try:
        with safe_open(file, "pt") as content:
            return str((content.metadata() or {}).get("format", "")).startswith("eigentime")
    except (SafetensorError, OSError):
        return False  # reading it as weights will say what is wrong with it


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration beside the weights, JSON or YAML; empty where there is none."""
    for name in CONFIGS:
        path = folder / name
        if not path.is_file():
            continue
        try:
            content = read_json(path) if path.suffix == ".json" else read_yaml(path)
        except ImportError:
            raise EigentimeError(f"Reading {path} needs PyYAML: pip install pyyaml.") from None
        except Unreadable as error:
            raise EigentimeError(f"{path} is not a readable configuration ({error}).") from None
        if not isinstance(content, dict):
            raise EigentimeError(f"{path} holds no settings.")
        return content
    return {}


def with_shadow(network: nn.Module, weights: dict[str, Tensor], shadow: Any, path: Path) -> dict[str, Tensor]:
    """Averaged weights, stored as a list in the order of the raw ones, put in their place; buffers have none."""
    parameters = {name for name, _ in network.named_parameters()}
    names = [name for name in weights if name in parameters]
    values = [value for value in shadow if isinstance(value, Tensor)]
    if len(values) != len(names) or any(v.shape != weights[n].shape for n, v in zip(names, values, strict=False)):
        raise EigentimeError(f"{path}: its {len(values)} averaged weights do not fit the network's {len(names)}.")
    return {**weights, **dict(zip(names, values, strict=True))}


def make_fitting(make: Callable[[], Network], weights: dict[str, Tensor], path: Path) -> Network:
    """A network, made after it is known that the file holds its weights."""
    try:
        return fitting(make, weights)
    except Unreadable as error:
        raise EigentimeError(f"{path} does not fit its configuration: {error}.") from None


def check_names(network: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse weights that are missing or too many."""
    wrong = sorted(set(network.state_dict()) ^ set(weights))
    if wrong:
        what = "lacks" if wrong[0] not in weights else "holds"
        raise EigentimeError(f"{path} {what} {wrong[0]}, which does not fit this kind of network.")


def check_values(network: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse weights of another shape than the network's, and such as are no numbers."""
    check_finite(weights, path)
    for name, value in network.state_dict().items():
        if value.shape != weights[name].shape:
            raise EigentimeError(
                f"{path}: {name} has shape {tuple(weights[name].shape)}, expected {tuple(value.shape)}."
            )
