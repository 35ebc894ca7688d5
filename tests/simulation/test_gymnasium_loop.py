from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.simulation import gymnasium_loop
from gainful.simulation.gymnasium_model import GymnasiumModel
from gainful.simulation.simulate import simulate
from tests.simulation.test_continuous import assert_same, c_scal_plus, partition


def stepped(agent: Any, env: Any, steps: int, seed: int, first_action: int = 0, first_state: int = 0) -> float:
    """The loop as one writes it; returns the sum of rewards."""
    points = hasattr(agent, "partition")
    x, _ = env.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        here = x if points else x - first_state
        action = agent.act(here)
        to, reward, terminated, truncated, _ = env.step(action + first_action)
        if terminated:
            to, _ = env.reset()
        agent.observe(here, action, reward, to if points else to - first_state)
        total, x = total + float(reward), to
        if truncated and not terminated:
            x, _ = env.reset()
    agent.act(x if points else x - first_state)
    return total


def on_box(env: Any, bins: int = 6, low: Any = None, high: Any = None, **options: Any) -> gf.CSCALPlus:
    part = gf.Partition.from_box(env.observation_space, bins=bins, low=low, high=high)
    given = {"n_actions": int(env.action_space.n), "span": 2.0, "bonus_scale": 0.05, **options}
    return gf.CSCALPlus(partition=part, **given)


class Walk(gymnasium.Env[Any, Any]):
    """A walk on 0 … 9 that ends at 9 (reward 1), or after 25 steps; an observation of any kind, by `show`."""

    def __init__(self, show: Any = int, space: Any = None, first_action: int = 0) -> None:
        self.observation_space = spaces.Discrete(10) if space is None else space
        self.action_space = spaces.Discrete(2, start=first_action)
        self.show, self.first_action, self.at, self.age, self.trouble = show, first_action, 0, 0, -1
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.age = int(self.np_random.integers(3)), 0
        return self.show(self.at), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        self.steps += 1
        if self.steps == self.trouble:
            raise OSError("the line is dead")
        right = (action - self.first_action == 1) == (self.np_random.random() < 0.9)
        self.at = max(0, self.at + (1 if right else -1))
        self.age += 1
        return self.show(self.at), float(self.at == 9), self.at == 9, self.age == 25, {}


def as_point(at: int) -> Any:
    return np.array([at / 10], dtype=np.float32)


POINTS = spaces.Box(0.0, 1.0, (1,))


def test_a_run_through_gymnasium_is_the_compiled_run() -> None:
    for name in ("lqg", "mountain-car"):
        env = gf.environments.make_continuous(name)
        first, second = (c_scal_plus(env, partition=partition(env, user_units=True)) for _ in range(2))
        compiled = simulate(first, env, 1500, seed=7, gain=0.5)
        run = simulate(second, env.to_gymnasium(), 1500, seed=7, gain=0.5)
        assert np.array_equal(run.final_point, compiled.final_point)
        assert np.array_equal(run.rewards, compiled.rewards)
        assert np.array_equal(run.regret, compiled.regret)
        assert run.final_state == compiled.final_state
        assert_same(first, second)


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0"])
def test_the_loop_is_that_of_act_step_and_observe(name: str) -> None:
    options: dict[str, Any] = {"reward_min": -1.0, "reward_max": 1.0, "mixture": "copy"}
    if name == "CartPole-v1":
        options |= {"low": [-2.4, -3.0, -0.21, -3.0], "high": [2.4, 3.0, 0.21, 3.0]}
    env = gymnasium.make(name)
    first, second = on_box(env, **options), on_box(env, **options)
    run = simulate(first, env, 1500, seed=3)
    assert stepped(second, env, 1500, 3) == run.rewards[-1]
    first.act(run.final_point)
    assert_same(first, second)
    assert math.isnan(run.gain)
    assert np.isnan(run.regret).all()
    assert "say gain=" in run.gain_source


KINDS: dict[str, Any] = {
    "plain": lambda: gf.CSCALPlus(partition=gf.Partition.uniform(bins=10), n_actions=2, span=5.0, bonus_scale=0.1),
    "min-action": lambda: gf.CSCALPlus(
        partition=gf.Partition.uniform(bins=10), n_actions=2, span=0.1, bonus_scale=0.02, mixture="min-action"
    ),
    "doubling": lambda: gf.CSCALPlus(n_actions=2, span=5.0, bonus_scale=0.1, lipschitz=1.0, holder=1.0),
    "new states": lambda: gf.Discretized(gf.TUCRL, gf.Partition.uniform(bins=10), n_actions=2),
    "last steps": lambda: gf.Discretized(gf.PSRL, gf.Partition.uniform(bins=10), n_actions=2),
    "blocks": lambda: gf.Discretized(
        gf.UCBVI, gf.Partition.uniform(bins=10), n_actions=2, episode_length=10, horizon=3000
    ),
    "learning at every step": lambda: gf.Discretized(gf.EpsilonGreedyQ, gf.Partition.uniform(bins=10), n_actions=2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_agent_runs_as_if_stepped(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium_loop, "STEPS_KEPT_ASIDE", 37)
    first, second = KINDS[kind](), KINDS[kind]()
    steps = 2500 if kind == "doubling" else 1500
    run = simulate(first, Walk(as_point, POINTS), steps, seed=1)
    assert stepped(second, Walk(as_point, POINTS), steps, 1) == run.rewards[-1]
    first.act(run.final_point)
    assert_same(first, second)


@pytest.mark.parametrize("kind", ["plain", "doubling", "learning at every step"])
def test_an_environment_with_one_array_for_all_observations(kind: str) -> None:
    shared = np.zeros(1, dtype=np.float32)

    def show(at: int) -> Any:
        shared[0] = at / 10
        return shared

    first, second = KINDS[kind](), KINDS[kind]()
    one = simulate(first, Walk(show, POINTS), 1300, seed=1)
    other = simulate(second, Walk(as_point, POINTS), 1300, seed=1)
    assert np.array_equal(one.rewards, other.rewards)
    assert_same(first, second)


@pytest.mark.parametrize("made", [gf.TUCRL, gf.EpsilonGreedyQ])
def test_discrete_observations_and_spaces_that_begin_elsewhere(made: Any) -> None:
    env = Walk(lambda at: at + 5, spaces.Discrete(10, start=5), first_action=-1)
    first, second = made(10, 2), made(10, 2)
    run = simulate(first, env, 1200, seed=2, checkpoints=[10])
    assert stepped(second, env, 1200, 2, first_action=-1, first_state=5) == run.rewards[-1]
    first.act(run.final_state)
    for name, array in first.statistics.to_arrays().items():
        assert np.array_equal(array, second.statistics.to_arrays()[name]), name
    assert [r[:-1] for r in first.core.records] == [r[:-1] for r in second.core.records]
    assert run.steps.tolist() == [10, 1200]


def test_a_terminal_state_leads_back_to_the_start_and_a_limit_of_time_does_not() -> None:
    agent = gf.Fixed(10, 2, policy=[1] * 10)
    simulation = gymnasium_loop.GymnasiumSimulation(agent, Walk(), 0, np.array([5000]), GymnasiumModel(math.nan, ""))
    simulation.finish()
    assert simulation.restarts > 200
    statistics = agent.statistics
    assert statistics.visits[9 * 2 : 10 * 2].sum() == 0  # never left: it is never a state
    into = {int(to) for pair in range(20) for to in statistics.row(pair)[0]}
    assert 9 not in into
    after_goal = set(statistics.row(8 * 2 + 1)[0].tolist())
    assert {0, 1, 2} <= after_goal <= {0, 1, 2, 7}
    # a step from 4 goes to 3 or 5, whatever the clock says
    assert set(statistics.row(4 * 2 + 1)[0].tolist()) == {3, 5}


def test_regret_needs_a_gain_and_learning_shows_in_it() -> None:
    agent = gf.SCALPlus(10, 2, span=3.0, bonus_scale=0.02)
    env = Walk()
    run = simulate(agent, env, 20_000, seed=1, gain=0.1, checkpoints=[2000])
    np.testing.assert_array_equal(run.regret, run.steps * 0.1 - run.rewards)
    assert np.isnan(run.pseudo_regret).all()
    late = (run.rewards[1] - run.rewards[0]) / 18_000
    assert late > 0.08  # about 10 steps to the goal


def test_regret_of_a_gymnasium_id_of_ours_is_not_nan() -> None:
    env, mdp = gymnasium.make("gainful/RiverSwim-v0"), gf.environments.riverswim(6)
    agent = gf.PSRL(6, 2)
    agent.observe(0, 0, 0.005, 0)  # what it did before does not count
    run = simulate(agent, env, 1000, seed=1)
    assert run.gain == simulate(gf.PSRL(6, 2), mdp, 10).gain
    assert run.gain_source == "solved"
    assert run.measure == "expected_regret"
    np.testing.assert_allclose(run.regret, run.steps * run.gain - run.rewards, rtol=0, atol=0)
    visits = agent.statistics.visits - (np.arange(12) == 0)
    gaps, means = gf.optimality_gaps(mdp).reshape(-1), mdp.rewards.reshape(-1)
    assert run.expected_regret[-1] == pytest.approx(float(visits @ gaps), rel=1e-12, abs=0)
    assert run.pseudo_regret[-1] == pytest.approx(1000 * run.gain - float(visits @ means), rel=1e-12, abs=0)
    assert np.all(np.diff(run.expected_regret) >= 0.0)


def test_an_action_that_a_state_does_not_have_loses_what_the_action_taken_loses() -> None:
    env, mdp = gymnasium.make("gainful/MachineReplacement-v0"), gf.environments.machine_replacement()
    never = gf.Fixed(mdp.n_states, 2, policy=[0] * mdp.n_states, reward_min=mdp.reward_min, reward_max=mdp.reward_max)
    run = simulate(never, env, 1000, seed=1)
    visits = never.statistics.visits.reshape(-1, 2)
    assert visits[-1, 0] > 0  # the last state has action 1 alone
    gaps = gf.optimality_gaps(mdp)
    expected = float(visits[:-1, 0] @ gaps[:-1, 0] + visits[-1, 0] * gaps[-1, 1])
    assert run.expected_regret[-1] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_wrapper_that_may_change_the_model_leaves_regret_unknown() -> None:
    plain = gymnasium.make("gainful/RiverSwim-v0")
    halved = gymnasium.wrappers.TransformReward(plain, lambda r: float(r) / 2)
    run = simulate(gf.PSRL(6, 2), halved, 100)
    assert math.isnan(run.gain)
    assert "TransformReward may change the model" in run.gain_source
    assert np.isnan(run.expected_regret).all()
    given = simulate(gf.PSRL(6, 2), halved, 100, gain=0.2)
    assert np.isfinite(given.regret).all()
    counted = gymnasium.wrappers.RecordEpisodeStatistics(plain)
    assert np.isfinite(simulate(gf.PSRL(6, 2), counted, 100).expected_regret).all()


@pytest.mark.slow
def test_a_continuous_id_of_ours_has_the_gain_of_its_oracle() -> None:
    env = gymnasium.make("gainful/LQG-v0")
    inside: Any = env.unwrapped
    part = gf.Partition.from_box(inside.observation_space, bins=4)
    run = simulate(c_scal_plus(inside.environment, partition=part), env, 50, seed=0)
    assert run.gain == pytest.approx(gf.environments.oracle_gain(inside.environment).gain, rel=1e-12, abs=0)
    assert np.isfinite(run.regret).all()


def test_what_cannot_be_is_refused_and_what_was_lived_is_kept() -> None:
    shown = iter(range(10**6))

    def strange(value: Any) -> Any:
        return lambda at: value if next(shown) == 60 else as_point(at)

    for value, message in (
        (np.array([np.nan], np.float32), "the observation at step 60 of the run: axis 0 is NaN"),
        (np.array([1.5], np.float32), r"step 60 of the run: axis 0 is 1.5, outside"),
        (np.array([0.5, 0.5], np.float32), r"step 60 of the run: the point has shape \(2,\)"),
    ):
        shown = iter(range(10**6))
        agent, env = KINDS["plain"](), Walk(strange(value), POINTS)
        env.age = -(10**6)
        with pytest.raises(InvalidArgumentError, match=message):
            simulate(agent, _without_end(env), 1000)
        assert agent.t == agent.statistics.visits.sum() == 59
    tabular = gf.SCALPlus(10, 2, span=1.0)
    with pytest.raises(InvalidArgumentError, match=r"state is 1[234]"):
        simulate(tabular, Walk(lambda at: at + 12), 100)
    stingy = gf.SCALPlus(10, 2, span=1.0, reward_max=0.5)
    with pytest.raises(InvalidArgumentError, match=r"reward 1.0 at step \d+, expected a number in \[0, 0.5\]"):
        simulate(stingy, Walk(), 10_000)
    assert stingy.t == stingy.statistics.visits.sum() > 0
    broken = Walk()
    broken.trouble = 77
    with pytest.raises(OSError, match="the line is dead"):
        simulate(tabular, broken, 1000)
    assert tabular.t == tabular.statistics.visits.sum() == 76


def _without_end(env: Walk) -> Walk:
    """The same walk, never ended."""
    step = env.step

    def endless(action: Any) -> Any:
        observation, reward, _, _, info = step(action)
        env.at = min(env.at, 8)
        return observation, reward, False, False, info

    env.step = endless  # type: ignore[method-assign]
    return env


def test_environments_that_do_not_fit_are_refused() -> None:
    points, tabular = KINDS["plain"](), gf.SCALPlus(10, 2, span=1.0)
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2)
    with pytest.raises(InvalidArgumentError, match="steps several environments at once"):
        simulate(points, vector, 10)  # type: ignore[call-overload]
    vector.close()
    with pytest.raises(InvalidArgumentError, match=r"gymnasium.make\('CartPole-v1'\) makes one"):
        simulate(points, "CartPole-v1", 10)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgumentError, match="expected a Discrete space; choose finitely many actions"):
        simulate(points, gymnasium.make("MountainCarContinuous-v0"), 10)
    with pytest.raises(InvalidArgumentError, match="MountainCar-v0 has 3 actions, the agent 2"):
        simulate(points, gymnasium.make("MountainCar-v0"), 10)
    with pytest.raises(InvalidArgumentError, match=r"CartPole-v1 observes shape \(4,\), the agent's partition has 1"):
        simulate(points, gymnasium.make("CartPole-v1"), 10)
    with pytest.raises(InvalidArgumentError, match="SCALPlus is a tabular agent; put it on a partition"):
        simulate(tabular, gymnasium.make("CartPole-v1"), 10)
    with pytest.raises(InvalidArgumentError, match="needs no partition"):
        simulate(points, Walk(), 10)
    with pytest.raises(InvalidArgumentError, match="has 10 states, the agent 4"):
        simulate(gf.SCALPlus(4, 2, span=1.0), Walk(), 10)
    with pytest.raises(InvalidArgumentError, match="expected a Box or Discrete space"):
        simulate(points, Walk(space=spaces.MultiDiscrete([2, 2])), 10)
