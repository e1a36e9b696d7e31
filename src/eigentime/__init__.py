"""eigentime: sampling schedules for discrete diffusion models, measured from the model itself.

model = et.load("countdown-exact"); clock = et.measure(model); grid = et.schedule(clock, "ods", steps=16)
"""

from eigentime.api import load, measure, sample, schedule
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.measure import (
    Clock,
    cumulative,
    curve,
    exact_costs,
    exact_path_error,
    exact_plan_error,
    exact_rates,
    wasserstein,
    wasserstein_bounds,
)
from eigentime.measure.montecarlo import package_version
from eigentime.models import Block, Independent, Ising, MarkovChain, Model, Table, wrap
from eigentime.process import (
    Absorbing,
    Cosine,
    DuoCosine,
    Exponential,
    Geometric,
    Linear,
    LogLinear,
    Noise,
    Process,
    RateMatrix,
    Uniform,
)
from eigentime.samplers import (
    ByPosterior,
    EntropyBounded,
    Klass,
    PredictorCorrector,
    Remasking,
    Threshold,
    generate_blocks,
    generate_windows,
)
from eigentime.schedules import (
    Certificate,
    LikelihoodBound,
    Plan,
    Schedule,
    block_counts,
    diffusers_timesteps,
    flow_matching_grid,
    nll_bound,
    path_error,
    plan,
    published_grid,
    steps_for,
)
from eigentime.tasks import Estimate

__version__ = package_version()

__all__ = [
    "Absorbing",
    "Block",
    "ByPosterior",
    "Certificate",
    "Clock",
    "Cosine",
    "DuoCosine",
    "EigentimeError",
    "EntropyBounded",
    "Estimate",
    "Exponential",
    "Geometric",
    "Independent",
    "Ising",
    "Klass",
    "LikelihoodBound",
    "Linear",
    "LogLinear",
    "MarkovChain",
    "Model",
    "Noise",
    "Plan",
    "PredictorCorrector",
    "Process",
    "RateMatrix",
    "Remasking",
    "Schedule",
    "Table",
    "Threshold",
    "Uniform",
    "block_counts",
    "compare",
    "cumulative",
    "curve",
    "diffusers_timesteps",
    "exact_costs",
    "exact_path_error",
    "exact_plan_error",
    "exact_rates",
    "flow_matching_grid",
    "generate_blocks",
    "generate_windows",
    "load",
    "measure",
    "nll_bound",
    "path_error",
    "plan",
    "published_grid",
    "sample",
    "schedule",
    "steps_for",
    "wasserstein",
    "wasserstein_bounds",
    "wrap",
]
