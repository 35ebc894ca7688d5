"""Every agent that has a name has an auditor of its own."""

from __future__ import annotations

import importlib

import pytest

from gainful.agents import registry
from gainful.audit.kinds import AMONG_POINTS, AUDITED, AUDITED_AMONG_POINTS, BY_BONUS, IN_AN_MDP, ON_CELLS
from gainful.audit.statements import STATEMENTS
from tests.audit.all_mutants import ALL_MUTANTS

POINTS = [name for name in registry.continuous_names() if name != "discretized"]


@pytest.mark.parametrize("name", registry.names())
def test_every_tabular_agent_is_audited_in_an_mdp_and_on_cells(name: str) -> None:
    kind = registry.agent_class(name)  # the class itself: an agent derived from another has its own equations
    assert kind in IN_AN_MDP
    assert kind in ON_CELLS
    assert name in AUDITED


@pytest.mark.parametrize("name", POINTS)
def test_every_agent_among_points_is_audited(name: str) -> None:
    assert registry.continuous_class(name) in AMONG_POINTS
    assert name in AUDITED_AMONG_POINTS


def test_every_auditor_exists_and_lists_known_statements() -> None:
    for home in {*IN_AN_MDP.values(), *ON_CELLS.values(), *AMONG_POINTS.values(), *BY_BONUS.values()}:
        module, name = home.split(".")
        auditor = getattr(importlib.import_module(f"gainful.audit.{module}"), name)
        assert set(getattr(auditor, "names", ())) <= set(STATEMENTS)


@pytest.mark.parametrize("name", [*registry.names(), *POINTS])
def test_every_agent_has_mistakes_that_its_audit_notices(name: str) -> None:
    default = {"riverswim": "scal-plus", "lqg": "c-scal-plus"}
    agents = [
        mutant.audited[mutant.audited.index("--agent") + 1]
        if "--agent" in mutant.audited
        else default[mutant.audited[0]]
        for mutant in ALL_MUTANTS
    ]
    assert name in agents
