"""What eigentime is tried on: each file is one experiment's data, metrics and defaults."""

from eigentime.models import Model
from eigentime.tasks import binomial, countdown, digits, images, lists, mnist, music, stories, text, trigram
from eigentime.tasks.metrics import Estimate
from eigentime.tasks.task import KERNELS, ExactTask, Judge, LawTask, Metrics, Task, generic_metrics
from eigentime.training import Recipe

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        binomial.TASK,
        countdown.TASK,
        music.TASK,
        images.TASK,
        digits.TASK,
        mnist.TASK,
        text.TASK,
        stories.TASK,
        trigram.TASK,
        lists.TASK,
    )
}
RECIPES: dict[str, tuple[Task, Recipe]] = {
    recipe.name: (task, recipe) for task in TASKS.values() for recipe in task.recipes
}
EXACT: dict[str, ExactTask] = {f"{task.name}-exact": task for task in TASKS.values() if isinstance(task, ExactTask)}
MODELS: dict[str, Task] = {**EXACT} | {name: task for name, (task, _) in RECIPES.items()}
"""Named models and the task each belongs to."""


def metrics_of(model: Model) -> Metrics:
    """The numbers that a model's samples are judged by; without a task, how varied they are."""
    return generic_metrics if model.task is None else model.task.metrics


__all__ = [
    "EXACT",
    "KERNELS",
    "MODELS",
    "RECIPES",
    "TASKS",
    "Estimate",
    "ExactTask",
    "Judge",
    "LawTask",
    "Task",
    "generic_metrics",
    "metrics_of",
]
