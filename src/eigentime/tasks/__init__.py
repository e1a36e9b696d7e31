"""What eigentime is tried on: each file is one experiment's data, metrics and defaults."""

from eigentime.tasks import binomial, countdown
from eigentime.tasks.metrics import Estimate
from eigentime.tasks.task import KERNELS, Task, generic_metrics

TASKS: dict[str, Task] = {task.name: task for task in (binomial.TASK, countdown.TASK)}
MODELS: dict[str, Task] = {f"{task.name}-exact": task for task in TASKS.values()}
"""Named models and the task each belongs to."""

__all__ = ["KERNELS", "MODELS", "TASKS", "Estimate", "Task", "generic_metrics"]
