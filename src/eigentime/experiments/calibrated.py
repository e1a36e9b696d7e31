"""Adaptive rules at equal cost: the setting with which a rule takes about as many evaluations as it should."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from eigentime.likelihood import taught_cost
from eigentime.models import Model
from eigentime.samplers import Sampler

POINTS = 10
"""Settings that are tried."""


@dataclass(frozen=True)
class Rule:
    """A kind of adaptive sampler with one setting, tried between two ends, evenly on a logarithmic scale."""

    make: Callable[[float], Sampler]
    bold: float
    """The setting with the fewest evaluations."""
    careful: float

    def settings(self) -> list[float]:
        """From bold to careful."""
        return [float(value) for value in np.geomspace(self.bold, self.careful, POINTS)]

    def sampler(self, setting: float) -> Sampler:
        """The rule with that setting, to two digits."""
        return self.make(float(f"{setting:.2g}"))


def evaluations_of(
    model: Model,
    rule: Rule,
    data: Int[Tensor, "n length"],
    most: float,
    fixed: Bool[Tensor, "n length"] | None = None,
) -> list[float]:
    """Evaluations per sequence at every setting, counted on data that are taught, of which `fixed` tokens are given;
    bolder to more careful, up to the first that takes more than `most`."""
    found: list[float] = []
    for setting in rule.settings():
        found.append(float(taught_cost(model, data, rule.sampler(setting), None, fixed=fixed)[1].mean()))
        if found[-1] > most:
            break
    return found


def setting_for(rule: Rule, evaluations: Sequence[float], target: float) -> float | None:
    """Between the settings that were tried, log against log; None where no setting comes near the target."""
    costs = np.maximum.accumulate(evaluations)
    if not costs[0] <= target <= costs[-1]:
        return None
    tried = np.log(rule.settings()[: len(costs)])
    return float(np.exp(np.interp(np.log(target), np.log(costs), tried)))
