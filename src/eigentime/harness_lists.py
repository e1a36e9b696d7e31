"""The list operations as tasks of the LM Evaluation Harness, for any model: lists_copy, lists_shuffle, …

A document is a prompt in words and its operation decides about the answer: right is every list that it allows. Nothing
is downloaded; the harness takes the task objects that `list_task` makes.
"""

from collections.abc import Callable
from typing import Any

import torch

from eigentime.errors import EigentimeError
from eigentime.models.list_operations import OPERATIONS
from eigentime.tasks import lists

try:
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask
except ImportError:
    raise EigentimeError("The evaluation harness needs lm-eval: pip install 'eigentime[eval]'.") from None

PREFIX = "lists_"
TASKS = {f"{PREFIX}{name.replace('-', '_')}": name for name in OPERATIONS}
"""Names of tasks and their operations."""
DOCUMENTS = 512


def list_task(name: str, documents: int = DOCUMENTS, seed: int = 0) -> ConfigurableTask:
    """A task by name, with so many prompts."""
    if name not in TASKS:
        raise EigentimeError(f"Unknown list task {name!r}; known are {', '.join(TASKS)}.")
    words, model = lists.Words(), lists.exact(operations=[TASKS[name]])
    drawn = model.draw(documents, seed)

    def dataset(**_: Any) -> dict[str, Any]:
        texts = [(words.decode(row[: model.given]), words.decode(row[model.given :])) for row in drawn.tolist()]
        rows = [{"prompt": prompt, "answer": answer} for prompt, answer in texts]
        return {"test": Dataset.from_list(rows)}

    return ConfigurableTask(
        config={
            "task": name,
            "custom_dataset": dataset,
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": _of("prompt"),
            "doc_to_target": _of("answer"),
            "process_results": right,
            "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
            "generation_kwargs": {
                "until": ["\n"],
                "max_gen_toks": lists.LENGTH,
                "do_sample": True,
                "temperature": 1.0,
            },
            "metadata": {"version": 1.0},
        }
    )


def _of(part: str) -> Callable[[dict[str, str]], str]:
    return lambda document: document[part]


def right(document: dict[str, str], results: list[str]) -> dict[str, float]:
    """Whether the operation allows the answer; words that are no names, or too many or few of them, are wrong."""
    words = lists.Words()
    try:
        answer = words.encode(results[0])
    except EigentimeError:
        return {"acc": 0.0}
    prompt = words.encode(document["prompt"])
    if len(answer) != lists.LENGTH:
        return {"acc": 0.0}
    return {"acc": float(lists.exact().allowed(torch.tensor([[*prompt, *answer]])))}
