from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gainful as gf
from gainful.cli import console
from gainful.cli.learn import sketch
from gainful.cli.main import run


def test_a_run_ends_in_a_table_and_a_sketch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "2e4", "--agent-set", "bonus_scale=0.1"]) == 0
    out = capsys.readouterr().out
    assert "scal-plus in riverswim, seed 0" in out
    assert "after 20,000 steps" in out
    assert "an oracle's, from the model itself" in out
    assert "no guarantee: bonus_scale is 0.1" in out
    assert out.count("•") > 20


def test_json_is_the_run_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--horizon", "5000", "--span", "7", "--seed", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = gf.simulate(gf.SCALPlus(6, 2, span=7.0, seed=3), gf.environments.riverswim(6), 5000, seed=3)
    assert np.array_equal(found["regret"], expected.regret)
    assert found["episodes"] == len(expected.episodes)
    assert found["span_is_oracle"] is False
    assert found["guarantee_holds"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "riverswim", "--agent", "ucrl-2"], "did you mean 'ucrl2'"),
        (["learn", "riverswim", "--agent", "regal"], "not implementable"),
        (["learn", "riverswim", "--horizon", "0"], "horizon"),
        (["learn", "riverswim", "--horizon", "many"], "--horizon"),
        (["learn", "riverswim", "--agent-set", "bonus_scales=1"], "did you mean 'bonus_scale'"),
        (["learn", "riverswim", "--agent", "ucrl2", "--span", "3"], "takes no span"),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_agents_are_listed_with_the_one_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "agents"]) == 0
    captured = capsys.readouterr()
    assert "scal-plus" in captured.out
    assert "not implementable: regal" in captured.err
    assert run(["list", "agents", "--json"]) == 0
    assert {"name", "summary", "parameters"} == set(json.loads(capsys.readouterr().out)[0])


def test_a_straight_line_is_drawn_straight() -> None:
    assert sketch([1, 10, 100], [1.0, 10.0, 100.0], width=5, height=3) == [
        "      100 ┤    •",
        "          │  •",
        "        1 ┤•",
        "          └─────",
        "           1 100",
    ]


def test_a_flat_or_empty_curve_is_said_in_words() -> None:
    assert sketch([1, 10], [-1.0, -2.0]) == ["(no regret to draw)"]
    assert sketch([1, 10], [2.0, 2.0]) == ["(regret does not change)"]


def test_a_run_in_a_file_is_continued_and_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["learn", "riverswim", "--horizon", "5000", "--span", "7", "--json"]
    assert run(command) == 0
    plain = json.loads(capsys.readouterr().out)
    for _ in range(2):
        assert run([*command, "--checkpoint", str(tmp_path / "run")]) == 0
        assert json.loads(capsys.readouterr().out)["regret"] == plain["regret"]
    assert run([*command, "--seed", "4", "--checkpoint", str(tmp_path / "run")]) == 1
    assert "belongs to another run: its" in capsys.readouterr().err


def test_a_plan_that_ignores_the_data_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", "riverswim", "--agent", "ucrl2", "--horizon", "100"]) == 0
    assert "vacuous: still so wide that the plan ignores the data" in capsys.readouterr().out


def test_progress_is_told_in_plain_lines_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 4))
    monkeypatch.setattr("gainful.cli.console.time.monotonic", lambda: next(clock))
    with console.live_line(lambda done, total: f"{done} of {total}") as show:
        for i in range(10):
            show(i, 10)
    assert capsys.readouterr().err.splitlines() == ["2 of 10", "5 of 10", "8 of 10"]
