"""A file's weights: a network is made only after a shadow without memory has shown that the file holds its own."""

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from eigentime.reading import Unreadable

Network = TypeVar("Network", bound=nn.Module)


def fitting(make: Callable[[], Network], weights: Mapping[str, Tensor]) -> Network:
    """What `make` makes, if these weights are its own: sizes that a file announces cost nothing before."""
    with torch.device("meta"):
        expected = make().state_dict()
    wrong = sorted(set(expected) ^ set(weights))
    if wrong:
        raise Unreadable(f"it {'lacks' if wrong[0] in expected else 'holds'} {wrong[0]}")
    for name, value in expected.items():
        if value.shape != weights[name].shape:
            raise Unreadable(f"{name} has shape {tuple(weights[name].shape)}, expected {tuple(value.shape)}")
    return make()


def weights_hash(weights: Mapping[str, Tensor], text: str = "") -> str:
    """A checksum of tensors with their names, and of a text beside them."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(weights):
        digest.update(f"{name} {weights[name].dtype} {tuple(weights[name].shape)}".encode())
        digest.update(weights[name].contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
