from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.simulation.transition_table import TabularStepper


def planned(agent: gf.SCALPlus) -> dict[str, Any]:
    agent.on_episode = lambda view: None  # bonuses are shown to those who look
    agent.act(0)
    assert agent.current is not None
    return agent.current.details


def test_the_first_bonus_is_two_spans_and_the_largest_reward() -> None:
    agent = gf.SCALPlus(3, 2, span=5.0, reward_max=2.0)
    assert planned(agent)["bonus"].tolist() == [[12.0, 12.0]] * 3  # 2c + r_max
    assert agent.vacuous


@pytest.mark.parametrize("bonus", ["appendix", "main text"])
@pytest.mark.parametrize("visits", [1, 2, 50, 10_000])
def test_the_bonus_is_the_equation(bonus: Any, visits: int) -> None:
    S, A, c, r_max, delta = 3, 2, 1.5, 1.0, 0.1
    agent = gf.SCALPlus(S, A, span=c, reward_max=r_max, delta=delta, bonus=bonus)
    for _ in range(visits):
        agent.observe(1, 1, 0.25, 2)
    details = planned(agent)
    beta = math.sqrt(7 * math.log(2 * S * A * (visits + 1) / delta) / visits)  # t_k = visits + 1
    expected = (
        c * min(beta + 1 / (visits + 1), 2) + r_max * min(beta, 1)
        if bonus == "appendix"
        else (c + r_max) * beta + c / (visits + 1)
    )
    assert details["bonus"][1, 1] == pytest.approx(expected, rel=1e-14, abs=0)
    assert details["rewards"][3] == pytest.approx(0.25 + expected, rel=1e-14, abs=0)


def test_bonus_scale_multiplies_beta_inside_the_caps_only() -> None:
    agent = gf.SCALPlus(2, 1, span=2.0, bonus_scale=0.01)
    agent.observe(0, 0, 0.0, 1)
    beta = 0.01 * math.sqrt(7 * math.log(2 * 2 * 1 * 2 / 0.05))
    assert planned(agent)["bonus"][0, 0] == pytest.approx(2.0 * (beta + 0.5) + beta, rel=1e-14, abs=0)
    assert not agent.guarantee.holds
    assert "bonus_scale is 0.01" in str(agent.guarantee)
    assert gf.SCALPlus(2, 1, span=2.0).guarantee.holds


def test_an_action_is_tested_before_it_is_executed() -> None:
    agent = gf.SCALPlus(1, 2, span=1.0, bonus_scale=0.1)
    rewards = (0.2, 0.9)
    before, executed, lengths = [0, 0], [0, 0], []  # N_k and ν_k of the two actions
    for t in range(200):
        episodes = len(agent.records)
        action = agent.act(0)
        assert agent.act(0) == action  # asked again, the same answer and no new episode
        if len(agent.records) > max(episodes, 1):
            assert any(executed[a] == max(1, before[a]) for a in (0, 1))  # some pair had used up its executions
            lengths.append(sum(executed))
            before, executed = [before[a] + executed[a] for a in (0, 1)], [0, 0]
        assert executed[action] < max(1, before[action])  # the test comes before the execution
        agent.observe(0, action, rewards[action], 0)
        executed[action] += 1
        assert agent.t == t + 1
    assert lengths[:2] == [1, 1]  # N = 0: each action once, in an episode of its own
    assert min(lengths) >= 1
    assert max(lengths) > 10  # and then episodes double


def test_every_plan_is_optimistic_and_keeps_the_span() -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=7.0)
    run = gf.simulate(agent, mdp, 200_000, seed=3)
    assert np.all(run.episodes["gain_high"] >= run.gain)
    assert np.all(run.episodes["span"] <= 7.0 + 1e-12)
    epsilon = 1 / np.sqrt(run.episodes["step"])
    assert np.all(run.episodes["gain_high"] - run.episodes["gain_low"] <= epsilon)
    S, A, T = 6, 2, 200_000
    assert len(run.episodes) <= S * A * math.log2(8 * T / (S * A))


@pytest.mark.slow
def test_the_certified_precision_of_each_plan_is_confirmed_from_outside() -> None:
    mdp = gf.environments.garnet(15, 3, 5)
    agent = gf.SCALPlus(15, 3, span=2.0, bonus_scale=0.3)
    seen = []

    def look(view: Any) -> None:
        N = np.zeros((15, 3, 15))
        for k in range(45):
            states, counts = view.statistics.row(k)
            N[divmod(k, 3)][states] = counts
        n = N.sum(axis=2)
        p = (N + np.eye(15)[0]) / (n + 1)[:, :, None]
        v = view.plan.values
        Lv = (view.plan.details["rewards"].reshape(15, 3) + p @ v).max(axis=1)
        gaps = np.minimum(Lv, Lv.min() + 2.0) - v
        assert gaps.max() - gaps.min() <= 1 / math.sqrt(view.step) + 1e-12
        assert view.plan.gain_bounds[0] <= gaps.min() + 1e-9
        assert gaps.max() - 1e-9 <= view.plan.gain_bounds[1]
        seen.append(view.episode)

    agent.on_episode = look
    gf.simulate(agent, mdp, 3000, seed=1)
    assert seen == list(range(1, len(seen) + 1))


def test_rewards_in_other_units_change_nothing_but_the_units() -> None:
    mdp = gf.environments.riverswim(4)
    P, R = mdp.to_dense()
    plain = gf.SCALPlus(4, 2, span=3.0, bonus_scale=0.1)
    # scaling by a power of two and shifting by a whole number are exact
    other = gf.SCALPlus(4, 2, span=12.0, bonus_scale=0.1, reward_min=-2.0, reward_max=2.0)
    rich = np.round(R * 1024) / 1024
    a = gf.simulate(plain, gf.MDP(P, rich), 20_000, seed=2)
    b = gf.simulate(other, gf.MDP(P, 4 * rich - 2.0), 20_000, seed=2)
    assert np.array_equal(plain.statistics.visits, other.statistics.visits)
    np.testing.assert_allclose(b.regret, 4 * a.regret, rtol=0, atol=1e-4)
    np.testing.assert_allclose(b.episodes["gain"], 4 * a.episodes["gain"] - 2.0, rtol=0, atol=1e-9)


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.2, bonus="main text", seed=9)
    gf.simulate(agent, mdp, 3210, seed=1)
    agent.save(tmp_path / "it.agent")
    again = gf.load_agent(tmp_path / "it.agent")
    assert again.settings() == agent.settings()
    first, second = gf.simulate(agent, mdp, 5000, seed=2), gf.simulate(again, mdp, 5000, seed=2)
    assert np.array_equal(first.rewards, second.rewards)
    names = [n for n in first.episodes.dtype.names or () if n != "planning_seconds"]
    assert np.array_equal(first.episodes[names], second.episodes[names])


def test_files_that_are_not_agents_are_refused(tmp_path: Path) -> None:
    gf.environments.riverswim(3).save(tmp_path / "m.mdp")
    with pytest.raises(InvalidAgentError, match="not a saved agent"):
        gf.load_agent(tmp_path / "m.mdp")
    agent = gf.SCALPlus(3, 2, span=1.0)
    agent.save(tmp_path / "a.agent")
    content = (tmp_path / "a.agent").read_bytes()
    (tmp_path / "half.agent").write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidAgentError, match="damaged"):
        gf.load_agent(tmp_path / "half.agent")
    with pytest.raises(InvalidAgentError, match="no such file"):
        gf.load_agent(tmp_path / "nothing.agent")


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ((3, 0, 0.5, 0), "state is 3"),
        ((0, 2, 0.5, 0), "action is 2"),
        ((0, 0, 0.5, -1), "next state is -1"),
        ((0, 0, 1.5, 0), "reward 1.5 at step 1"),
        ((0, 0, float("nan"), 0), "reward nan"),
        ((0, 0, "much", 0), "expected a number"),
        ((0.5, 0, 0.5, 0), "state is 0.5"),
        ((1, 1, 0.5, 0), "state 1 does not have it"),
    ],
)
def test_a_bad_observation_is_refused_and_changes_nothing(transition: Any, message: str) -> None:
    agent = gf.SCALPlus(3, 2, span=1.0, allowed=[[True, True], [True, False], [True, True]])
    before = {name: array.copy() for name, array in agent.statistics.to_arrays().items()}
    with pytest.raises(InvalidArgumentError, match=message):
        agent.observe(*transition)
    assert agent.t == 0
    assert all(np.array_equal(array, before[name]) for name, array in agent.statistics.to_arrays().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"span": -1.0}, "span is -1"),
        ({"span": float("inf")}, "span is inf"),
        ({"span": 1.0, "delta": 0.0}, "delta is 0"),
        ({"span": 1.0, "reward_max": 0.0}, "reward_min < reward_max"),
        ({"span": 1.0, "bonus": "none"}, "'appendix', 'main text', 'sharp', 'bernstein' or 'authors'"),
        ({"span": 1.0, "bonus_scale": 0.0}, "bonus_scale is 0"),
        ({"span": 1.0, "allowed": [[True]]}, "allowed has shape"),
        ({"span": 1.0, "seed": -3}, "seed is -3"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.SCALPlus(3, 2, **options)


def test_the_min_action_mixture_meets_the_ceiling_exactly_and_is_executed() -> None:
    mdp = gf.environments.garnet(12, 3, 4)
    agent = gf.SCALPlus(12, 3, span=0.15, bonus_scale=0.02, mixture="min-action")
    mixed_states = 0

    def look(view: Any) -> None:
        nonlocal mixed_states
        policy = view.plan.probabilities
        N = np.zeros((12, 3, 12))
        for k in range(36):
            states, counts = view.statistics.row(k)
            N[divmod(k, 3)][states] = counts
        p = (N + np.eye(12)[0]) / (N.sum(axis=2) + 1)[:, :, None]
        v, r = view.plan.values, view.plan.details["rewards"].reshape(12, 3)
        copies, q = p @ v, r + p @ v
        ceiling = q.max(axis=1).min() + 0.15
        for s in range(12):
            best, worst = q[s].argmax(), copies[s].argmin()
            if q[s, best] <= ceiling + 1e-12:
                assert policy is None or policy[s, best] == 1.0
                continue
            weight = (ceiling - copies[s, worst]) / (q[s, best] - copies[s, worst])
            expected = np.zeros(3)
            expected[best] += weight
            expected[worst] += 1 - weight
            if policy is not None:
                assert np.allclose(policy[s], expected, rtol=0, atol=1e-12)
                mixed_states += int(np.count_nonzero(policy[s]) > 1)

    agent.on_episode = look
    run = gf.simulate(agent, mdp, 20_000, seed=3)
    assert mixed_states > 10
    stepped = gf.SCALPlus(12, 3, span=0.15, bonus_scale=0.02, mixture="min-action")
    world = TabularStepper(mdp, 3)
    state = world.first_state
    for t in range(5_000):
        action = stepped.act(state)
        reward, to = world.step(t, state, action)
        stepped.observe(state, action, reward, to)
        state = to
    again = gf.SCALPlus(12, 3, span=0.15, bonus_scale=0.02, mixture="min-action")
    assert gf.simulate(again, mdp, 5_000, seed=3).final_state == state
    assert run.episodes["span"].max() <= 0.15 + 1e-12
    with pytest.raises(InvalidArgumentError, match="a local plan is deterministic"):
        gf.SCALPlus(12, 3, span=0.15, mixture="min-action", replanning="local")


def test_vacuous_survives_a_file_and_ends_when_the_data_speak(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(4)
    agent = gf.SCALPlus(4, 2, span=3.0)
    gf.simulate(agent, mdp, 100, seed=1)
    assert agent.vacuous
    gf.simulate(agent, mdp, 20_000, seed=2)
    assert not agent.vacuous
    agent.save(tmp_path / "agent")
    assert not gf.load_agent(tmp_path / "agent").vacuous


def test_predict_tells_the_policy_and_changes_nothing() -> None:
    mdp = gf.environments.riverswim(4)
    agent = gf.SCALPlus(4, 2, span=3.0, bonus_scale=0.1)
    assert [agent.predict(s) for s in range(4)] == [0] * 4  # no plan yet
    assert agent.current is None
    gf.simulate(agent, mdp, 20_000, seed=1)
    assert agent.current is not None
    assert [agent.predict(s) for s in range(4)] == agent.current.actions.tolist() == [1] * 4
    mixed = gf.Fixed(4, 2, policy=[[0.4, 0.6], [0.6, 0.4], [0.5, 0.5], [0.0, 1.0]])
    mixed.act(0)
    assert [mixed.predict(s) for s in range(4)] == [1, 0, 0, 1]
    learner = gf.EpsilonGreedyQ(4, 2)
    learner.q[:] = [0, 1, 1, 0, 2, 2, -1, 5]
    assert [learner.predict(s) for s in range(4)] == [1, 0, 0, 1]
    with pytest.raises(InvalidArgumentError, match=r"state is 4, expected an integer in 0 … 3"):
        agent.predict(4)
