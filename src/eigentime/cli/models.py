"""`eigentime models`: what can be loaded by name."""

from rich.table import Table

from eigentime import api
from eigentime.cli.options import Json, console, print_json
from eigentime.tasks import KERNELS, MODELS


def models(json: Json = False) -> None:
    """List the models that can be loaded by name.

    Example: eigentime models
    """
    rows = []
    for name, task in MODELS.items():
        for kernel in KERNELS:
            model = api.load(name, kernel)
            size = model.process.kernel.size
            rows.append({"name": name, "kernel": kernel, "length": model.length, "size": size, "about": task.about})
    if json:
        return print_json(rows)
    table = Table(header_style="bold")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)
    console.print("Your own network: et.wrap(network, process, length=…), see the README.")
    return None
