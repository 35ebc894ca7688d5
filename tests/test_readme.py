"""The commands of the README, run as written."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gainful.cli.main import run

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ gainful (.+)$", README, flags=re.MULTILINE)


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) >= 4


LONG = ("audit", "learn lqg")


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=pytest.mark.slow) if c.startswith(LONG) else c for c in COMMANDS]
)
def test_a_command_of_the_readme_works_as_written(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run(shlex.split(command)), capsys.readouterr()
    assert code == 0, printed.err
    assert printed.out.strip()


@pytest.mark.slow
def test_the_output_shown_is_the_output_printed(tmp_path: Path) -> None:
    """`make run` is this command; what is timed (the share of planning) is left out."""
    shown = README.split("and prints\n")[1].split("```text\n")[1].split("\n```")[0]
    command = [sys.executable, "-m", "gainful", "run", "quickstart"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "50 of 50 runs are stored in results/quickstart" in done.stderr
    for line, printed in zip(shown.splitlines(), done.stdout.splitlines(), strict=True):
        assert re.sub(r"\d+%", "", line).split() == re.sub(r"\d+%", "", printed).split()
