"""A schedule in the form that other samplers take."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from eigentime.arguments import checked, kind, listed, number, whole
from eigentime.errors import EigentimeError
from eigentime.schedules.plan import Plan
from eigentime.schedules.schedule import Schedule

GRID = kind(Schedule, "a schedule: et.schedule(clock, 'ods', steps=16)")
EITHER = kind((Schedule, Plan), "a schedule or a plan: et.schedule or et.plan makes one")


@checked(schedule=GRID, train_steps=whole(1))
def diffusers_timesteps(schedule: Schedule, train_steps: int = 1000) -> list[int]:
    """Whole numbers from train_steps - 1 down, one for every evaluation: `set_timesteps(timesteps=…)` of diffusers."""
    steps = np.round(schedule.times[: schedule.evaluations] * (train_steps - 1)).astype(int)
    if np.any(np.diff(steps) >= 0):
        raise EigentimeError(f"{train_steps} training steps are too coarse for this schedule; give more of them.")
    return [int(step) for step in steps]


@checked(schedule=GRID, exponent=number(above=0, most=1e6))
def flow_matching_grid(schedule: Schedule, exponent: float = 1.0) -> Float[np.ndarray, " k"]:
    """Times from 0 (noise) up to 1 (data): `time_grid=` of flow_matching's discrete solver, for a path whose scheduler
    keeps a token with probability κ(t) = t^exponent, so that t = α^{1/exponent}."""
    grid = np.append(schedule.alphas, 1.0) if schedule.times[-1] > 0 else schedule.alphas.copy()
    grid = grid ** (1 / exponent)
    grid[0], grid[-1] = 0.0, 1.0
    return grid


@checked(schedule=GRID)
def published_grid(schedule: Schedule) -> Float[np.ndarray, " k"]:
    """Times from 1 down, in place of the `linspace(1, eps, steps + 1)` of SEDD and MDLM.

    Their loops step between neighbours (with each step's own length, not a constant one) and end with a denoising
    evaluation at the last time: K entries make K evaluations.
    """
    return schedule.times[: schedule.evaluations].copy()


@checked(schedules=listed(EITHER, 1), block_length=whole(1))
def block_counts(schedules: Sequence[Schedule | Plan], block_length: int) -> list[Int[np.ndarray, " steps"]]:
    """Tokens per step for block-wise generation (LLaDA, Dream): one schedule or plan for every block, in order."""
    return [
        np.diff(entry.stops(block_length)) if isinstance(entry, Plan) else entry.counts(block_length)
        for entry in schedules
    ]
