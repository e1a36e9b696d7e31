"""Entropy production, activity, mobility and bounds from a model's outputs: exactly where worlds are small enough, by
Monte Carlo for any model. A measuring pass returns a `Clock`, pure data from which every schedule is made."""

from eigentime.measure.clock import Clock
from eigentime.measure.curves import Curve, cumulative, curve, wasserstein, wasserstein_bounds
from eigentime.measure.exact import ExactRates, exact_costs, exact_path_error, exact_plan_error, exact_rates
from eigentime.measure.montecarlo import monte_carlo

__all__ = [
    "Clock",
    "Curve",
    "ExactRates",
    "cumulative",
    "curve",
    "exact_costs",
    "exact_path_error",
    "exact_plan_error",
    "exact_rates",
    "monte_carlo",
    "wasserstein",
    "wasserstein_bounds",
]
