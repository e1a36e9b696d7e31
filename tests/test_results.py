"""`make results` goes on where it was interrupted: its shell runs no command twice."""

import shutil
import subprocess
from pathlib import Path

import pytest

ONCE = Path(__file__).parent.parent / "tools" / "once"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_finished_commands_are_not_run_again(tmp_path):
    (tmp_path / "Makefile").write_text(
        f"results: private SHELL := {ONCE}\n"
        "results: ready\n\techo one >> log\n\ttest -e go && echo two >> log\n\trm -r .results\n"
        "ready:\n\techo ready >> log\n"
    )

    def made():
        done = subprocess.run(["make", "results"], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, (tmp_path / "log").read_text().split()

    assert made() == (2, ["ready", "one"])
    (tmp_path / "go").touch()
    assert made() == (0, ["ready", "one", "ready", "two"])
    assert not (tmp_path / ".results").exists()  # all is done: the next run makes everything again
    assert made() == (0, ["ready", "one", "ready", "two", "ready", "one", "two"])
