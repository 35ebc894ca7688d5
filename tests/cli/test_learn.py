from __future__ import annotations

import json

import numpy as np
import pytest

import gainful as gf
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
