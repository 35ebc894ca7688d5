"""Running command lines: in this process for most, as real processes for a few."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gainful.cli.main import run


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """stdout as strict JSON: no NaN, no Infinity."""

        def refuse(token: str) -> None:
            raise AssertionError(f"{token} is not JSON")

        return json.loads(self.out, parse_constant=refuse)

    @property
    def error(self) -> str:
        """stderr without the notice that something was compiled."""
        return "".join(line for line in self.err.splitlines(keepends=True) if not line.startswith("compiling"))


Gainful = Callable[..., Outcome]
WriteTable = Callable[..., str]


@pytest.fixture
def gainful(capsys: pytest.CaptureFixture[str]) -> Gainful:
    """`gainful("solve", "riverswim")` in this process, errors handled as the installed command does."""

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """A CSV file with these lines; returns its path."""

    def write(*lines: str, header: str = "state,action,next_state,probability,reward", name: str = "table.csv") -> str:
        path = tmp_path / name
        path.write_text("\n".join([header, *lines]) + "\n")
        return str(path)

    return write
