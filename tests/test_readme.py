"""The README is what a new user has: its code runs, and its tables are what results/ says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eigentime.models.checkpoints.load import FAMILIES
from eigentime.orders import ORDERS
from eigentime.process.kernels import KERNELS
from eigentime.process.noise import NOISES
from eigentime.samplers.registry import SAMPLERS
from eigentime.schedules.strategies import MEASURED

REGISTRIES = (FAMILIES, KERNELS, MEASURED, NOISES, SAMPLERS, ORDERS)
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCS = (
    "choosing",
    "ecosystems",
    "engines",
    "extending",
    "lists",
    "options",
    "places",
    "report",
    "start",
    "your-network",
)
PAGES = README + "".join((ROOT / "docs" / f"{page}.md").read_text() for page in DOCS)
BLOCKS = re.findall(r"```python\n(.*?)```", PAGES, flags=re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_blocks_run_as_they_stand(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = [registry.copy() for registry in REGISTRIES]
    try:
        exec(compile(block, "README.md", "exec"), {})
    finally:  # what an example added is taken out again
        for registry, kept in zip(REGISTRIES, before, strict=True):
            registry.clear()
            (registry.update if isinstance(registry, dict) else registry.extend)(kept)


def test_commands_run_as_they_stand(tmp_path):
    commands = re.search(r"## Command line\n\n```bash\n(.*?)```", README, flags=re.S)[1]
    path = f"PATH={Path(sys.executable).parent}:$PATH; set -e\n"
    done = subprocess.run(
        ["bash", "-c", path + commands.replace("16 --json", "16 --samples 16 --json")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {
        "countdown.safetensors",
        "ods16.json",
        "plan8.json",
        "rows.json",
        "rows.png",
    }


def test_tables_are_what_results_say():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "readme.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_project_names_no_place_of_its_making():
    files = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.toml"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in files.stdout.split():
        text = (ROOT / name).read_text()
        assert not re.search(r"(^|[\s\"'(])/(work|root|home)/", text), name
