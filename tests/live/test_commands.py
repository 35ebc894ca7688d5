"""`gainful recover` and the export of a journal, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gainful.cli import live
from gainful.errors import JournalError
from tests.live.lives import CONFIG, killed, lived, opened


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command("recover")(live.recover)
    made.command("nothing")(lambda: None)
    return made


def damaged(path: Path) -> None:
    agent = opened(path, CONFIG, snapshot_every=10**6)
    lived(agent, 20)
    killed(agent)
    file = path / "journal-000001.log"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)


def test_recover_says_what_it_saved(app: typer.Typer, tmp_path: Path) -> None:
    damaged(tmp_path / "a")
    done = CliRunner().invoke(app, ["recover", str(tmp_path / "a"), str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    for words in (
        "found: journal-000001.log",
        "an agent with",
        "lost: records",
        "salvaged.csv",
        "was not changed",
        "Next:",
    ):
        assert words in done.stderr
    assert done.stdout == ""
    assert opened(tmp_path / "out").t > 5


def test_recover_as_json(app: typer.Typer, tmp_path: Path) -> None:
    damaged(tmp_path / "a")
    done = CliRunner().invoke(app, ["recover", str(tmp_path / "a"), str(tmp_path / "out"), "--json"])
    told = json.loads(done.stdout)
    assert told["observations"] > 5
    assert told["salvaged"] > 5
    assert told["lost"] == [[told["sequence"] + 1, told["sequence"] + 1]]


def test_recover_where_nothing_is(app: typer.Typer, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["recover", str(tmp_path / "a"), str(tmp_path / "out")])
    assert isinstance(done.exception, JournalError)


def test_export_of_a_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        lived(agent, 3)
    live.export_journal(tmp_path / "a", tmp_path / "t.csv", tmp_path / "t.parquet", True)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert set(rows) == {str(tmp_path / "t.csv"), str(tmp_path / "t.parquet")}
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 1 + rows[str(tmp_path / "t.csv")]
