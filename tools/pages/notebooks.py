"""Notebooks as pages: run from the first cell to the last, and shown with what they printed and drew."""

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TIMEOUT = 120
"""Seconds that a cell may take."""


def page_of_notebook(path: Path) -> str:
    """Run a notebook in a folder of its own and write it as Markdown; a cell that fails stops the build."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(path.parent)}}).execute()
    note = f"*Run by `make docs` from `docs/notebooks/{path.name}`.*"
    cells = [_cell(cell) for cell in notebook.cells]
    return "\n\n".join([cells[0], note, *cells[1:]]) + "\n"


def _cell(cell: Any) -> str:
    if cell.cell_type == "markdown":
        return str(cell.source)
    return "\n\n".join([_fenced("python", cell.source), *map(_output, _joined(cell.outputs))])


def _joined(outputs: list[Any]) -> list[Any]:
    """What a cell prints comes in pieces."""
    found: list[Any] = []
    for each in outputs:
        if found and each.output_type == "stream" and found[-1].output_type == "stream":
            found[-1].text += each.text
        else:
            found.append(each)
    return found


def _output(output: Any) -> str:
    if output.output_type == "stream":
        return _fenced("text", output.text)
    data = output.data
    if "text/html" in data:
        return f"<div markdown='0'>\n{re.sub(r'<style.*?</style>', '', data['text/html'], flags=re.S)}\n</div>"
    if "image/png" in data:
        return f'<img alt="{data.get("text/plain", "figure")[:60]}" src="data:image/png;base64,{data["image/png"]}">'
    return _fenced("text", data["text/plain"])


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
