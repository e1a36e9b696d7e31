"""Where to step: a `Schedule` checks itself and knows where it comes from; one file a strategy. Certificates say what a
schedule costs in nats before a single sample is drawn."""

from eigentime.schedules.certificate import Certificate, certify, check_same_process
from eigentime.schedules.export import block_counts, diffusers_timesteps, flow_matching_grid, published_grid
from eigentime.schedules.jys import jys_levels
from eigentime.schedules.likelihood import LikelihoodBound, nll_bound
from eigentime.schedules.optimal import NoSchedule, reference_alphas
from eigentime.schedules.plan import Plan, is_plan, plan_order
from eigentime.schedules.planning import certify_plan, plan
from eigentime.schedules.schedule import Schedule, check_steps, check_times
from eigentime.schedules.steps_for import fewest_steps
from eigentime.schedules.strategies import (
    MEASURED,
    STRATEGIES,
    UNMEASURED,
    check_strategy,
    measured_times,
    unmeasured_times,
)

__all__ = [
    "MEASURED",
    "STRATEGIES",
    "UNMEASURED",
    "Certificate",
    "LikelihoodBound",
    "NoSchedule",
    "Plan",
    "Schedule",
    "block_counts",
    "certify",
    "certify_plan",
    "check_same_process",
    "check_steps",
    "check_strategy",
    "check_times",
    "diffusers_timesteps",
    "fewest_steps",
    "flow_matching_grid",
    "is_plan",
    "jys_levels",
    "measured_times",
    "nll_bound",
    "plan",
    "plan_order",
    "published_grid",
    "reference_alphas",
    "unmeasured_times",
]
