"""Bad input: one clear message on stderr, nothing on stdout, no traceback, the right exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Gainful, Outcome, WriteTable


def refused(outcome: Outcome, code: int, *words: str) -> None:
    assert outcome.code == code
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.error


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("a,x,a,0.5,1", "a,x,b,0.48,1", "b,y,a,1,0"), ("line 2", "state 'a', action 'x'", "sum to 0.98")),
        (("a,x,a,0.99999998,1",), ("sum to 0.99999998", "tolerance 1e-08")),
        (("a,x,a,-0.5,1", "a,x,a,1.5,1"), ("line 2, column 'probability'", "-0.5")),
        (("a,x,a,nan,1",), ("line 2, column 'probability'", "nan")),
        (("a,x,a,1,inf",), ("line 2, column 'reward'", "inf")),
        (("a,x,a,one,1",), ("line 2, column 'probability'", "'one'")),
        (("a,x,z,1,1",), ("line 2, column 'next_state'", "'z' has no action")),
        ((",x,a,1,1",), ("line 2, column 'state'", "blank")),
        ((), ("no lines",)),
    ],
)
def test_bad_tables(gainful: Gainful, write_table: WriteTable, lines: tuple[str, ...], words: tuple[str, ...]) -> None:
    table = write_table(*lines)
    result = gainful("solve", table)
    refused(result, 1, f"InvalidMDPError: {table}", *words)
    assert len(result.error.splitlines()) == 1


def test_a_missing_column(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table("a,x,a,1,1", header="state,action,next_state,prob,reward")
    refused(gainful("solve", table), 1, "column 'probability' missing", "rename 'prob'")
    refused(gainful("solve", table, "--rates"), 1, "column 'rate' missing")


def test_files_that_are_none(gainful: Gainful, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    refused(gainful("solve", str(tmp_path / "empty.csv")), 1, "InvalidMDPError", "the file is empty")
    refused(gainful("solve", str(tmp_path / "nofile.csv")), 1, "InvalidMDPError", "no such file")
    refused(gainful("solve", str(tmp_path / "nofile")), 1, "no such file")
    refused(gainful("solve", str(tmp_path)), 1, "is a folder")
    (tmp_path / "notes.txt").write_text("nothing")
    refused(gainful("solve", str(tmp_path / "notes.txt")), 1, "neither a table")
    (tmp_path / "broken.mdp").write_bytes(b"PK\x03\x04 and no more")
    refused(gainful("solve", str(tmp_path / "broken.mdp")), 1, "truncated or damaged")


def test_a_multichain_process_names_its_classes_and_their_gains(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table(
        "a,x,a,1,1", "b,y,b,1,0", "c,l,a,1,3", "c,r,b,1,4", header="state,action,next_state,probability,cost"
    )
    result = gainful("solve", table, "--json")
    refused(result, 1, "MultichainError: the optimal gain depends on the initial state")
    lines = [line.strip() for line in result.error.splitlines()]
    assert "class 1 (1 state, gain 1): a" in lines
    assert "class 2 (1 state, gain 0): b" in lines
    assert "transient (1 state): c" in lines


def test_an_infeasible_span(gainful: Gainful, write_table: WriteTable) -> None:
    refused(
        gainful("solve", write_table("a,x,b,1,5", "b,y,a,1,7"), "--span", "0.5"), 1, "InfeasibleSpanError", "state b"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("riverswam",), ("UnknownEnvironmentError: 'riverswam'; did you mean 'riverswim'?",)),
        (("zzz",), ("UnknownEnvironmentError: 'zzz'; known: access-control-queue",)),
        (("Nowhere-v7",), ("UnknownEnvironmentError: 'Nowhere-v7'", "Gymnasium")),
        (("FrozenLake-v1", "--set", "nothing=1"), ("InvalidArgumentError", "nothing=1")),
        (("riverswim", "--set", "n_states"), ("InvalidArgumentError: --set n_states is not NAME=VALUE",)),
        (("riverswim", "--set", "n_states=[1"), ("--set n_states=[1: the value [1 cannot be read",)),
        (("riverswim", "--set", "n_states="), ("no value",)),
        (("riverswim", "--set", "n_states=4", "--set", "n-states=5"), ("n_states is set twice",)),
        (("riverswim", "--set", "n_states=four"), ("n_states is 'four', expected an integer",)),
        (("riverswim", "--set", "nstates=4"), ("has no parameter 'nstates'; did you mean 'n_states'?",)),
        (("riverswim", "--precision", "fine"), ("InvalidArgumentError: --precision fine is not a number",)),
        (("riverswim", "--precision", "0"), ("precision is 0.0, expected a positive number",)),
        (("riverswim", "--precision", "nan"), ("precision is nan",)),
        (("riverswim", "--span", "wide"), ("--span wide is not a number",)),
        (("riverswim", "--span", "-1"), ("span is -1.0, expected a finite number",)),
        (("riverswim", "--rates"), ("--rates needs a table",)),
        (("riverswim", "--rates", "--gymnasium"), ("exclude each other",)),
        (("riverswim", "--max-states-shown", "-3"), ("UsageError", "--max-states-shown", "gainful solve --help")),
        (("riverswim", "--bogus"), ("UsageError: No such option: --bogus", "Try 'gainful solve --help'")),
    ],
)
def test_misuse(gainful: Gainful, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(gainful("solve", *arguments), 2, *words)


def test_a_file_has_no_parameters(gainful: Gainful, write_table: WriteTable) -> None:
    refused(gainful("solve", write_table("a,x,a,1,1"), "--set", "n_states=4"), 2, "which has no parameters")


def test_more_than_float64_can_certify(gainful: Gainful) -> None:
    refused(gainful("solve", "riverswim", "--precision", "1e-30"), 1, "PrecisionError", "ask for")


def test_an_environment_too_large_for_memory(gainful: Gainful, monkeypatch: pytest.MonkeyPatch) -> None:
    from gainful.environments import registry

    def exhausted(name: str, **parameters: object) -> None:
        raise MemoryError

    monkeypatch.setattr(registry, "make", exhausted)
    refused(gainful("solve", "garnet"), 1, "MemoryError: out of memory")


def test_a_mistake_of_ours_is_one_line_too(gainful: Gainful, monkeypatch: pytest.MonkeyPatch) -> None:
    from gainful.environments import registry

    def broken(name: str, **parameters: object) -> None:
        raise TypeError("oops")

    monkeypatch.setattr(registry, "make", broken)
    refused(gainful("solve", "garnet"), 1, "TypeError: oops", "--debug")


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_a_traceback(gainful: Gainful, place: str) -> None:
    line = ["--debug", "solve", "riverswam"] if place == "before" else ["solve", "riverswam", "--debug"]
    result = gainful(*line)
    assert result.code == 2
    assert "Traceback (most recent call last)" in result.err
    assert "UnknownEnvironmentError" in result.err
    assert "Traceback" not in gainful("solve", "riverswam").err  # not remembered


@pytest.mark.parametrize("line", [(), ("list",), ("solve",)])
def test_nothing_asked_shows_the_help_as_misuse(gainful: Gainful, line: tuple[str, ...]) -> None:
    result = gainful(*line)
    assert result.code == 2
    assert "Usage: gainful" in result.out + result.err


def test_an_unknown_command(gainful: Gainful) -> None:
    refused(gainful("solv"), 2, "UsageError: No such command 'solv'")
    refused(gainful("list", "planets"), 2, "UsageError: No such command 'planets'")
