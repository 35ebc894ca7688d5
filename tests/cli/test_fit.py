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


def test_integers_as_states_are_written_as_json_too(gainful: Gainful, write_table: WriteTable) -> None:
    lines = ("0,wait,5,1", "1,wait,5,0", "0,order,2,0")
    data = gainful("fit", write_table(*lines, header=HEADER), "--replicates", "0", "--json").data
    assert data["never_tried"] == [{"state": 1, "action": "order"}]


def test_columns_with_other_names_can_be_named(gainful: Gainful, write_table: WriteTable) -> None:
    log = write_table("3,nothing,1.5,2025-01-01", header="stock,ordered,euros,date")
    result = gainful("fit", log)
    found = " ".join(result.error.split())
    assert result.code == 1
    assert "columns 'state', 'action' missing" in found
    assert "rename" not in found, "a date is no state"
    assert "--column state=COLUMN" in found


def test_a_model_that_is_read_as_a_log_is_noted(gainful: Gainful, write_table: WriteTable) -> None:
    model = write_table(
        "0,wait,0,0.5,1", "0,wait,1,0.5,1", "1,wait,0,1,2", header="state,action,next_state,probability,cost"
    )
    (note,) = gainful("fit", model, "--replicates", "0", "--json").data["notes"]
    assert "'probability' is ignored" in note
    assert "gainful solve" in note


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
