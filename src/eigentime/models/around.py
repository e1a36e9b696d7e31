"""A model that stands around another one: it changes what that one is asked, or what it answers."""

from typing import Self

import torch

from eigentime.models.base import Model


class Around(Model):
    """Lives where the inner `model` lives, with its precision and its width."""

    model: Model

    @property
    def device(self) -> torch.device:
        return self.model.device

    def to(self, device: torch.device | str) -> Self:
        self.model = self.model.to(device)
        return self

    def cast(self, dtype: torch.dtype) -> None:
        self.model.cast(dtype)

    @property
    def splits(self) -> bool:
        return self.model.splits

    @property
    def width(self) -> int:
        return self.model.width
