"""The trained networks that come with the package."""

from pathlib import Path

from eigentime.models.trained import CONFIG

FOLDER = Path(__file__).parents[1] / "zoo"


def zoo() -> dict[str, Path]:
    """Names and folders of the bundled networks."""
    return {path.parent.name: path.parent for path in sorted(FOLDER.glob(f"*/{CONFIG}"))}
