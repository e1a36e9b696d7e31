"""Known holes in what constraints.txt pins, by pip-audit; it asks the Python Packaging Advisory Database over the web.

python tools/audit.py      exit code 1 where there are some, 3 where nobody could be asked
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def pinned() -> str:
    """The pins, without local versions such as +cpu, which no database knows."""
    return re.sub(r"\+\w+", "", (ROOT / "constraints.txt").read_text())


def main() -> None:
    """Ask, and say what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text(pinned())
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--format", "json", "-r", str(pins)]
        done = subprocess.run(command, capture_output=True, text=True)
    if "No module named pip_audit" in done.stderr:
        sys.exit("pip-audit is not installed: pip install pip-audit.")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        packages = []
    audited = [each for each in packages if "skip_reason" not in each]
    if not audited:
        print("The advisory database cannot be reached from here, so nothing was audited; run it where there is a web.")
        sys.exit(3)
    for each in audited:
        for hole in each["vulns"]:
            mended = ", ".join(hole["fix_versions"]) or "nothing yet"
            print(f"{each['name']} {each['version']}: {hole['id']}, mended in {mended}")
    print(f"{len(audited)} of {len(packages)} packages audited.")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
