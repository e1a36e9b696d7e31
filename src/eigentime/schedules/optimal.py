"""ODS, the optimal discrete schedule: the grid of least path KL for a factorised sampler, for every K at once.

Σ_steps TC(x_s | x_t) is additive over steps, so dynamic programming over the measured costs finds the best schedule and
its error in nats.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int

from eigentime.errors import EigentimeError
from eigentime.measure.clock import Clock
from eigentime.measure.costs import Estimator, StepCosts, angle_of
from eigentime.process.laws import Law
from eigentime.schedules.paths import lightest_paths, path_nodes


class NoSchedule(EigentimeError):
    """No schedule of so many steps is possible for a sampler's token law."""


MOST_STEPS = 1024
NODES_PER_STEP = 32
"""How much finer the planning grid is than the schedule, where that stays within `MOST_STEPS` + 1 nodes."""
Array = Float[np.ndarray, " k"]
_plans: WeakKeyDictionary[Clock, dict[tuple[Any, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]] = WeakKeyDictionary()
"""Programmes that were solved, for as long as their clocks live."""


def optimal_alphas(clock: Clock, steps: int, law: Law = "exact", estimator: Estimator = "entropy") -> Array:
    """α of the best schedule with exactly `steps` steps."""
    if steps > MOST_STEPS:
        raise EigentimeError(f"ODS plans up to {MOST_STEPS} steps, not {steps}.")
    most = max(32, 1 << (steps - 1).bit_length())  # one programme serves all numbers of steps up to a power of two
    alphas, weights, previous = _plan(clock, most, law, estimator)
    if not np.isfinite(weights[steps - 1]):
        raise NoSchedule(
            f"No schedule of {steps} steps is possible for this sampler: its token law cannot follow any of them. "
            "Plan with the exact law (sampler='ancestral') instead."
        )
    return np.asarray(alphas[path_nodes(previous, steps)])


def reference_alphas(clock: Clock, steps: int = 16) -> Array:
    """A quick ODS on a coarse planning grid: what the measuring pass watches to know when to stop."""
    costs = clock.costs()
    alphas = planning_alphas(clock, costs, 129)
    _, previous = lightest_paths(costs.matrix(alphas), steps)
    return np.asarray(alphas[path_nodes(previous, steps)])


def optimal_times(clock: Clock, steps: int, law: Law = "exact", estimator: Estimator = "entropy") -> Array:
    """The same as times, from noise to data."""
    alphas = optimal_alphas(clock, steps, law, estimator)
    return np.concatenate([[1.0], clock.noise.time_of_alpha(alphas[1:-1]).numpy(), [0.0]])


def _plan(
    clock: Clock, most: int, law: Law, estimator: Estimator
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " k"], Int[np.ndarray, "k n"]]:
    """Planning grid, least errors and predecessors for every number of steps up to `most`."""
    kept = _plans.setdefault(clock, {})
    key = (most, law, estimator)
    if key not in kept:
        costs = clock.costs(law, estimator)
        alphas = planning_alphas(clock, costs, min(NODES_PER_STEP * most, MOST_STEPS) + 1)
        kept[key] = (alphas, *lightest_paths(costs.matrix(alphas), most))
    return kept[key]


def planning_alphas(clock: Clock, costs: StepCosts, size: int) -> Array:
    """The α that a schedule may use: start, a grid of what the noise curve reaches, end.

    Half of the nodes are spread evenly in angle, half by √κ, the density of the best schedule with many steps.
    """
    lowest, highest = clock.noise.alpha(1.0).item(), clock.noise.alpha(0.0).item()
    angles = np.linspace(angle_of(np.array(lowest)), angle_of(np.array(highest)), 4097)
    fine = np.cos(angles) ** 2
    curvature = np.nan_to_num(costs.curvature(fine), nan=0.0, posinf=0.0)  # infinite where a law cannot follow
    density = np.sqrt(curvature) * np.sin(2 * angles)  # |dα/dθ| = sin 2θ
    even = np.full_like(density, 1.0)
    mixed = even / even.sum() + (density / density.sum() if density.sum() > 0 else even / even.sum())
    progress = np.concatenate([[0.0], np.cumsum((mixed[1:] + mixed[:-1]) / 2)])
    inner = np.interp(np.linspace(0, progress[-1], size)[1:-1], progress, fine)
    start = 0.0 if clock.absorbing else lowest
    return np.concatenate([[start], inner, [1.0]])
