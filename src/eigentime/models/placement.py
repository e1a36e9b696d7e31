"""Where networks run and in which precision, as users name them."""

from typing import Any

import torch

from eigentime.errors import EigentimeError

PRECISIONS = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def check_device(device: Any) -> torch.device:
    """A device that this machine has."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        detail = (str(error).splitlines() or ["unknown"])[0]
        raise EigentimeError(f"There is no device {device!r} here ({detail}); try device='cpu'.") from None
    return found


def check_dtype(dtype: Any) -> torch.dtype:
    """A precision that networks can compute in."""
    for name, found in PRECISIONS.items():
        if dtype is found or (isinstance(dtype, str) and dtype == name):
            return found
    raise EigentimeError(f"dtype must be one of {', '.join(PRECISIONS)}, not {dtype!r}.")


def widest(device: torch.device) -> torch.dtype:
    """The most precise floating type of a device: where nearly equal laws are compared, rows are widened to it."""
    try:
        torch.zeros(1, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return torch.float32
    return torch.float64
