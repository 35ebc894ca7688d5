"""`gainful run --until-decided`: seeds are added until the ranking is decided, also after kills."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.cli.decided import look_words
from gainful.cli.main import run as gainful
from gainful.errors import ExperimentError, InvalidArgumentError, StoreError
from gainful.experiments.decision_words import decision_sentence, standings
from gainful.experiments.sequential_comparison import SequentialComparison, compare_sequentially
from gainful.experiments.sequential_test import SequentialDesign
from gainful.experiments.spec import Spec, read_spec
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.sweep import SilentWatcher, SweepProgress
from gainful.experiments.until_decided import read_comparison, run_until_decided
from tests.experiments.sweeps import bits

STAY = {"policy": [0, 0, 0]}


def a_spec(seeds: Any = 8, agents: int = 3) -> Spec:
    """A policy at random, the same again, and one that stays; all of them cheap."""
    entries: list[dict[str, Any]] = [
        {"name": "fixed", "label": "at random"},
        {"name": "fixed", "label": "stay", "parameters": STAY},
        {"name": "fixed", "label": "also at random", "parameters": {"delta": 0.1}},
    ]
    return read_spec({"horizon": 200, "seeds": seeds, "environments": [{"name": "toy3d"}], "agents": entries[:agents]})


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        (a_spec(agents=1), {}, "two agents to compare"),
        (a_spec([3, 4]), {}, "cannot be continued"),
        (a_spec(), {"max_seeds": 12}, "a multiple of 8"),
        (a_spec(2), {"max_seeds": 4}, "by chance"),
        (a_spec(), {"error": 0.0}, "between 0 and 1"),
        (a_spec(), {"error": 1e-9, "max_seeds": 80}, "at least 6e-05 for 3 comparisons"),
    ],
    ids=["one agent", "a list of seeds", "no multiple", "undecidable", "no error", "tiny error"],
)
def test_what_cannot_be_decided(spec: Spec, options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        run_until_decided(spec, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--error", "--max-seeds"])
def test_options_of_a_comparison_need_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gainful(["run", "quickstart", option, "1"]) != 0
    assert "add --until-decided" in capsys.readouterr().err


class _KilledError(Exception):
    pass


class _KillAfter(SilentWatcher):
    """Ends the call, like a kill, as soon as so many runs are stored."""

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def progressed(self, sweep: SweepProgress) -> None:
        if sweep.stored + sweep.finished >= self.runs:
            raise _KilledError


@pytest.mark.slow
def test_seeds_are_added_where_something_is_open_and_kills_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks: list[SequentialComparison] = []
    found = gf.run_until_decided(a_spec(), tmp_path / "whole", max_seeds=24, jobs=1, on_look=looks.append)
    comparison = found.comparison
    assert comparison is not None
    assert [look.interims for look in looks] == [1, 2, 3]
    assert {(p.better, p.worse) for p in comparison.pairs if p.decided} == {
        ("at random", "stay"),
        ("also at random", "stay"),
    }
    assert comparison.finished
    assert not comparison.decided
    assert comparison.seeds_used["toy3d"]["stay"] < comparison.seeds_used["toy3d"]["at random"] == 24
    assert found.experiment.complete
    assert found.experiment.planned == sum(comparison.seeds_used["toy3d"].values())
    assert gf.results(tmp_path / "whole").groupby("agent")["seed"].nunique().to_dict() == comparison.seeds_used["toy3d"]

    for runs in (5, 27, 60):
        with pytest.raises(_KilledError):
            run_until_decided(a_spec(), tmp_path / "killed", max_seeds=24, jobs=1, watcher=_KillAfter(runs))
    again = run_until_decided(a_spec(), tmp_path / "killed", max_seeds=24, jobs=1)
    assert again.comparison == comparison
    assert bits(tmp_path / "killed") == bits(tmp_path / "whole")
    assert read_comparison(tmp_path / "killed") == read_comparison(tmp_path / "whole")
    assert run_until_decided(a_spec(), tmp_path / "whole", max_seeds=24).experiment.ran == 0

    with pytest.raises(ExperimentError, match=r"error 0\.05 -> 0\.01"):
        run_until_decided(a_spec(), tmp_path / "whole", max_seeds=24, error=0.01)
    with pytest.raises(ExperimentError, match="other agents"):
        run_until_decided(a_spec(agents=2), tmp_path / "whole", max_seeds=24)
    with pytest.raises(ExperimentError, match="--until-decided added seeds"):
        gf.run_experiment(a_spec(), tmp_path / "whole")

    capsys.readouterr()
    assert gainful(["report", str(tmp_path / "whole"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["comparison"]
    assert told == read_comparison(tmp_path / "whole")
    assert gainful(["report", str(tmp_path / "whole"), "--markdown"]) == 0
    assert "## Who is better than whom" in capsys.readouterr().out
    page = (tmp_path / "whole" / "report.html").read_text("utf-8")
    assert "Who is better than whom" in page
    assert "2 of 3 comparisons are decided" in page


def test_standings_and_words() -> None:
    pairs = [
        {"environment": "e", "better": "b", "worse": "a", "decided": True},
        {"environment": "e", "better": "b", "worse": "c", "decided": False},
        {"environment": "e", "better": "c", "worse": "a", "decided": True},
    ]
    design = {"error": 0.01, "seeds_per_interim": 5, "max_interims": 4}
    facts: dict[str, Any] = {"design": design, "pairs": pairs, "interims": 2, "finished": False}
    facts["seeds"] = {"e": {"a": 5, "b": 10, "c": 10}}
    b, c, a = standings(facts)
    assert (b.agent, b.better_than, b.undecided) == ("b", ("a",), ("c",))
    assert (c.agent, c.undecided) == ("c", ("b",))
    assert (a.agent, a.worse_than, a.seeds) == ("a", ("b", "c"), 5)
    assert "2 of 3 comparisons are decided after 2 looks, so far. " in decision_sentence(facts)
    assert "at most 1 %" in decision_sentence(facts)
    assert decision_sentence(facts | {"pairs": pairs[:1]}).startswith("The comparison is decided")


@pytest.mark.parametrize(("environments", "said"), [(1, "2 agents in e0"), (2, "2 agents in e0, 2 in e1")])
def test_a_look_says_who_gets_more_seeds(environments: int, said: str) -> None:
    values = {"a": [1.0, 2.0] * 3, "b": [2.0, 1.0] * 3}
    design = SequentialDesign(error=0.05, seeds_per_interim=6, max_interims=4)
    found = compare_sequentially({f"e{i}": values for i in range(environments)}, design)
    assert look_words(found).endswith(f"0 of {environments} comparisons decided; 6 more seeds for {said}")
    many = compare_sequentially({f"e{i}": values for i in range(4)}, design)
    assert look_words(many).endswith("6 more seeds for agents in 4 environments")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"design": 1}', "[" * 100_000], ids=range(5))
def test_a_stored_comparison_that_is_none(text: str, tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.keep_fact("comparison", text)
    with pytest.raises(StoreError, match="comparison"):
        read_comparison(tmp_path)


def test_a_comparison_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.keep_fact("comparison", "{}")
    connection = sqlite3.connect(tmp_path / STORE_FILE)
    with connection:
        connection.execute("UPDATE meta SET value = '[]' WHERE key = 'comparison'")
    connection.close()
    with pytest.raises(StoreError, match="checksum of row 'comparison'"):
        read_comparison(tmp_path)
