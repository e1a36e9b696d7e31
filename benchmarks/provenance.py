"""Results of benchmarks, under results/ of this repository."""

from pathlib import Path
from typing import Any

from eigentime.report.provenance import load_results, save_results

ROOT = Path(__file__).parent.parent


def save(name: str, content: dict[str, Any], **settings: Any) -> None:
    """Write results/NAME with the settings, the parent commit and the machine."""
    save_results(ROOT / "results" / name, content, **settings)
    print(f"wrote results/{name}")


def load(name: str) -> dict[str, Any]:
    """Read what `save` wrote."""
    return load_results(ROOT / "results" / name)
