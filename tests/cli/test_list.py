"""`gainful list`, `--version`, `--help`, and the words of `--set`."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gainful as gf
from gainful.about import commit
from gainful.cli.source import read_settings
from tests.cli.conftest import Gainful


def test_environments_as_json(gainful: Gainful) -> None:
    result = gainful("list", "environments", "--json")
    assert result.code == 0
    assert result.err == ""
    names = {kind: [e["name"] for e in result.data if e["states"] == kind] for kind in ("finite", "continuous")}
    assert names == {"finite": gf.environments.names(), "continuous": gf.environments.continuous_names()}
    for entry in result.data:
        assert entry["summary"]
        given = [f"{name}={json.dumps(value)}" for name, value in entry["parameters"].items() if value is not None]
        make: Any = gf.environments.make if entry["states"] == "finite" else gf.environments.make_continuous
        told, usual = make(entry["name"], **read_settings(given)), make(entry["name"])
        assert (told if entry["states"] == "finite" else repr(told)) == (
            usual if entry["states"] == "finite" else repr(usual)
        )


def test_environments_for_people(gainful: Gainful) -> None:
    result = gainful("list", "environments")
    assert result.code == 0
    for name in gf.environments.names():
        assert f"{name}\n" in result.out
    assert "  n_states=6" in result.out
    assert "gainful solve NAME" in result.err


def test_version_and_help(gainful: Gainful) -> None:
    version, built_from = gainful("--version"), commit()
    expected = f"gainful {gf.__version__}" + (f" (commit {built_from})" if built_from else "")
    assert (version.code, version.out, version.err) == (0, f"{expected}\n", "")
    for line in ((), ("solve",), ("list",), ("list", "environments")):
        for word in ("-h", "--help"):
            result = gainful(*line, word)
            assert result.code == 0
            assert result.err == ""
            assert all(len(x) <= 80 for x in result.out.splitlines())
    assert '"inf"' in gainful("solve", "--help").out


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("1_000", 1000),
        ("-2", -2),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("True", True),
        ("false", False),
        ("states", "states"),
        ('"two words"', "two words"),
        ("'it'", "it"),
        ("[1, 2.5]", [1, 2.5]),
        ('["a"]', ["a"]),
        ("null", None),
        ("a=b", "a=b"),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_values_of_set(text: str, value: Any) -> None:
    found = read_settings([f"x={text}"])["x"]
    assert found == value
    assert type(found) is type(value)


def test_registered_names_are_listed_and_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch, gainful: Gainful) -> None:
    class Point:
        def __init__(self, name: str, value: str) -> None:
            self.name, self.value = name, value

        def load(self) -> None:
            raise AssertionError("nothing is loaded to list a name")

    points = [Point("plain-bonus", "no_such_module:PlainBonus"), Point("ucrl2", "no_such_module:Other")]
    monkeypatch.setattr("gainful.user_modules.entry_points", lambda group: points)
    listed = gainful("list", "agents", "--json").data
    assert [one["summary"] for one in listed if one["name"] == "plain-bonus"] == [
        "registered by a package: no_such_module:PlainBonus"
    ]
    assert sum(one["name"] == "ucrl2" for one in listed) == 1
    assert "plain-bonus" in gainful("list", "environments").out
