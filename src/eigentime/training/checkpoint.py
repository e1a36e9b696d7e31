"""A run's whole state in one file that appears whole or not at all, so that a killed run goes on exactly."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from eigentime.errors import EigentimeError
from eigentime.files import write_atomically
from eigentime.models.fitting import weights_hash
from eigentime.reading import Unreadable, parse_json, read_tensors

FILE = "checkpoint.safetensors"


def save_checkpoint(
    folder: Path, network: nn.Module, average: nn.Module, optimizer: Optimizer, progress: dict[str, Any]
) -> None:
    """Weights, their average, the optimiser's moments, and in the header `progress`: JSON of any kind."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.state_dict().items()}
    for index, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps(progress)
    write_atomically(folder / FILE, save(tensors, {"progress": text, "sha256": weights_hash(tensors, text)}))


def load_checkpoint(
    folder: Path, network: nn.Module, average: nn.Module, optimizer: Optimizer, recipe: dict[str, Any]
) -> dict[str, Any] | None:
    """Put a saved state back, if there is one and it belongs to this recipe; its `progress` is returned."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        tensors, metadata = read_tensors(path, "pt")
        if "sha256" in metadata and metadata["sha256"] != weights_hash(tensors, metadata["progress"]):  # 0.1 had none
            raise Unreadable("its checksum differs")
        progress: dict[str, Any] = parse_json(metadata["progress"])
        known, _ = dict(progress["recipe"]), [progress[name] for name in ("step", "seconds", "log")]
    except (KeyError, TypeError, ValueError) as error:
        raise EigentimeError(f"{path} cannot be read as a checkpoint ({error}); delete it to start again.") from None
    other = [key for key in {**recipe, **known} if known.get(key) != recipe.get(key)]
    # before the learning rate begins to fall in either, runs of different lengths are the same run
    before_cooldown = (1 - recipe["cooldown"]) * min(known["steps"], recipe["steps"])
    if other and not (other == ["steps"] and progress["step"] <= before_cooldown):
        raise EigentimeError(
            f"{folder} holds a run with another {other[0]} ({known.get(other[0])}, now {recipe.get(other[0])}); choose "
            "another folder with --out, or delete this one."
        )
    progress["recipe"] = recipe
    try:
        _restore(network, average, optimizer, tensors)
    except (RuntimeError, ValueError, KeyError) as error:
        detail = (str(error).splitlines() or [""])[-1].strip()
        raise EigentimeError(f"{path} does not fit this network ({detail}); delete it to start again.") from None
    return progress


def _restore(network: nn.Module, average: nn.Module, optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    network.load_state_dict(_part(tensors, "network."))
    average.load_state_dict(_part(tensors, "average."))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        moments.setdefault(int(index), {})[moment] = value
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
