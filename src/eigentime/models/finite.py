"""Weights that are no numbers make samples that are nothing: they are refused when they are loaded."""

from pathlib import Path

from torch import Tensor

from eigentime.errors import EigentimeError


def check_finite(weights: dict[str, Tensor], path: Path) -> None:
    """Refuse NaN and infinity."""
    for name, value in weights.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise EigentimeError(f"{path} holds NaN or infinity in {name}; get the weights again.")
