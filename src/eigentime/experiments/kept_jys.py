"""JYS schedules that are searched once and kept beside an experiment's results."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from eigentime import api
from eigentime.experiments.kept import remembered
from eigentime.measure import Clock
from eigentime.models import Model
from eigentime.process.process import as_tokens
from eigentime.schedules import Schedule
from eigentime.schedules.jys import MOST_STEPS


def kept_jys(
    model: Model,
    clock: Clock,
    data: Tensor,
    fixed: Tensor | None,
    steps: Sequence[int],
    path: Path | None,
    progress: bool,
) -> dict[int, Schedule]:
    """JYS schedules of 1, 2, 4 … steps, as many as it can make of those asked for, searched once for the same sequences
    and a network on which the clock is the same."""
    data = as_tokens(data, "The data")
    most = max((count for count in steps if count <= MOST_STEPS), default=1)

    def make() -> dict[str, Any]:
        found = api.jys_schedules(model, data, most, fixed, 42, progress)
        return {str(count): [grid.times.tolist(), grid.provenance] for count, grid in found.items()}

    kept = remembered(path, made_of(data, model.name, clock.fingerprint, most), make) if path else make()
    return {
        int(count): Schedule.from_times(times, model.process, "jys", provenance)
        for count, (times, provenance) in kept.items()
    }


def made_of(data: Tensor, *settings: Any) -> str:
    """A fingerprint of data and settings."""
    return hashlib.sha256(data.numpy().tobytes() + repr(settings).encode()).hexdigest()
