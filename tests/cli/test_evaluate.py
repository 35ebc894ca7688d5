"""`gainful evaluate`: a policy in a model, and from a log."""

from __future__ import annotations

from pathlib import Path

import pytest

import gainful as gf
from tests.cli.conftest import Gainful, WriteTable
from tests.cli.test_fit import HEADER, LINES


@pytest.fixture
def left(tmp_path: Path) -> str:
    path = tmp_path / "left.csv"
    path.write_text("state,action\nleft bank,left\nriver 1,left\nright bank,right\n")
    return str(path)


def test_a_policy_of_an_environment_and_where_it_loses(gainful: Gainful, left: str) -> None:
    arguments = ("evaluate", "riverswim", "--set", "n_states=3", "--policy", left)
    data = gainful(*arguments, "--json").data
    mdp = gf.environments.riverswim(3)
    found = gf.evaluate(mdp, [0, 0, 1])
    assert data["gain"] == found.gain_from_start
    assert data["loss"] == found.shortfall.total
    assert [entry["frequency"] for entry in data["policy"]] == found.stationary.tolist()
    assert sum(entry["loss"] for entry in data["policy"]) == pytest.approx(data["loss"], rel=0, abs=1e-7)
    page = gainful(*arguments).out
    assert "lost per step" in page
    assert page.splitlines()[8].split()[:3] == ["left", "bank", "left"]


def test_what_solve_prints_is_a_policy_that_loses_nothing(gainful: Gainful, tmp_path: Path) -> None:
    river = ("riverswim", "--set", "n_states=3")
    best = tmp_path / "best.json"
    best.write_text(gainful("solve", *river, "--no-diameter", "--json").out)
    assert "the policy is optimal" in gainful("evaluate", *river, "--policy", str(best)).out


def test_a_policy_from_a_log(gainful: Gainful, write_table: WriteTable, tmp_path: Path) -> None:
    log = write_table(*LINES, header=HEADER, name="log.csv")
    policy = tmp_path / "policy.json"
    policy.write_text('{"new": "run", "worn": "fix"}')
    arguments = ("evaluate", log, "--log", "--policy", str(policy), "--replicates", "20")
    data = gainful(*arguments, "--json").data
    assert data["gain_interval"][0] < data["gain"] < data["gain_interval"][1]
    assert "at least 8 visits" in gainful(*arguments).out
    policy.write_text('{"new": "fix", "worn": "fix"}')
    refused = gainful(*arguments)
    assert refused.code == 1
    assert refused.error.startswith("NotCoveredError: the log never tried fix in new")


def test_a_policy_that_cannot_be_is_one_message(gainful: Gainful, tmp_path: Path) -> None:
    result = gainful("evaluate", "riverswim", "--policy", str(tmp_path / "none.csv"))
    assert result.code == 1
    assert result.error.count("\n") == 1
