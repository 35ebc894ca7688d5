from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.optimism.kl import reward_constant, reward_width, transition_constant, transition_radius
from tests.agents.extended_runs import planned


def c_p(S: int, A: int, T: float, delta: float) -> float:
    B = math.log(2 * math.e * S**2 * A * math.log(T) / delta)
    x = B + 1 / math.log(T)
    return S * (B + math.log(x) * (1 + 1 / x))


def test_constants_by_hand() -> None:
    # T = e^10: B = 1 + ln(2·36·2·10/.05) = 1 + ln 28800 = 11.268131, + 1/10 = 11.368131, ln of it 2.430813
    T = math.exp(10)
    assert transition_constant(6, 2, T, 0.05) == pytest.approx(
        6 * (11.268131 + 2.430813 * (1 + 1 / 11.368131)), rel=1e-6, abs=0
    )
    assert transition_constant(6, 2, T, 0.05) == pytest.approx(c_p(6, 2, T, 0.05), rel=1e-14, abs=0)
    assert reward_constant(6, 2, T, 0.05) == pytest.approx(math.sqrt(math.log(9600) / 1.99), rel=1e-14, abs=0)


@pytest.mark.parametrize(("visits", "n"), [(0, 1), (1, 1), (16, 16)])
def test_radii_are_the_equations(visits: int, n: int) -> None:
    assert transition_radius(8.0, visits, 1.0) == 8.0 / n
    assert transition_radius(8.0, visits, 0.5) == 4.0 / n
    assert reward_width(3.0, visits, 2.0, 1.0) == 6.0 / math.sqrt(n)
    assert reward_width(3.0, visits, 2.0, 0.5) == 3.0 / math.sqrt(n)


def test_the_plan_uses_the_sets_of_the_equations() -> None:
    agent = gf.KLUCRL(2, 2, horizon=5000)
    assert np.all(np.isinf(planned(agent).details["confidence"].radius))
    assert agent.vacuous
    for i in range(400):
        agent.observe(0, 1, 0.25, int(i % 4 == 0))
    agent.begin_episode()
    plan = planned(agent)
    assert plan.details["confidence"].radius[0, 1] == pytest.approx(c_p(2, 2, 5000, 0.05) / 400, rel=1e-14, abs=0)
    width = math.sqrt(math.log(4 * 2 * 2 * math.log(5000) / 0.05) / 1.99 / 400)
    assert plan.details["rewards"][0, 1] == pytest.approx(0.25 + width, rel=1e-14, abs=0)
    assert not agent.vacuous


def test_the_guarantee_ends_with_the_horizon() -> None:
    agent = gf.KLUCRL(1, 1, horizon=2)
    for _ in range(2):
        agent.observe(0, agent.act(0), 0.0, 0)
    assert agent.guarantee.holds
    agent.observe(0, agent.act(0), 0.0, 0)
    assert "3 steps observed" in str(agent.guarantee)


@pytest.mark.parametrize("horizon", [1, 0, -5, 2.5, math.inf, math.nan])
def test_bad_horizons(horizon: float) -> None:
    with pytest.raises(InvalidArgumentError, match="horizon is"):
        gf.KLUCRL(3, 2, horizon=horizon)
