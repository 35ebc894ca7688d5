"""The first screens: help on a terminal of 80 columns, and completion."""

from __future__ import annotations

import pytest
import typer

from gainful.cli.main import app, run
from tests.cli.conftest import Gainful

ROOT = typer.main.get_command(app)
COMMANDS: list[tuple[str, ...]] = [(name,) for name in getattr(ROOT, "commands", ())]
COMMANDS += [("list", name) for name in ("environments", "agents", "specs")]


def test_all_commands_are_looked_at() -> None:
    assert ("solve",) in COMMANDS
    assert ("recover",) in COMMANDS


@pytest.mark.parametrize("line", [(), *COMMANDS], ids=" ".join)
def test_help_fits_80_columns_and_is_not_cut(
    gainful: Gainful, monkeypatch: pytest.MonkeyPatch, line: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = gainful(*line, "--help").out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert not [row for row in text.splitlines()[1:] if row.endswith("...")]  # the first row is the usage


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("gainful le", "learn"),
        ("gainful solve four", "four-rooms"),
        ("gainful learn riverswim --agent kl-s", "kl-scal-plus"),
        ("gainful run quick", "quickstart"),
        ("gainful audit quick", "quickstart"),
    ],
)
def test_bash_completes_commands_and_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, expected: str
) -> None:
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    monkeypatch.setenv("_GAINFUL_COMPLETE", "complete_bash")
    with pytest.raises(SystemExit):  # click ends the process itself here
        run([])
    assert capsys.readouterr().out.split() == [expected]
