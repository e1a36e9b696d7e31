"""Build wheel and sdist, and try the wheel in an empty environment: `python tools/package.py`.

The wheel must stay below 40 MB and run the README's five lines; the sdist must hold neither results nor fixtures.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 40 * 2**20
LEFT_OUT = ("results/", "tests/fixtures/", "tests/stored/", "site/")


def main() -> None:
    """Build, weigh, look inside, install, run."""
    with tempfile.TemporaryDirectory() as folder:
        out, shop, room = (Path(folder) / name for name in ("dist", "shop", "empty"))
        builder = _environment(shop, "hatchling")
        subprocess.run([builder, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True)
        (built,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
        for file in (built, source):
            print(f"{file.name}: {file.stat().st_size / 2**20:.1f} MiB")
            if file.stat().st_size > MOST:
                sys.exit(f"{file.name} is larger than {MOST / 2**20:.0f} MiB.")
        with tarfile.open(source) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
        if found := [name for name in names if name.startswith(LEFT_OUT)]:
            sys.exit(f"The sdist holds {found[0]}.")
        python = _environment(room, str(built))
        lines = re.search(r"## Five lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
        assert lines is not None
        subprocess.run([python, "-c", lines[1]], check=True, cwd=folder)
        subprocess.run([str(room / "bin" / "eigentime"), "--version"], check=True, cwd=folder)


def _environment(place: Path, package: str) -> str:
    """A new environment that holds one package and what it needs; its Python."""
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), package]
    subprocess.run(pip, check=True)
    return python


if __name__ == "__main__":
    main()
