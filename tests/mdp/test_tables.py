"""Tables of transitions: files and data frames, their labels, their errors."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.model import MDP
from tests.strategies import mdps

HEADER = "state,action,next_state,probability,reward\n"
GOOD = HEADER + "up,stay,up,0.9,1\nup,stay,down,0.1,1\ndown,climb,up,0.5,0\ndown,climb,down,0.5,0\n"


def written(folder: Path, text: str, name: str = "mdp.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def frame(**columns: Any) -> pd.DataFrame:
    table: dict[str, Any] = {
        "state": [0, 0, 1],
        "action": [0, 0, 0],
        "next_state": [0, 1, 0],
        "probability": [0.5, 0.5, 1.0],
        "reward": [1.0, 1.0, 0.0],
    }
    return pd.DataFrame(table | columns)


# ---------------------------------------------------------------------- there and back


@given(
    mdps(disallowed=True, labels=True, costs=True, laws=("deterministic", "bernoulli", "transition"), random_start=True)
)
def test_a_table_gives_the_same_mdp_back(mdp: MDP) -> None:
    again = MDP.from_table(mdp.to_table())
    assert again == mdp
    assert again.name == mdp.name


@pytest.mark.parametrize("objective", ["reward", "cost"])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_files_give_the_same_mdp_back(tmp_path: Path, kind: str, objective: Any) -> None:
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.full(7, 0.3), size=(7, 3))
    R = rng.normal(size=(7, 3, 7))
    labels = [f"s {i}" for i in range(7)]
    mdp = MDP(P, R, state_labels=labels, action_labels=["a", "b", "007"], objective=objective)
    path = tmp_path / f"mdp.{kind}"
    if kind == "parquet":
        mdp.to_table().to_parquet(path)
    else:
        mdp.to_table().to_csv(path, index=False)
    assert MDP.from_table(path) == mdp
    assert MDP.from_table(str(path)) == mdp


def test_parquet_keeps_start_law_and_absent_actions(tmp_path: Path) -> None:
    mdp = MDP(
        np.full((2, 3, 2), 0.5),
        [0.25, 0.5],
        start=[0.25, 0.75],
        reward_law="bernoulli",
        name="kept",
        allowed=[[False, True, False], [True, True, False]],
    )
    mdp.to_table().to_parquet(tmp_path / "m.parquet")
    again = MDP.from_table(tmp_path / "m.parquet")
    assert again == mdp
    assert again.name == "kept"


def test_arguments_go_before_what_the_frame_remembers() -> None:
    mdp = MDP(np.full((2, 1, 2), 0.5), [0.25, 0.5], start=1, reward_law="bernoulli", name="old")
    again = MDP.from_table(mdp.to_table(), start=0, reward_law="deterministic", name="new")
    assert again.start.tolist() == [1.0, 0.0]
    assert again.reward_law == "deterministic"
    assert again.name == "new"


def test_a_remembered_start_that_was_cut_out_is_an_error() -> None:
    table = MDP(np.eye(2).reshape(2, 1, 2), [0.0, 1.0], start=1).to_table()
    cut = table[table["state"] == 0]
    with pytest.raises(InvalidMDPError, match="the start state '1' in its attrs has no row; pass start="):
        MDP.from_table(cut)


def test_the_duration_of_a_step_is_kept() -> None:
    mdp = MDP.from_rates([[[0, 2.0]], [[3.0, 0]]], [1.0, 0.0])
    assert MDP.from_table(mdp.to_table()) == mdp
    with pytest.raises(InvalidArgumentError, match=r"step_duration is 0.0, expected a positive number"):
        MDP.from_table(mdp.to_table(), step_duration=0.0)


@pytest.mark.slow
def test_a_million_lines_take_seconds() -> None:
    """No Python loop over lines: 10⁶ lines in a frame take well under a second, a loop takes tens of seconds."""

    S, n = 50_000, 20
    rng = np.random.default_rng(0)
    state = np.repeat(np.arange(S), n)
    table = pd.DataFrame(
        {
            "state": state,
            "action": 0,
            "next_state": rng.integers(0, S, S * n),
            "probability": 1 / n,
            "reward": rng.random(S)[state],
        }
    )
    mdp = MDP.from_table(table)
    assert mdp.n_states == S


# ---------------------------------------------------------------------- what a table may look like


def test_labels_come_in_order_of_appearance_as_states(tmp_path: Path) -> None:
    mdp = MDP.from_table(written(tmp_path, GOOD))
    assert mdp.state_labels == ("up", "down")
    assert mdp.action_labels == ("stay", "climb")
    assert mdp.allowed.tolist() == [[True, False], [False, True]]
    assert mdp.rewards.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert mdp.transition("up", "stay") == {0: 0.9, 1: 0.1}
    assert mdp.reward_law == "deterministic"


def test_given_labels_fix_the_order(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    mdp = MDP.from_table(path, state_labels=["down", "up"], action_labels=["climb", "stay", "jump"], start="up")
    assert mdp.state_labels == ("down", "up")
    assert mdp.allowed.tolist() == [[True, False, False], [False, True, False]]
    assert mdp.start.tolist() == [0.0, 1.0]
    with pytest.raises(
        InvalidMDPError, match=r"mdp.csv, line 4, column 'state': 'down' is not in state_labels; did you mean 'don'"
    ):
        MDP.from_table(path, state_labels=["up", "don"])


def test_given_labels_name_numbered_states() -> None:
    assert MDP.from_table(frame(), state_labels=["a", "b"]).state_labels == ("a", "b")


@pytest.mark.parametrize("as_text", [False, True])
def test_numbers_from_zero_are_indices(tmp_path: Path, as_text: bool) -> None:
    table = frame(state=[1, 1, 0], next_state=[1, 0, 1])
    if as_text:
        table.to_csv(tmp_path / "t.csv", index=False)
    mdp = MDP.from_table(tmp_path / "t.csv" if as_text else table)
    assert mdp.state_labels is None
    assert mdp.action_labels is None
    assert mdp.transition(0, 0) == {1: 1.0}
    assert mdp.rewards.tolist() == [[0.0], [1.0]]


def test_other_numbers_are_labels() -> None:
    mdp = MDP.from_table(frame(state=[10, 10, 2], next_state=[10, 2, 10], action=[3, 3, 3]))
    assert mdp.state_labels == ("10", "2")
    assert mdp.action_labels == ("3",)


@pytest.mark.parametrize("name", ["007", "NA", "null", "nan", "1e3", "-1", "ü", "a b"])
def test_names_in_a_file_stay_as_written(tmp_path: Path, name: str) -> None:
    mdp = MDP.from_table(written(tmp_path, HEADER + f"{name},go,{name},1,0\n"))
    assert mdp.state_labels == (name,)


def test_names_that_look_like_numbers_stay_text_in_a_frame() -> None:
    mdp = MDP.from_table(frame(state=["1", "1", "0"], next_state=["1", "0", "1"]))
    assert mdp.state_labels == ("1", "0")


def test_whole_floats_are_numbers() -> None:
    assert MDP.from_table(frame(state=[0.0, 0.0, 1.0])) == MDP.from_table(frame())


def test_states_as_numbers_and_next_states_as_text_are_the_same_names() -> None:
    mdp = MDP.from_table(frame(next_state=["0", "1", "0"]))
    assert mdp.state_labels == ("0", "1")


def test_rewards_by_next_state_give_the_law_transition() -> None:
    mdp = MDP.from_table(frame(reward=[1.0, 3.0, 0.0]))
    assert mdp.reward_law == "transition"
    assert mdp.rewards.tolist() == [[2.0], [0.0]]
    means = MDP.from_table(frame(reward=[1.0, 3.0, 0.0]), reward_law="deterministic")
    assert means.reward_law == "deterministic"
    assert means.rewards.tolist() == [[2.0], [0.0]]


def test_the_reward_of_an_impossible_line_does_not_matter() -> None:
    table = frame(probability=[0.0, 1.0, 1.0], reward=[99.0, 1.0, 0.0])
    mdp = MDP.from_table(table)
    assert mdp.reward_law == "deterministic"
    assert mdp.reward_range == (0.0, 1.0)


def test_a_cost_column_is_minimised() -> None:
    mdp = MDP.from_table(frame().rename(columns={"reward": "cost"}))
    assert mdp.units.objective == "cost"
    assert mdp.costs.tolist() == [[1.0], [0.0]]
    assert list(mdp.to_table().columns) == ["state", "action", "next_state", "probability", "cost"]


def test_lines_may_come_in_any_order() -> None:
    shuffled = frame().iloc[[2, 1, 0]]
    again = MDP.from_table(shuffled)
    assert again == MDP.from_table(frame())


def test_tabs_compression_blank_lines_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    expected = MDP.from_table(written(tmp_path, GOOD))
    assert MDP.from_table(written(tmp_path, GOOD.replace(",", "\t"), "mdp.tsv")) == expected
    assert MDP.from_table(written(tmp_path, "\ufeff" + GOOD.replace(",", ", ") + "\n\n", "bom.CSV")) == expected
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert MDP.from_table(tmp_path / "z.csv.gz") == expected


def test_numbers_in_a_file_are_read_to_the_last_bit(tmp_path: Path) -> None:
    r = 0.30000000000000004
    blank_line = MDP.from_table(written(tmp_path, HEADER + f"a,b,a,1,{r!r}\n\n"))
    assert blank_line.rewards[0, 0] == r


class Foreign:
    """A data frame of another library."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def to_pandas(self) -> Any:
        return self.table


def test_frames_of_other_libraries_are_read() -> None:
    pa = pytest.importorskip("pyarrow")
    expected = MDP.from_table(frame())
    assert MDP.from_table(pa.Table.from_pandas(frame())) == expected
    assert MDP.from_table(Foreign(frame())) == expected
    assert MDP.from_table(frame().to_dict("list")) == expected
    assert MDP.from_table(frame().astype({"state": "category", "next_state": "category"})) == expected
    assert MDP.from_table(frame().convert_dtypes()) == expected
    with pytest.raises(InvalidMDPError, match="a table of type int is not supported; pass a path, a data frame"):
        MDP.from_table(3)
    with pytest.raises(InvalidMDPError, match="the Foreign converts to int, expected a data frame"):
        MDP.from_table(Foreign(3))


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mdp.csv: the file is empty, expected a header and one line per transition"),
        ("\n", "mdp.csv: the file is empty|missing"),
        (HEADER, r"mdp.csv: the file has columns \(state, .*\) but no lines"),
        ("a,b\n", "but no lines"),
        (
            "state,action,nextstate,prob,reward\n0,0,0,1,1\n",
            "columns 'next_state', 'probability' missing; found 'state', 'action', 'nextstate', 'prob', 'reward'; "
            "for 'next_state' rename 'nextstate'; for 'probability' rename 'prob'",
        ),
        (
            "state,action,next_state,reward\n0,0,0,1\n",
            "no column 'probability': this looks like a log .*gainful fit",
        ),
        ("state;action;next_state;probability;reward\n0;0;0;1;1\n", "separated by ';': write the file with commas"),
        ("state,action,next_state,probability\n0,0,0,1\n", "no column 'reward' or 'cost'; found .*; add one of them"),
        ("state,action,next_state,probability,rewards\n0,0,0,1,1\n", "for 'reward' rename 'rewards'"),
        ("state,action,next_state,probability,reward,cost\n0,0,0,1,1,1\n", "both columns 'reward' and 'cost'"),
        (
            GOOD.replace("0.1,", "0.08,"),
            r"mdp.csv, line 2, column 'probability': the probabilities of state 'up', action 'stay' sum to 0.98, "
            r"expected 1 \(tolerance 1e-08\); 1 of 2 pairs fails; correct lines 2, 3, or add what is missing",
        ),
        (GOOD.replace("0.1,", "0.10000002,"), "sum to 1.00000002, expected 1"),
        (GOOD.replace("0.1,", "-0.1,"), r"line 3, column 'probability': found -0.1, expected a number in \[0, 1\]"),
        (GOOD.replace("0.1,", "nan,"), "line 3, column 'probability': found 'nan', expected"),
        (GOOD.replace("0.1,", "1/10,"), "line 3, column 'probability': found '1/10', expected a number"),
        (GOOD.replace("0.1,", ","), "line 3, column 'probability': found a blank cell, expected a number"),
        (GOOD.replace("0.1,1", "0.1,"), "line 3, column 'reward': found a blank cell, expected a finite number"),
        (GOOD.replace("0.1,1", "0.1,inf"), "line 3, column 'reward': found inf, expected a finite number"),
        (GOOD.replace("up,stay,down", "up,stay,"), "line 3, column 'next_state': found a blank cell, expected a name"),
        (GOOD.replace("up,stay,down", "up,,down"), "line 3, column 'action': found a blank cell"),
        (
            GOOD.replace("up,stay,down", "up,stay,dwon"),
            "line 3, column 'next_state': state 'dwon' has no action: it is never in column 'state'; correct the name",
        ),
        (HEADER + "0,0,0,1,0\n1,0,2,1,0\n", "line 3, column 'next_state': state '2' has no action"),
        (HEADER + "a,x,a,0,0\n", "state 'a', action 'x' sum to 0, expected 1"),
        (HEADER + "\n\na,x,a,0.5,0\n", "mdp.csv, line 4, column 'probability': .* correct line 4"),
        (HEADER + "a,x,a,1,0,9\n", "the lines have more fields than the header"),
        (GOOD + "a,x,a,1,0,9\n", "not a table: .*Expected 5 fields in line 6, saw 6; correct the line"),
        (HEADER + "a,x,a\n", "line 2, column 'probability': found a blank cell"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_table(path)


def test_the_message_begins_with_the_path(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER)
    with pytest.raises(InvalidMDPError) as caught:
        MDP.from_table(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.csv", None, "absent.csv: no such file; check the path"),
        ("mdp.txt", b"", r"mdp.txt: files of type '.txt' are not supported, expected .csv, .tsv or .parquet"),
        ("mdp.parquet", b"", "the file is empty"),
        ("mdp.parquet", b"not one", "mdp.parquet: not a readable Parquet file: .*; write the file again"),
        ("mdp.csv", b"state,\xff\xfe\n", "mdp.csv: not UTF-8 text .*; save it as UTF-8"),
        ("mdp.csv.gz", b"plain", "mdp.csv.gz: cannot be read: .*; check the file"),
        ("mdp.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:-9], "mdp.csv.gz: cannot be read"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_table(tmp_path / name)


def test_a_folder_is_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(InvalidMDPError, match=r"x.csv: is a folder, expected a file"):
        MDP.from_table(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (frame().iloc[:0], "the table has 0 rows and 5 columns"),
        (frame(probability=[0.5, np.nan, 1.0]), "the table, row 1, column 'probability': found NaN, expected a number"),
        (frame(probability=[0.5, 0.4, 1.0]), "the table, row 0, .* state 0, action 0 sum to 0.9, .* correct rows 0, 1"),
        (frame(reward=["a", "b", "c"]), "row 0, column 'reward': found 'a', expected a finite number; 3 of 3 rows"),
        (frame(state=["a", None, "b"]), "row 1, column 'state': found (a blank cell|NaN)"),
        (frame(next_state=[0, 1, 9]), "row 2, column 'next_state': state '9' has no action"),
        (frame(next_state=[-1, 1, 8]), r"row 0, column 'next_state': state '-1' has no action.*\(2 such states\)"),
        (pd.concat([frame(), frame()[["reward"]]], axis=1), "column 'reward' occurs 2 times, expected once"),
    ],
)
def test_bad_frames_are_named_with_their_row(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_table(table)
