"""`eigentime evaluate`: accuracy against tokens per forward on tasks of the LM Evaluation Harness."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from eigentime.cli.options import Device, Seed, console, read_list, read_numbers


def evaluate(
    model: Annotated[str, typer.Argument(help="A masked model: bundled, a folder, or a hub id with its tokenizer.")],
    tasks: Annotated[str, typer.Option(help="Comma-separated tasks of the harness, or ours: lists_shuffle, ….")],
    samplers: Annotated[
        str,
        typer.Option(help="Comma-separated: schedules (cosine), NAME@SCHEDULE, threshold:0.8, or files (plan.json)."),
    ] = "uniform,cosine,confidence@uniform",
    steps: Annotated[str, typer.Option(help="Evaluations of an answer, for what follows a schedule.")] = "4,8,16,32",
    out: Annotated[Path, typer.Option(help="Folder for evaluation.json and evaluation.png.")] = Path("evaluation"),
    limit: Annotated[int | None, typer.Option(help="Questions of each task at most.")] = None,
    metric: Annotated[str | None, typer.Option(help="Of the harness, where a task has several.")] = None,
    include_path: Annotated[str | None, typer.Option(help="Folder with tasks of one's own, as YAML files.")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of prompt and answer, for models that take any.")] = None,
    block_length: Annotated[int | None, typer.Option(help="Tokens of a block (default: the whole answer).")] = None,
    batch_size: Annotated[int, typer.Option(help="Prompts at a time; answers do not depend on it.")] = 8,
    device: Device = None,
    trust_remote_code: Annotated[bool, typer.Option(help="Run Python code that comes with a checkpoint.")] = False,
    seed: Seed = 0,
) -> None:
    """Draw accuracy against tokens per forward for any set of samplers. Interrupt it; the same command goes on.

    Example: eigentime evaluate lists --tasks lists_shuffle --samplers uniform,counted,threshold:0.4 --steps 2,4,8
    """
    from eigentime.evaluation import Accuracy, described  # needs lm-eval

    experiment = Accuracy(
        model=model,
        tasks=read_list(tasks, "tasks"),
        samplers=read_list(samplers, "samplers"),
        steps=read_numbers(steps, "steps"),
        limit=limit,
        metric=metric,
        include_path=include_path,
        length=length,
        block_length=block_length,
        batch_size=batch_size,
        device=device,
        trust_remote_code=trust_remote_code,
        seed=seed,
    )
    content = experiment.run(out, progress=True)
    for task, found in content["tasks"].items():
        table = Table("way of sampling", "tokens per forward", "accuracy in %", title=task, title_justify="left")
        for row in found["rows"]:
            accuracy = row["metrics"]["accuracy"]
            rate = row["metrics"]["tokens_per_forward"]["mean"]
            shown = f"{100 * accuracy['mean']:.1f} ± {100 * accuracy['stderr']:.1f}"
            table.add_row(described(row), f"{rate:.2f}", shown)
        console.print(table)
        console.print("AUP: " + ", ".join(f"{name} {value:.1f}" for name, value in found["aup"].items()) + ".")
    console.print(f"Saved evaluation.json and evaluation.png in {out}/.")
