"""`gainful report`: where things go, and what it says."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from gainful.report.collect import collect
from tests.report.conftest import QUOTES, Reporter


def test_the_page_goes_into_the_folder_and_the_table_to_stdout(folder: Path, reporter: Reporter) -> None:
    (folder / "report.html").unlink(missing_ok=True)
    done = reporter(folder)
    assert done.code == 0
    assert f"page: {folder / 'report.html'}" in done.err
    assert (folder / "report.html").stat().st_size > 1_000_000
    assert "UCRL2B" in done.out
    assert "95 % interval" in done.out
    assert "page" not in done.out


def test_a_narrow_terminal_gets_fewer_columns_and_whole_words(
    folder: Path, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    done = reporter(folder)
    assert "not shown, for lack of room: episodes, planning" in done.out
    assert "Expected regret" in done.out
    assert "Planning" not in done.out


def test_the_page_goes_where_it_is_told(folder: Path, tmp_path: Path, reporter: Reporter) -> None:
    done = reporter(folder, "--html", tmp_path / "x.html", "--json")
    assert done.code == 0
    assert done.data["finished"] == 27
    assert (tmp_path / "x.html").exists()


def test_markdown_has_a_table_per_environment(folder: Path, reporter: Reporter) -> None:
    done = reporter(folder, "--markdown")
    assert done.code == 0
    assert done.out.count("\n## ") == 3
    rows = [line for line in done.out.splitlines() if line.startswith("|")]
    assert len(rows) == (2 + 4) * 2 + 2 + 1
    assert "<img" not in done.out.replace("\\<img", "")
    bars = {line.replace("\\|", "").count("|") for line in rows[:6]}
    assert len(bars) == 1


@pytest.mark.slow
def test_figures_are_written_in_three_formats(folder: Path, tmp_path: Path, reporter: Reporter) -> None:
    pytest.importorskip("matplotlib")
    done = reporter(folder, "--figures", tmp_path / "figures")
    assert done.code == 0
    names = sorted(p.name for p in (tmp_path / "figures").iterdir())
    assert len(names) == 4 * 3  # three environments, and all in one
    assert {"regret.pdf", "regret.png", "regret.svg", "regret-toy3d.svg"} <= set(names)


def test_without_matplotlib_the_extra_is_named(
    folder: Path, tmp_path: Path, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = reporter(folder, "--figures", tmp_path / "figures")
    assert done.code == 2
    assert "pip install 'gainful[figures]'" in done.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--json", "--markdown"], 2, "both write to stdout"),
        (["--curves"], 2, "only with --json"),
        (["--html", "."], 2, "is a folder"),
        (["--html", "/no/such/folder/x.html"], 1, "cannot be written"),
    ],
)
def test_misuse_is_told(words: list[str], code: int, told: str, folder: Path, reporter: Reporter) -> None:
    done = reporter(folder, *words)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_folder_without_an_experiment_is_told(tmp_path: Path, reporter: Reporter) -> None:
    done = reporter(tmp_path)
    assert done.code == 1
    assert "there is no experiment here" in done.err


def test_what_goes_to_stdout_needs_no_place_for_a_page(folder: Path, tmp_path: Path, reporter: Reporter) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "report.html").unlink(missing_ok=True)
    (copy / "report.html").mkdir()
    done = reporter(copy, "--json")
    assert done.code == 0
    assert done.data["title"] == collect(copy).title
    assert "no page:" in done.err


def test_control_characters_do_not_reach_the_terminal(folder: Path, reporter: Reporter) -> None:
    assert QUOTES in reporter(folder).out
