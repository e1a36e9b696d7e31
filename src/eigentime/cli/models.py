"""`eigentime models`: what can be loaded by name."""

from typing import Any

from eigentime import api
from eigentime.cli.options import Json, console, print_json
from eigentime.models import Trained, zoo
from eigentime.report.terminal import Fitted
from eigentime.tasks import EXACT, MODELS, TASKS


def models(json: Json = False) -> None:
    """List the models that can be loaded by name.

    Example: eigentime models
    """
    named = [(name, None) for name in zoo()] + [
        (name, kernel) for name, task in EXACT.items() for kernel in task.kernels
    ]
    rows: list[dict[str, Any]] = []
    for name, kernel in named:
        model = api.load(name, kernel)
        rows.append(
            {
                "name": name,
                "kernel": model.process.kernel.name,
                "predicts": model.predicts,
                "length": model.length,
                "size": model.process.kernel.size,
                "parameters": sum(p.numel() for p in model.network.parameters()) if isinstance(model, Trained) else 0,
                "about": MODELS[name].about + ("" if isinstance(model, Trained) else ", exact"),
            }
        )
    if json:
        return print_json(rows)
    table = Fitted("name", "kernel", "predicts", header_style="bold")
    table.columns[0].no_wrap = True
    table.add_column("tokens × values", justify="right")
    table.add_column("parameters", justify="right")
    for row in rows:
        size = f"{row['parameters']:,}" if row["parameters"] else "exact"
        table.add_row(row["name"], row["kernel"], row["predicts"], f"{row['length']} × {row['size']}", size)
    console.print(table)
    for task in TASKS.values():
        console.print(f"{task.name}: {task.about}")
    console.print("Load one: et.load(name). Your own network: et.wrap(network, process, length=…), see the README.")
    return None
