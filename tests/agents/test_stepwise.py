from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError
from gainful.simulation.transition_table import TabularStepper


def both(mdp: gf.MDP, **options: Any) -> list[StepwiseAgent]:
    common: dict[str, Any] = {
        "reward_min": mdp.reward_min, "reward_max": mdp.reward_max, "allowed": mdp.allowed, **options
    }  # fmt: skip
    return [
        gf.OptimisticQ(mdp.n_states, mdp.n_actions, span=3.0, horizon=5000, bonus_scale=0.01, **common),
        gf.EpsilonGreedyQ(mdp.n_states, mdp.n_actions, **common),
    ]


def test_the_first_updates_of_optimistic_q_by_hand() -> None:
    T, S, A, delta, sp = 10_000, 2, 2, 0.05, 1.5
    agent = gf.OptimisticQ(S, A, span=sp, horizon=T)
    H = min(math.sqrt(sp * T / (S * A)), (T / (S * A * math.log(4 * T / delta))) ** (1 / 3))
    assert agent.effective_horizon == pytest.approx(H, rel=1e-15)
    assert agent.q == pytest.approx(np.full(4, H), rel=1e-15)
    agent.observe(0, 1, 0.5, 1)
    bonus = 4 * sp * math.sqrt(H * math.log(2 * T / delta))
    first = 0.5 + (1 - 1 / H) * H + bonus  # τ = 1: step 1
    assert agent.target[1] == pytest.approx(first, rel=1e-14)
    assert agent.q[1] == pytest.approx(min(H, first), rel=1e-14)
    agent.observe(0, 1, 0.25, 1)
    alpha = (H + 1) / (H + 2)
    second = (1 - alpha) * first + alpha * (0.25 + (1 - 1 / H) * H + bonus / math.sqrt(2))
    assert agent.target[1] == pytest.approx(second, rel=1e-14)


def test_the_first_updates_of_differential_q_by_hand() -> None:
    agent = gf.EpsilonGreedyQ(2, 2, epsilon=0.2, step_size=0.5, gain_rate=0.25)
    agent.observe(0, 1, 0.8, 1)
    assert agent.q.tolist() == [0.0, 0.4, 0.0, 0.0]
    assert agent.numbers[3] == pytest.approx(0.1, rel=1e-15)
    agent.observe(1, 0, 1.0, 0)  # d = 1 - 0.1 + 0.4 - 0
    assert agent.q[2] == pytest.approx(0.65, rel=1e-15)
    assert agent.numbers[3] == pytest.approx(0.1 + 0.25 * 0.65, rel=1e-15)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", ["riverswim", "machine-replacement", "garnet"])
def test_stepped_and_compiled_runs_are_equal_to_the_bit(which: int, name: str) -> None:
    mdp = gf.environments.garnet(8, 3, 3) if name == "garnet" else gf.environments.registry.make(name)
    compiled, stepped = both(mdp)[which], both(mdp)[which]
    run = gf.simulate(compiled, mdp, 1500, seed=6)
    world = TabularStepper(mdp, 6)
    state = world.first_state
    for t in range(1500):
        action = stepped.act(state)
        assert stepped.act(state) == action
        reward, to = world.step(t, state, action)
        stepped.observe(state, action, reward, to)
        state = to
    assert state == run.final_state
    assert np.array_equal(stepped.q, compiled.q)
    assert np.array_equal(stepped.numbers, compiled.numbers)
    assert np.array_equal(stepped.statistics.visits, compiled.statistics.visits)


@pytest.mark.parametrize("which", [0, 1])
def test_a_saved_agent_goes_on_to_the_same_bits(which: int, tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(5)
    agent = both(mdp, seed=4)[which]
    gf.simulate(agent, mdp, 777, seed=1)
    agent.save(tmp_path / "a")
    again = gf.load_agent(tmp_path / "a")
    assert again.settings() == agent.settings()
    first, second = gf.simulate(agent, mdp, 999, seed=2), gf.simulate(again, mdp, 999, seed=2)
    assert np.array_equal(first.rewards, second.rewards)
    assert np.array_equal(agent.q, again.q)


def test_epsilon_is_the_frequency_of_exploration() -> None:
    agent = gf.EpsilonGreedyQ(1, 4, epsilon=0.3, step_size=0.0)
    actions = []
    for _ in range(20_000):
        actions.append(agent.act(0))
        agent.observe(0, actions[-1], 0.0, 0)
    found = np.bincount(actions, minlength=4) / 20_000
    expected = np.array([0.7 + 0.075, 0.075, 0.075, 0.075])
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000))


def test_both_learn_an_easy_problem() -> None:
    P = np.full((2, 2, 2), 0.5)
    mdp = gf.MDP(P, [[0.1, 0.9], [0.8, 0.2]])
    horizon = 200_000
    chance = gf.solve(mdp).gain - 0.5  # the regret per step of random play
    for agent in (
        gf.OptimisticQ(2, 2, span=1.0, horizon=horizon, bonus_scale=0.05),
        gf.EpsilonGreedyQ(2, 2, epsilon=0.1),
    ):
        run = gf.simulate(agent, mdp, horizon, seed=0)
        assert run.pseudo_regret[-1] / horizon < 0.25 * chance


def test_guarantees_are_honest() -> None:
    agent = gf.OptimisticQ(2, 2, span=1.0, horizon=10**5)
    assert agent.guarantee.holds
    agent.t = 10**5 + 1
    assert "made 100001 steps" in str(agent.guarantee)
    assert "must exceed 2" in str(gf.OptimisticQ(6, 2, span=7.0, horizon=100).guarantee)  # the formula gives 0.975
    assert not gf.OptimisticQ(2, 2, span=1.0, horizon=100, bonus_scale=0.5).guarantee.holds
    assert not gf.EpsilonGreedyQ(2, 2).guarantee.holds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gf.OptimisticQ(2, 2, span=0.0, horizon=10), "span is 0"),
        (lambda: gf.OptimisticQ(2, 2, span=1.0, horizon=0), "horizon is 0"),
        (lambda: gf.OptimisticQ(2, 2, span=1.0, horizon=10, effective_horizon=1.0), "effective_horizon is 1"),
        (lambda: gf.EpsilonGreedyQ(2, 2, epsilon=1.5), "epsilon is 1.5"),
        (lambda: gf.EpsilonGreedyQ(2, 2, step_size=-0.1), "step_size is -0.1"),
        (lambda: gf.EpsilonGreedyQ(2, 2, gain_rate=0.0), "gain_rate is 0"),
    ],
)
def test_bad_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_optimistic_q_says_when_nothing_seen_has_mattered_yet() -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.OptimisticQ(6, 2, span=7.0, horizon=10**6)
    assert agent.vacuous
    assert gf.simulate(agent, mdp, 10, seed=1).vacuous
    assert not gf.simulate(gf.OptimisticQ(6, 2, span=7.0, horizon=10**6, bonus_scale=0.001), mdp, 10**5, seed=1).vacuous
