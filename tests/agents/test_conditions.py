"""A guarantee is not claimed where the environment is known not to meet what its theorem assumes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import gainful as gf
from gainful.agents.conditions import guarantee_in
from gainful.planning.bias_uniqueness import bias_is_unique

RIVER = gf.environments.riverswim(6)
SPAN = 6.310324
UNREACHABLE = gf.environments.weakly_communicating_toy()


@pytest.mark.parametrize(
    "agent",
    [
        gf.SCALPlus(6, 2, span=3.0),
        gf.KLSCALPlus(6, 2, span=3.0),
        gf.SCAL(6, 2, span=3.0),
        gf.PMEVIDT(6, 2, horizon=100),
        gf.OptimisticQ(6, 2, span=3.0, horizon=10**6),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_a_span_below_that_of_the_bias_voids_the_guarantee(agent: Any) -> None:
    assert agent.guarantee.holds
    found = guarantee_in(agent, RIVER, SPAN)
    assert not found.holds
    assert found.reason_void == f"c = {agent.span:.6g} is below the span of the optimal bias, 6.31"
    assert guarantee_in(agent, RIVER, None).holds
    assert guarantee_in(agent, RIVER, agent.span).holds
    assert guarantee_in(agent, SimpleNamespace(), None).holds


def test_another_solution_of_a_smaller_span_may_meet_the_condition() -> None:
    stay_or_go = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    both = gf.MDP(stay_or_go, [[1.0, 0.0], [1.0, 0.0]])  # h = (0, x) solves the equation for all |x| ≤ 1
    assert not bias_is_unique(both)
    assert guarantee_in(gf.SCALPlus.for_mdp(both, span=0.5), both, 1.0).holds


@pytest.mark.parametrize("kind", [gf.UCRL2, gf.UCRL2B, gf.UCRL3, gf.KLSCALPlus])
def test_states_that_cannot_be_reached_void_the_guarantee_of_agents_that_assume_they_can(kind: Any) -> None:
    agent = kind.for_mdp(UNREACHABLE)
    assert guarantee_in(agent, UNREACHABLE, None).reason_void.startswith("some states cannot be reached from others")
    assert guarantee_in(kind.for_mdp(RIVER), RIVER, None).holds
    assert guarantee_in(gf.KLSCALPlus.for_mdp(UNREACHABLE, span=1.0), UNREACHABLE, 1.0).holds


def test_an_environment_rougher_than_the_agent_was_told_voids_the_guarantee() -> None:
    env = gf.environments.lqg()
    assert env.lipschitz is not None
    told: Any = {"bins": 4, "span": 2.0, "holder": 1.0}
    smooth = gf.CKLSCALPlus.for_environment(env, lipschitz=1.0, **told)
    assert "smoother than the environment" in guarantee_in(smooth, env, None).reason_void
    right = gf.CKLSCALPlus.for_environment(env, lipschitz=env.lipschitz, **told)
    assert guarantee_in(right, env, 1.32).holds
    assert guarantee_in(right, env, 3.0).reason_void == "c = 2 is below the span of the optimal bias, 3"
