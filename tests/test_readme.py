"""The commands of the README, run as written."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ gainful (.+)$", README, flags=re.MULTILINE)


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_works_as_written(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gainful", *shlex.split(command)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_output_shown_is_the_output_printed() -> None:
    shown = README.split("`make run` prints")[1].split("```text\n")[1].split("\n...")[0]
    done = subprocess.run(
        [sys.executable, "-m", "gainful", "solve", "riverswim"], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.startswith(shown)
