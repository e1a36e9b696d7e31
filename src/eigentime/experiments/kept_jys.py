"""JYS schedules that are searched once and kept beside an experiment's results."""

import hashlib
from pathlib import Path
from typing import Any

from torch import Tensor

from eigentime import api
from eigentime.models import Model
from eigentime.report.kept import remembered
from eigentime.schedules import Schedule


def kept_jys(
    model: Model, data: Tensor, fixed: Tensor | None, steps: int, path: Path, progress: bool
) -> dict[int, Schedule]:
    """JYS schedules of 1, 2, 4 … `steps` steps, made once for the same network, sequences and steps."""

    def make() -> dict[str, Any]:
        found = api.jys_schedules(model, data, steps, fixed, 42, progress)
        return {str(count): [grid.times.tolist(), grid.provenance] for count, grid in found.items()}

    kept = remembered(path, made_of(data, model.name, steps), make)
    return {
        int(count): Schedule.from_times(times, model.process, "jys", provenance)
        for count, (times, provenance) in kept.items()
    }


def made_of(data: Tensor, *settings: Any) -> str:
    """A fingerprint of data and settings."""
    return hashlib.sha256(data.numpy().tobytes() + repr(settings).encode()).hexdigest()
