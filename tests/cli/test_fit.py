"""`gainful fit`: what it says about a log."""

from __future__ import annotations

from pathlib import Path

import gainful as gf
from tests.cli.conftest import Gainful, WriteTable

HEADER = "state,action,cost,next_state"
LINES = ["new,run,1,new", "new,run,1,worn", "worn,run,5,new", "new,run,1,worn", "worn,fix,2,new"] * 8


def test_a_log_is_estimated_solved_and_saved(gainful: Gainful, write_table: WriteTable, tmp_path: Path) -> None:
    log, model = write_table(*LINES, header=HEADER, name="log.csv"), str(tmp_path / "model.csv")
    result = gainful("fit", log, "--replicates", "10", "--save", model)
    assert result.code == 0
    assert f"wrote {model}; next: gainful solve {model}" in result.error
    assert "40 transitions in 1 trajectory; 2 states, 2 actions, 3 of 4 pairs tried" in result.out
    assert "average cost per step, the smallest of the estimate" in result.out
    assert "never tried  fix in new" in result.out
    solved = gainful("solve", model, "--no-diameter", "--json").data
    assert solved["objective"] == "cost"
    assert abs(solved["gain"] - gf.fit(log, replicates=0).gain) < 1e-7


def test_the_json_has_rows_with_intervals_and_the_policy(gainful: Gainful, write_table: WriteTable) -> None:
    data = gainful("fit", write_table(*LINES, header=HEADER), "--replicates", "10", "--json").data
    assert data["never_tried"] == [{"state": "new", "action": "fix"}]
    assert data["gain_interval"][0] <= data["gain"] <= data["gain_interval"][1]
    assert data["transitions"][0]["count"] == 8
    assert 0 < data["transitions"][0]["low"] < data["transitions"][0]["probability"] < data["transitions"][0]["high"]
    assert [entry["action"] for entry in data["policy"]] == ["run", "fix"]


def test_rows_are_listed_on_request(gainful: Gainful, write_table: WriteTable) -> None:
    result = gainful("fit", write_table(*LINES, header=HEADER), "--replicates", "0", "--rows")
    rows = [line.split() for line in result.out.splitlines()]
    assert ["new", "run", "new", "8", "0.3333", "0.1563", "to", "0.5532"] in rows


def test_other_names_of_columns_are_given(gainful: Gainful, write_table: WriteTable) -> None:
    log = write_table(*LINES, header="condition,action,cost,next_state")
    assert gainful("fit", log).code == 1
    assert gainful("fit", log, "--column", "state=condition", "--replicates", "0").code == 0
    wrong = gainful("fit", log, "--column", "state=conditon")
    assert "did you mean 'condition'?" in wrong.error


def test_solve_points_a_log_to_fit(gainful: Gainful, write_table: WriteTable) -> None:
    result = gainful("solve", write_table(*LINES, header=HEADER, name="log.csv"))
    assert result.code == 1
    assert "gainful fit" in result.error
