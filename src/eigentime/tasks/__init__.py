"""What eigentime is tried on: each file is one experiment's data, metrics and defaults."""

from eigentime.tasks import binomial, countdown, digits, images, music, stories, text, trigram
from eigentime.tasks.metrics import Estimate
from eigentime.tasks.task import GENERIC, KERNELS, ExactTask, Judge, LawTask, Task
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


def judge_of(model: str) -> Judge:
    """What samples of a named model are judged by; of any other, by their diversity alone."""
    return MODELS.get(model, GENERIC)


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
    "judge_of",
]
