"""Starting from another network's weights."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eigentime.errors import EigentimeError
from eigentime.models.denoiser import Denoiser


@torch.no_grad()
def adopt(network: Denoiser, source: Denoiser) -> None:
    """Take over a network's weights.

    Vocabularies may differ: the ids that both know are copied. A network told the time that starts from one that was
    not begins with the same modulation at every time, the constant folded into the biases.
    """
    if type(network) is not type(source):
        raise EigentimeError(f"A {type(network).__name__} cannot start from a {type(source).__name__}.")
    weights = source.state_dict()
    if network.modulated and network.config.time_conditioned and not source.config.time_conditioned:
        weights |= _without_time(network, source, network.modulated)
    for name, value in network.state_dict().items():
        _copy(name, value, weights[name])


def _without_time(network: Denoiser, source: Denoiser, modulated: str) -> dict[str, Tensor]:
    """Weights with which `network` does at every time what `source` does at σ = 0."""
    cond = F.silu(source.get_submodule("sigma_map")(torch.zeros(1)))[0]
    weights = {name: value for name, value in network.state_dict().items() if name.startswith("sigma_map.")}
    for name, part in source.named_modules():
        if name.endswith(modulated):
            assert isinstance(part, nn.Linear)
            weights |= {f"{name}.weight": torch.zeros_like(part.weight), f"{name}.bias": part(cond)}
    return weights


def _copy(name: str, target: Tensor, source: Tensor) -> None:
    """Copy the rows both have; the other axes must agree."""
    if target.shape[1:] != source.shape[1:]:
        raise EigentimeError(f"{name} has shape {tuple(source.shape)} there and {tuple(target.shape)} here.")
    rows = min(len(target), len(source)) if target.ndim else 0
    target[:rows] = source[:rows]
