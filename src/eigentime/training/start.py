"""Starting from another network's weights."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eigentime.errors import EigentimeError
from eigentime.models.ddit import DDiT
from eigentime.models.denoiser import Denoiser


@torch.no_grad()
def adopt(network: Denoiser, source: Denoiser) -> None:
    """Take over a network's weights.

    Vocabularies may differ: the ids that both know are copied. A network told the time that starts from one that was
    not begins with the same modulation at every time, the constant folded into the biases.
    """
    if isinstance(network, DDiT) and isinstance(source, DDiT):
        if network.config.time_conditioned and not source.config.time_conditioned:
            cond = F.silu(source.sigma_map(torch.zeros(1)))[0]
            new = {name: part for name, part in network.named_modules() if name.endswith("adaLN_modulation")}
            old = dict(source.named_modules())
            weights = {name: value for name, value in source.state_dict().items() if "adaLN" not in name}
            for name, part in new.items():
                constant = old[name]
                assert isinstance(part, nn.Linear)
                weights[f"{name}.weight"] = torch.zeros_like(part.weight)
                weights[f"{name}.bias"] = constant(cond)
            weights |= {name: value for name, value in network.state_dict().items() if "sigma_map" in name}
        else:
            weights = source.state_dict()
    elif type(network) is type(source):
        weights = source.state_dict()
    else:
        raise EigentimeError(f"A {type(network).__name__} cannot start from a {type(source).__name__}.")
    for name, value in network.state_dict().items():
        _copy(name, value, weights[name])


def _copy(name: str, target: Tensor, source: Tensor) -> None:
    """Copy the rows both have; the other axes must agree."""
    if target.shape[1:] != source.shape[1:]:
        raise EigentimeError(f"{name} has shape {tuple(source.shape)} there and {tuple(target.shape)} here.")
    rows = min(len(target), len(source)) if target.ndim else 0
    target[:rows] = source[:rows]
