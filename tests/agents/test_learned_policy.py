from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.agents.learned_policy import learned_policy


def machine(**options: object) -> gf.UCRL2:
    """Two states with two actions each: action 1 pays more, and both lead to the other state."""
    return gf.UCRL2(2, 2, **options)  # type: ignore[arg-type]


def test_before_anything_was_seen_nothing_is_sure() -> None:
    found = learned_policy(machine())
    assert np.isnan(found.sure).all()
    assert found.favoured.tolist() == [-1, -1]
    assert found.untried.tolist() == [2, 2]


def test_what_is_no_agent_has_no_policy() -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match="expected an agent of gainful"):
        learned_policy(gf.environments.riverswim(4))


def test_the_data_favour_what_paid_more_and_more_data_make_it_surer() -> None:
    agent = machine()
    sure = []
    for _ in range(3):
        for _ in range(20):
            for s in (0, 1):
                agent.observe(s, 0, 0.4, 1 - s)
                agent.observe(s, 1, 0.6, 1 - s)
        found = learned_policy(agent)
        assert found.favoured.tolist() == [1, 1]
        # nothing was planned yet: the policy is the lowest action, which pays 0.2 less
        assert found.lead == pytest.approx([-0.2, -0.2], rel=0, abs=1e-9)
        sure.append(float(found.sure[0]))
    assert sure == sorted(sure, reverse=True)
    assert sure[-1] < 0.05


def test_equal_actions_are_a_tie() -> None:
    agent = machine()
    for s in (0, 1):
        for a in (0, 1):
            agent.observe(s, a, 0.5, 1 - s)
    found = learned_policy(agent)
    assert found.lead == pytest.approx([0.0, 0.0], rel=0, abs=1e-9)
    assert found.sure == pytest.approx([0.5, 0.5], rel=0, abs=1e-9)
    assert found.favoured.tolist() == found.actions.tolist()


def test_the_only_action_is_sure_and_an_untried_one_is_not() -> None:
    agent = machine(allowed=[[True, False], [True, True]])
    agent.observe(0, 0, 0.5, 1)
    agent.observe(1, 0, 0.5, 0)
    found = learned_policy(agent)
    assert found.sure[0] == 1.0
    assert np.isinf(found.lead[0])
    assert np.isnan(found.sure[1])
    assert found.untried.tolist() == [0, 1]


def test_parts_that_do_not_reach_each_other_have_an_answer() -> None:
    agent = gf.UCRL2(3, 2)
    for _ in range(50):
        agent.observe(0, 0, 0.1, 0)  # stays, and pays little
        agent.observe(0, 1, 0.0, 1)  # leaves for where more is paid, and never returns
        agent.observe(1, 0, 0.9, 1)
        agent.observe(1, 1, 0.8, 2)  # 2 is reached and never left
    found = learned_policy(agent)
    assert found.favoured.tolist() == [1, 0, -1]
    assert found.state_visits.tolist() == [100, 100, 0]


def test_the_order_of_states_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    order = rng.permutation(4)
    plain, shuffled = gf.UCRL2(4, 2), gf.UCRL2(4, 2)
    for _ in range(400):
        s, a, to = (int(i) for i in rng.integers(0, (4, 2, 4)))
        r = rng.random()
        plain.observe(s, a, r, to)
        shuffled.observe(int(order[s]), a, r, int(order[to]))
    here, there = learned_policy(plain), learned_policy(shuffled)
    assert there.sure[order] == pytest.approx(here.sure, rel=0, abs=1e-5)
    assert there.lead[order] == pytest.approx(here.lead, rel=0, abs=1e-5)
