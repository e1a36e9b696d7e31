"""eigentime: sampling schedules for discrete diffusion models, measured from the model itself.

model = et.load("countdown-exact"); clock = et.measure(model); grid = et.schedule(clock, "ods", steps=16)
"""

import importlib
from types import ModuleType

from eigentime.api import load, measure, merge, sample, schedule
from eigentime.blocks import BlockClocks, measure_blocks
from eigentime.certificates import path_error, steps_for
from eigentime.code import package_version
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.likelihood import nll, reverse_kl
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
from eigentime.models import Block, Ending, Independent, Ising, MarkovChain, Model, Table, wrap
from eigentime.process import (
    Absorbing,
    Cosine,
    DuoCosine,
    Exponential,
    Geometric,
    Linear,
    LogLinear,
    Mixture,
    Noise,
    Process,
    RateMatrix,
    Uniform,
)
from eigentime.recommend import Recommendation, recommend
from eigentime.report import drawings as drawings  # registers what plot() draws
from eigentime.reporting import report
from eigentime.samplers import (
    Ancestral,
    Apart,
    Candidate,
    Confidence,
    EntropyBounded,
    Euler,
    FirstHitting,
    Klass,
    LowestEntropy,
    Margin,
    OrderBounded,
    PredictorCorrector,
    Prefix,
    Remasking,
    Sampler,
    Samples,
    Shaping,
    TauLeaping,
    Threshold,
    Trapezoidal,
    generate_blocks,
    generate_canvases,
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
    plan,
    published_grid,
)
from eigentime.tasks import Estimate

__version__ = package_version()

ENGINES = ("diffusers", "gemma")
"""Modules of `eigentime.engines` that are loaded when they are first used: et.diffusers, …"""


def __getattr__(name: str) -> ModuleType:
    if name in ENGINES:
        return importlib.import_module(f"eigentime.engines.{name}")
    raise AttributeError(f"module 'eigentime' has no attribute {name!r}")


__all__ = [
    "Absorbing",
    "Ancestral",
    "Apart",
    "Block",
    "BlockClocks",
    "Candidate",
    "Certificate",
    "Clock",
    "Confidence",
    "Cosine",
    "DuoCosine",
    "EigentimeError",
    "Ending",
    "EntropyBounded",
    "Estimate",
    "Euler",
    "Exponential",
    "FirstHitting",
    "Geometric",
    "Independent",
    "Ising",
    "Klass",
    "LikelihoodBound",
    "Linear",
    "LogLinear",
    "LowestEntropy",
    "Margin",
    "MarkovChain",
    "Mixture",
    "Model",
    "Noise",
    "OrderBounded",
    "Plan",
    "PredictorCorrector",
    "Prefix",
    "Process",
    "RateMatrix",
    "Recommendation",
    "Remasking",
    "Sampler",
    "Samples",
    "Schedule",
    "Shaping",
    "Table",
    "TauLeaping",
    "Threshold",
    "Trapezoidal",
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
    "generate_canvases",
    "generate_windows",
    "load",
    "measure",
    "measure_blocks",
    "merge",
    "nll",
    "nll_bound",
    "path_error",
    "plan",
    "published_grid",
    "recommend",
    "report",
    "reverse_kl",
    "sample",
    "schedule",
    "steps_for",
    "wasserstein",
    "wasserstein_bounds",
    "wrap",
]
