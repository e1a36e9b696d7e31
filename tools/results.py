"""What benchmarks and experiments wrote, under results/ of this repository."""

from pathlib import Path
from typing import Any

from eigentime.report.provenance import load_results

ROOT = Path(__file__).parents[1]


def load(name: str) -> dict[str, Any]:
    """Read results/NAME."""
    return load_results(ROOT / "results" / name)
