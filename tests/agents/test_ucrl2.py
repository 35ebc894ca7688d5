from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.optimism.ucrl2 import reward_log, reward_width, transition_log, transition_radius
from tests.agents.extended_runs import planned


@pytest.mark.parametrize(("visits", "at_least_one"), [(0, 1), (1, 1), (50, 50)])
def test_radii_are_the_equations(visits: int, at_least_one: int) -> None:
    S, A, t, delta = 6, 2, 100, 0.05
    of_rewards, of_rows = reward_log(S, A, t, delta), transition_log(A, t, delta)
    assert of_rewards == pytest.approx(math.log(48_000), rel=1e-15, abs=0)
    assert of_rows == pytest.approx(math.log(8000), rel=1e-15, abs=0)
    width = 3.0 * math.sqrt(7 * math.log(48_000) / (2 * at_least_one))
    assert reward_width(of_rewards, visits, 3.0, 1.0) == pytest.approx(width, rel=1e-14, abs=0)
    assert reward_width(of_rewards, visits, 3.0, 0.5) == pytest.approx(width / 2, rel=1e-14, abs=0)
    radius = math.sqrt(14 * 6 * math.log(8000) / at_least_one)
    assert transition_radius(S, of_rows, visits, 1.0) == pytest.approx(radius, rel=1e-14, abs=0)
    assert transition_radius(S, of_rows, visits, 0.1) == pytest.approx(radius / 10, rel=1e-14, abs=0)


def test_the_plan_uses_the_sets_of_the_equations() -> None:
    agent = gf.UCRL2(2, 2, reward_max=4.0)
    assert np.all(planned(agent).details["confidence"].radius == 2.0)  # nothing seen: the whole simplex
    assert np.all(planned(agent).details["rewards"] == 4.0)
    assert agent.vacuous
    for i in range(400):
        agent.observe(0, 1, 1.0, int(i % 4 == 0))
    agent.begin_episode()
    plan = planned(agent)  # t_k = 401
    radius = math.sqrt(14 * 2 * math.log(2 * 2 * 401 / 0.05) / 400)
    assert plan.details["confidence"].radius[0, 1] == pytest.approx(radius, rel=1e-14, abs=0)
    assert plan.details["confidence"].radius[1].tolist() == [2.0, 2.0]
    width = 4 * math.sqrt(7 * math.log(2 * 2 * 2 * 401 / 0.05) / 800)
    assert plan.details["rewards"][0, 1] == pytest.approx(1 + width, rel=1e-14, abs=0)
    assert plan.details["rows"].p[1:3].tolist() == [0.75, 0.25]
    assert plan.gain_bounds[1] >= 4.0  # state 1 has not been tried
    assert not agent.vacuous


def test_a_pair_never_visited_stays_free_under_any_scale() -> None:
    agent = gf.UCRL2(2, 2, width_scale=1e-6)
    agent.observe(0, 0, 0.5, 0)
    plan = planned(agent)
    assert plan.details["confidence"].radius[0, 1] == 2.0
    assert plan.details["rewards"][0, 1] == 1.0
    assert plan.actions[0] == 1
    assert not agent.guarantee.holds
