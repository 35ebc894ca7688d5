from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.optimism.bernstein import entry_variance, log_term, reward_variance, width
from tests.agents.extended_runs import planned


@pytest.mark.parametrize(("visits", "n"), [(0, 1), (1, 1), (40, 40)])
def test_the_width_is_the_equation(visits: int, n: int) -> None:
    log = log_term(6, 2, visits, 0.05)
    assert log == pytest.approx(math.log(6 * 6 * 2 * n / 0.05), rel=1e-15, abs=0)
    expected = 2 * math.sqrt(0.21 * log / n) + 6 * 3.0 * log / n
    assert width(0.21, log, visits, 3.0, 1.0) == pytest.approx(expected, rel=1e-14, abs=0)
    assert width(0.21, log, visits, 3.0, 0.25) == pytest.approx(expected / 4, rel=1e-14, abs=0)


def test_variances() -> None:
    assert entry_variance(0.3) == pytest.approx(0.21, rel=1e-15, abs=0)
    assert entry_variance(1.0) == 0.0
    assert reward_variance(0.0, 0.0, 0) == 0.0
    assert reward_variance(0.7, 0.7 * 0.7, 1) == pytest.approx(0.0, rel=0, abs=1e-15)
    assert reward_variance(3.0, 5.0, 2) == 0.25  # rewards 1 and 2
    assert reward_variance(0.3, 0.03 - 1e-17, 3) >= 0.0  # never below 0 by rounding


def test_the_plan_uses_the_intervals_of_the_equations() -> None:
    agent = gf.UCRL2B(3, 2, reward_max=2.0)
    first = planned(agent).details
    assert np.all(first["confidence"].unseen == 1.0)
    assert np.all(first["confidence"].lower == 0.0)
    assert np.all(first["rewards"] == 2.0)
    assert agent.vacuous
    for i in range(2000):
        agent.observe(1, 0, float(i % 2), 2 if i % 4 == 0 else 1)
    agent.begin_episode()
    sets = planned(agent).details["confidence"]
    log = math.log(6 * 3 * 2 * 2000 / 0.05)
    w = 2 * math.sqrt(0.25 * 0.75 * log / 2000) + 6 * log / 2000
    assert sets.lower[2:4] == pytest.approx([0.75 - w, 0.25 - w], rel=1e-13, abs=0)  # after the pairs (0,0) and (0,1)
    assert sets.upper[2:4] == pytest.approx([0.75 + w, 0.25 + w], rel=1e-13, abs=0)
    assert sets.unseen[1, 0] == pytest.approx(6 * log / 2000, rel=1e-14, abs=0)
    r = 0.5 + 2 * math.sqrt(0.25 * log / 2000) + 6 * 2.0 * log / 2000
    assert planned(agent).details["rewards"][1, 0] == pytest.approx(r, rel=1e-14, abs=0)
    assert not agent.vacuous
