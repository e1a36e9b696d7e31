"""What eigentime is tried on: each file is one experiment's data, metrics and defaults."""

from eigentime.tasks import binomial, countdown, digits, images, music, stories, text, trigram
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
        text.TASK,
        stories.TASK,
        trigram.TASK,
    )
}
RECIPES: dict[str, tuple[Task, Recipe]] = {
    recipe.name: (task, recipe) for task in TASKS.values() for recipe in task.recipes
}
EXACT: dict[str, ExactTask] = {f"{task.name}-exact": task for task in TASKS.values() if isinstance(task, ExactTask)}
MODELS: dict[str, Task] = {**EXACT} | {name: task for name, (task, _) in RECIPES.items()}
"""Named models and the task each belongs to."""


def judge_of(model: str) -> Judge | None:
    """What samples of a named model are judged by; of any other nobody knows what is good."""
    return MODELS.get(model)


def metrics_of(model: str) -> Metrics:
    """The numbers of a named model's samples; of any other, how varied they are."""
    judge = judge_of(model)
    return generic_metrics if judge is None else judge.metrics


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
    "judge_of",
    "metrics_of",
]
