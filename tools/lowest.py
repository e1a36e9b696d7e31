"""The lower bounds of what the core needs, tried: an environment with those versions, and the core's tests in it.

python tools/lowest.py            writes results/trust/lowest.json
python tools/lowest.py TESTS …    only these test files

torch is taken from this environment, whose pin says why; the others are installed from the index.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
WITH_TORCH = (
    "torch",
    "functorch",
    "torchgen",
    "filelock",
    "fsspec",
    "jinja2",
    "markupsafe",
    "mpmath",
    "networkx",
    "sympy",
)
TESTS = ("test_exact", "test_schedules", "test_plans", "test_stored", "test_noise", "test_process", "test_edge")


def lowest() -> list[str]:
    """What pyproject.toml asks for at least, torch left out."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [line.replace(">=", "==") for line in asked if not line.startswith("torch")]


def environment(folder: Path) -> Path:
    """Python in a fresh environment with the lowest versions and this environment's torch."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *lowest(), "pytest", "pytest-xdist", "hypothesis"], check=True)
    here, there = (Path(_site_packages(each)) for each in (sys.executable, python))
    for name in (*WITH_TORCH, f"torch-{version('torch')}.dist-info"):
        if not (there / name).exists():
            (there / name).symlink_to(here / name)
    return python


def _site_packages(python: str | Path) -> str:
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    return subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Install, test, and write down what came of it."""
    from provenance import save

    named = sys.argv[1:] or [f"tests/{name}.py" for name in TESTS]
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder))
        command = [str(python), "-m", "pytest", "-n", "0", *named]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": "src", "PATH": "/usr/bin"}
        )
    print(done.stdout[-3000:])
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)}
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    print(json.dumps(found))
    if len(sys.argv) == 1:
        content = {"versions": [*lowest(), f"torch=={version('torch')}"], "tests": found, "failed": failed}
        save("trust/lowest.json", content, tests=list(TESTS))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
