"""The table that `gainful run` prints."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gainful.cli import console
from gainful.cli.run import not_shown, summary_table
from gainful.cli.sweep_progress import SweepProgressLine
from gainful.experiments.aggregates import summary
from tests.experiments.test_aggregates import a_run


def printed(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> list[str]:
    console.show(summary_table(summary(frame).assign(guarantee="no")))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def runs(environment: str, agent: str, expected: Any) -> pd.DataFrame:
    made = [a_run(environment, agent, s, [1, 10, 100], 90.0, expected_regret=expected) for s in range(2)]
    return pd.concat(made, ignore_index=True)


def test_the_table_names_the_measure_of_regret(capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = printed(pd.concat([runs("e", "a", 40.0), runs("e", "b", 50.0)]), capsys)
    assert "expected regret" in head
    assert "measure" not in head
    assert [row.split()[-8:-5] for row in rows] == [["40", "40", "…"], ["50", "50", "…"]]
    head, row = printed(runs("e", "a", np.nan), capsys)
    assert "pseudo-regret" in head
    assert " 90 " in row


def test_environments_with_different_measures_name_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = pd.concat([runs("river", "a", 40.0), runs("river", "b", np.nan), runs("lake", "a", 30.0)])
    head, *rows = printed(mixed, capsys)
    assert "measure" in head
    assert [" pseudo-regret " in row for row in rows] == [True, True, False]
    assert [" expected regret " in row for row in rows] == [False, False, True]
    assert [" 90 " in row for row in rows] == [True, True, False]


def test_in_80_columns_no_name_is_cut_or_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    monkeypatch.setenv("COLUMNS", "80")
    agents = ("SCAL+, the paper's bonus", "KL-SCAL+")
    mixed = pd.concat([runs(place, agent, 123_456.0) for place in ("a long river", "four rooms") for agent in agents])
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in printed(mixed, capsys)]
    assert max(map(len, lines)) <= 80
    assert [line for line in lines[1:] if "123,456" not in line] == ["a long river", "four rooms"]
    assert [line.split("  ")[0] for line in lines[2:4]] == list(agents)
    (note,) = not_shown(summary(mixed))
    assert note.plain.startswith("2 runs of 100 steps; ")


def test_more_runs_in_a_folder_are_announced_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    sweep: Any = SimpleNamespace(
        title="a study",
        left=5,
        planned=5,
        folder="results/study",
        stored=0,
        jobs=2,
        estimate=SimpleNamespace(disk_per_run=1e3),
        device="cpu",
        seconds_left=0.2,
    )
    line = SweepProgressLine()
    line.started(sweep)
    line.started(sweep)
    first, second = capsys.readouterr().err.splitlines()
    assert "5 of 5 runs to make in results/study" in first
    assert second == "a study: 5 more runs, about 1 s"


def test_the_same_notice_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    line = SweepProgressLine()
    for words in ("riverswim: not ergodic", "a run was damaged", "riverswim: not ergodic"):
        line.noticed(words)
    assert capsys.readouterr().err.count("warning: ") == 2
