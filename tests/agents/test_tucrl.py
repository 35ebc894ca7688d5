from __future__ import annotations

import math

import numpy as np
import pytest

import gainful as gf
from gainful.agents.tucrl import TUCRLBounds
from gainful.errors import InvalidArgumentError
from gainful.optimism.bernstein import well_visited
from gainful.planning.confidence import Intervals, L1Ball
from gainful.simulation.transition_table import TabularStepper
from tests import bits
from tests.agents.extended_runs import assert_same_agent, planned, walk


def with_a_dream() -> gf.MDP:
    """RiverSwim-3 and a state of reward 1 that nothing leads to: weakly communicating, gain that of RiverSwim-3."""
    river = gf.environments.riverswim(3)
    P, R = np.zeros((4, 2, 4)), np.ones((4, 2))
    P[:3, :, :3] = river.matrix().toarray().reshape(3, 2, 3)
    P[3, :, 0] = 1.0
    R[:3] = river.pair_rewards.reshape(3, 2)
    return gf.MDP(P, R)


def test_which_pairs_are_well_visited() -> None:
    # max{1, N-1} > sqrt(t/(SA)), S = 3, A = 2
    assert well_visited(0, 3, 2, 5)  # 1 > sqrt(5/6)
    assert not well_visited(0, 3, 2, 6)
    assert not well_visited(2, 3, 2, 6)
    assert well_visited(3, 3, 2, 6)
    assert not well_visited(11, 3, 2, 600)  # 10 > sqrt(100) is false
    assert well_visited(12, 3, 2, 600)


def test_truncation_before_and_after_the_first_steps() -> None:
    agent = gf.TUCRL(3, 2)
    sets = planned(agent).details["confidence"]
    assert not sets.truncated.any()
    assert sets.reachable.all()
    agent.observe(1, 0, 0.0, 1)
    agent.begin_episode()
    sets = planned(agent).details["confidence"]  # t_k = 2 < SA: no pair may leave what has been visited
    assert sets.truncated.all()
    assert sets.reachable.tolist() == [False, True, False]
    for _ in range(98):
        agent.observe(1, 0, 0.0, 1)
    agent.begin_episode()
    sets = planned(agent).details["confidence"]  # sqrt(100/6) = 4.08: (1,1) was never tried, so it may go anywhere
    assert sets.truncated.tolist() == [[False, False], [True, False], [False, False]]
    for _ in range(101):
        agent.observe(1, 1, 0.0, 1)
    agent.begin_episode()
    plan = planned(agent)
    assert plan.details["confidence"].truncated.all()  # no visited pair is left: the other states leave the plan
    rows = plan.details["optimistic_rows"]
    assert set(rows.indices.tolist()) == {1}


def test_a_new_state_ends_the_episode() -> None:
    agent = gf.TUCRL(3, 1)
    agent.act(0)
    agent.observe(0, 0, 0.0, 0)
    agent.act(0)
    episodes = len(agent.records)
    agent.observe(0, 0, 0.0, 2)
    assert agent.interrupted
    agent.act(2)
    assert len(agent.records) == episodes + 1
    assert agent.act(2) == 0
    assert len(agent.records) == episodes + 1
    assert not agent.interrupted


@pytest.mark.parametrize("bounds", ["published", "ucrl2b"])
def test_a_dream_state_loses_its_attraction(bounds: TUCRLBounds) -> None:
    mdp = with_a_dream()
    truncating, believing = gf.TUCRL(4, 2, bounds=bounds), gf.UCRL2B(4, 2)
    good, bad = (gf.simulate(agent, mdp, 300_000, seed=1) for agent in (truncating, believing))
    assert good.pseudo_regret[-1] < 0.05 * 300_000 * good.gain
    assert bad.pseudo_regret[-1] > 0.3 * 300_000 * bad.gain
    assert not truncating.visited[3]
    # a pair that t has outgrown may dream again, so not every plan is sober; but no believer's ever is
    assert truncating.episodes["gain_high"].min() < good.gain + 0.1
    assert believing.episodes["gain_high"].min() > 0.9


def test_regret_is_sublinear_where_a_state_cannot_be_reached() -> None:
    mdp = gf.environments.weakly_communicating_toy()
    run = gf.simulate(gf.TUCRL(3, 2, allowed=mdp.allowed), mdp, 1_000_000, seed=1, checkpoints=[10_000])
    first, last = run.expected_regret
    assert 0.0 < last < 10 * first  # √100; linear regret would give 100
    assert last < 0.01 * 1_000_000 * run.gain


def radius_by_hand(counts: list[int], n_states: int, t: int) -> float:
    n = sum(counts)
    b = math.log(2 * n_states * 2 * t / 0.05)
    p = [count / n for count in counts] + [0.0] * (n_states - len(counts))
    return sum(math.sqrt(14 * x * (1 - x) * b / n) + 49 / 3 * b / max(1, n - 1) for x in p)


def test_plans_use_balls_until_every_state_was_visited_and_intervals_from_then_on() -> None:
    agent = gf.TUCRL(3, 2)
    for to in [1] * 2000 + [0] * 3000:
        agent.observe(0, 1, 0.5, to)
    agent.begin_episode()
    ball = planned(agent).details["confidence"]
    assert isinstance(ball, L1Ball)
    assert ball.radius[0, 1] == pytest.approx(radius_by_hand([3000, 2000], 3, 5001), rel=1e-12, abs=0)
    assert ball.radius[0, 0] == 2.0
    agent.observe(0, 1, 0.5, 2)
    agent.begin_episode()
    intervals = planned(agent).details["confidence"]
    assert isinstance(intervals, Intervals)
    log = math.log(2 * 3 * 2 * 5002 / 0.05)
    assert intervals.unseen[0, 1] == pytest.approx(49 / 3 * log / 5000, rel=1e-12, abs=0)


def test_the_bounds_of_ucrl2b_have_no_guarantee() -> None:
    assert gf.TUCRL(3, 2).guarantee.holds
    narrow = gf.TUCRL(3, 2, bounds="ucrl2b").guarantee
    assert not narrow.holds
    assert "narrower than the theorem's" in str(narrow)
    with pytest.raises(InvalidArgumentError, match="bounds is 'both'"):
        gf.TUCRL(3, 2, bounds="both")  # type: ignore[arg-type]


def test_an_agent_saved_without_bounds_has_those_of_ucrl2b() -> None:
    old = gf.load_agent(bits.V1 / "agents" / "tucrl.npz")
    assert old.bounds == "ucrl2b"
    assert old.settings()["bounds"] == "ucrl2b"


def test_stepping_is_simulating_where_a_state_is_out_of_reach() -> None:
    mdp = with_a_dream()
    stepped, simulated = gf.TUCRL(4, 2, width_scale=0.1), gf.TUCRL(4, 2, width_scale=0.1)
    world = TabularStepper(mdp, 8)
    walk(stepped, world, world.first_state, 1000)
    gf.simulate(simulated, mdp, 1000, seed=8)
    assert_same_agent(stepped, simulated)
