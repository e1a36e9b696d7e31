"""Where a result comes from: written into every file under results/."""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import eigentime as et
from eigentime.cli.options import jsonable
from eigentime.files import write_atomically

ROOT = Path(__file__).parent.parent


def save(name: str, content: dict[str, Any], **settings: Any) -> Path:
    """Write results/NAME with the settings, the parent commit and the machine."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    provenance = {
        "settings": settings,
        "parent_commit": commit.stdout.strip(),
        "eigentime": et.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    path = ROOT / "results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(jsonable({"provenance": provenance, **content}), indent=1) + "\n")
    print(f"wrote results/{name}")
    return path


def load(name: str) -> dict[str, Any]:
    """Read what `save` wrote."""
    return json.loads((ROOT / "results" / name).read_text())
