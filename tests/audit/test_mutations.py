"""Each deliberate mistake of `mutants` is noticed by the audit, at the statement that names what is wrong."""

from __future__ import annotations

import importlib
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants import is_recorded, known_entries
from tests.audit.all_mutants import ALL_MUTANTS, OTHER_MUTANTS
from tests.audit.mutants import KL, LQG, MUTANTS, RIVER, SOURCES, UCRL2, Mutant, audited, mistaken
from tests.cli.conftest import Gainful
from tests.cli.conftest import gainful as gainful

HORIZON = Mutant.horizon
EVERY_MUTANT = "GAINFUL_MUTANTS"
"""Set by make soak, which audits all of them; make test-all takes a few of each agent, for as many statements."""
MOST_OF_AN_AGENT = 3


def violated(found: dict[str, Any]) -> set[str]:
    return {v["statement"] for v in found["verdicts"] if v["verdict"] == "violated" and v["promised"]}


IN_EVERY_TEST = ("β halved",)
"""The others are for make test-all."""


def chosen_of_others() -> list[Mutant]:
    """All mistakes of the other agents, or the first few of each agent."""
    if os.environ.get(EVERY_MUTANT):
        return list(OTHER_MUTANTS)
    first: dict[tuple[str, ...], dict[tuple[str, ...], Mutant]] = defaultdict(dict)
    for mutant in OTHER_MUTANTS:
        agent = first[mutant.audited[mutant.audited.index("--agent") :][:2]]
        if len(agent) < MOST_OF_AN_AGENT:
            agent.setdefault(mutant.noticed, mutant)
    return [mutant for agent in first.values() for mutant in agent.values()]


@pytest.mark.parametrize(
    "mutant",
    [
        m if m.name in IN_EVERY_TEST else pytest.param(m, marks=pytest.mark.slow)
        for m in (*MUTANTS, *chosen_of_others())
    ],
    ids=lambda mutant: mutant.name,
)
def test_the_audit_notices(mutant: Mutant, tmp_path: Path) -> None:
    found = audited(mutant, tmp_path, runs=1, horizon=mutant.horizon, compiled=mutant.compiled)
    assert violated(found).issuperset(mutant.noticed), violated(found)
    assert found["exit_code"] == 1
    assert not found["ok"]


@pytest.mark.slow
def test_the_audit_notices_in_compiled_code(tmp_path: Path) -> None:
    found = audited(MUTANTS[0], tmp_path, runs=1, horizon=HORIZON)
    assert violated(found).issuperset(MUTANTS[0].noticed)


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.slow) for what in (RIVER, LQG, (*RIVER, *UCRL2), (*RIVER, *KL))],
    ids=["SCAL+", "C-SCAL+", "UCRL2", "KL-SCAL+"],
)
def test_without_a_mistake_nothing_is_violated_and_plain_python_is_the_compiled_run(
    what: tuple[str, ...], tmp_path: Path, gainful: Gainful
) -> None:
    found = audited(None, tmp_path, runs=1, horizon=HORIZON, what=what, compiled=False)
    assert [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated"] == []
    assert found["exit_code"] == 0
    compiled = gainful("audit", *what, "--runs", "1", "--horizon", HORIZON, "--jobs", "1", "--json")
    assert json.loads(compiled.out)["audits"][0]["regret"] == found["regret"]


def test_the_page_of_mistakes_shows_every_one_as_it_is_made_now() -> None:
    entries = known_entries()
    unknown = [mutant.name for mutant in ALL_MUTANTS if not is_recorded(mutant, entries)]
    assert not unknown, "run: python benchmarks/mutants.py --new; make tables"
    assert set(entries) == {mutant.name for mutant in ALL_MUTANTS}
    assert all(set(entry["noticed"]) <= set(entry["violated"]) for entry in entries.values())


def test_every_mistake_can_still_be_made() -> None:
    for mutant in ALL_MUTANTS:
        text = (SOURCES / "gainful" / mutant.file).read_text(encoding="utf-8")
        assert mistaken(mutant, text) != text


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_test_that_notices_too_exists(mutant: Mutant) -> None:
    file, name = mutant.test.split("::")
    assert hasattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
