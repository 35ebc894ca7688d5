from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.partitioned import PartitionedAgent
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.errors import InvalidArgumentError
from gainful.simulation import continuous, slices
from gainful.simulation.simulate import simulate

ENVIRONMENTS = gf.environments.continuous_names()
GAIN = 0.5  # any number: most tests are not about regret


def partition(env: ContinuousEnvironment, user_units: bool = False, bins: int | None = None) -> gf.Partition:
    n = bins or (30 if env.dim == 1 else 5)
    if user_units:
        return gf.Partition.uniform(bins=n, low=env.low, high=env.high)
    return gf.Partition.uniform(bins=n, dim=env.dim)


def c_scal_plus(env: ContinuousEnvironment, **options: Any) -> gf.CSCALPlus:
    given = {
        "partition": partition(env), "n_actions": env.n_actions, "span": 2.0, "reward_min": env.reward_min,
        "reward_max": env.reward_max, "bonus_scale": 0.1, **options,
    }  # fmt: skip
    return gf.CSCALPlus(**given)


def discretized(made: Any, env: ContinuousEnvironment, bins: int | None = None, **options: Any) -> gf.Discretized:
    return gf.Discretized(
        made, partition(env, bins=bins), n_actions=env.n_actions, reward_min=env.reward_min, reward_max=env.reward_max,
        **options,
    )  # fmt: skip


def stepped(agent: Any, env: ContinuousEnvironment, steps: int, seed: int, user_units: bool = False) -> Any:
    """The run by `act`, `env.step` and `observe`; the last point and the sum of rewards."""
    x, total = env.start, 0.0

    def seen(x: Any) -> Any:
        return env.from_unit(x) if user_units else x

    for t in range(steps):
        action = agent.act(seen(x))
        reward, to = env.step(t, x, action, seed)
        agent.observe(seen(x), action, reward, seen(to))
        x, total = to, total + reward
    return seen(x), total


def assert_same(one: PartitionedAgent, other: PartitionedAgent) -> None:
    for name, array in one.statistics.to_arrays().items():
        assert np.array_equal(array, other.statistics.to_arrays()[name]), name
    for name, array in one.own_arrays().items():
        assert np.array_equal(array, other.own_arrays()[name]), name
    assert [r[:-1] for r in one.core.records] == [r[:-1] for r in other.core.records]
    assert np.array_equal(one.core.remaining, other.core.remaining)
    assert np.array_equal(one.core.visited, other.core.visited)
    assert one.statistics.changed_pairs().tolist() == other.statistics.changed_pairs().tolist()
    assert (one.t, one.core.interrupted, one.partition) == (other.t, other.core.interrupted, other.partition)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("user_units", [False, True])
def test_stepped_and_compiled_runs_are_equal_to_the_bit(name: str, user_units: bool) -> None:
    env = gf.environments.make_continuous(name)
    first, second = (c_scal_plus(env, partition=partition(env, user_units)) for _ in range(2))
    run = simulate(first, env, 700, seed=3, gain=GAIN)
    x, total = stepped(second, env, 700, 3, user_units)
    assert np.array_equal(run.final_point, x)
    assert run.rewards[-1] == total
    assert run.final_state == first.partition.index(x)
    first.act(x)
    second.act(x)
    assert_same(first, second)


class Counting(gf.SCALPlus):
    """Notes what it was asked."""

    def __init__(self, n_states: int, n_actions: int, **options: Any) -> None:
        super().__init__(n_states, n_actions, span=2.0, bonus_scale=0.1, **options)
        self.asked: list[int] = []

    def act(self, state: int) -> int:
        self.asked.append(state)
        return int(super().act(state))


KINDS: dict[str, Callable[[ContinuousEnvironment], Any]] = {
    "min-action": lambda env: c_scal_plus(env, span=0.05, bonus_scale=0.02, mixture="min-action"),
    "doubling": lambda env: c_scal_plus(env, partition=None, lipschitz=30.0, holder=1.0),
    "doubling, user units": lambda env: c_scal_plus(
        env, partition=None, lipschitz=30.0, holder=1.0, low=env.low, high=env.high
    ),
    "local": lambda env: c_scal_plus(env, replanning="local"),
    "new states": lambda env: discretized(gf.TUCRL, env),
    "last steps": lambda env: discretized(gf.PSRL, env),
    "blocks": lambda env: discretized(gf.UCBVI, env, episode_length=10, horizon=3000),
    "learning at every step": lambda env: discretized(gf.EpsilonGreedyQ, env),
    "optimistic": lambda env: discretized(gf.OptimisticQ, env, span=2.0, horizon=1200),
    "an act of its own": lambda env: discretized(Counting, env),
    "random": lambda env: discretized(gf.Fixed, env, bins=200),
    "uccrl": lambda env: gf.UCCRL(
        partition=partition(env), n_actions=env.n_actions, span=1.0, width_scale=0.01, reward_min=env.reward_min,
        reward_max=env.reward_max,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow if k in ("learning at every step", "optimistic") else ()) for k in KINDS],
)
def test_every_kind_of_agent_runs_as_if_stepped(kind: str) -> None:
    # wide steps in a box that is not the unit cube: states of all kinds are met soon
    env = gf.environments.lqg() if "user" in kind else gf.environments.replacement()
    make = KINDS[kind]
    first, second = make(env), make(env)
    steps = 3000 if "doubling" in kind else 1200
    run = simulate(first, env, steps, seed=1, gain=GAIN)
    x, total = stepped(second, env, steps, 1, "user" in kind)
    assert np.array_equal(run.final_point, x)
    assert run.rewards[-1] == total
    first.act(x)
    second.act(x)
    assert_same(first, second)
    if kind == "an act of its own":
        assert first.core.asked == second.core.asked
    if "doubling" in kind:
        assert first.stage == 2
        assert first.log.n == first.statistics.visits.sum() == steps


def bowl(x: Any, action: int, uniforms: Any, out: Any) -> float:
    reward = 1.0 - abs(x[0] - 0.5)
    out[1] = x[0]
    out[0] = min(max(x[0] + 0.2 * (action - 1) + 0.1 * (uniforms[0] + uniforms[1] - 1.0), 0.0), 1.0)
    return float(reward)


@pytest.mark.slow
def test_a_function_of_the_users_is_compiled_and_runs_as_if_stepped() -> None:
    env = ContinuousEnvironment.from_function(bowl, dim=2, n_actions=3, draws=2, low=[-1.0, 0.0], high=[1.0, 2.0])
    for user_units in (False, True):
        first, second = (c_scal_plus(env, partition=partition(env, user_units)) for _ in range(2))
        run = simulate(first, env, 900, seed=2)
        x, total = stepped(second, env, 900, 2, user_units)
        assert np.array_equal(run.final_point, x)
        assert run.rewards[-1] == total
        second.act(x)
        first.act(x)
        assert_same(first, second)
        assert math.isnan(run.gain)
        assert np.isnan(run.regret).all()
        assert "no oracle; say gain=" in run.gain_source


def late_cheat(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = min(1.0, x[0] + 0.001)
    return 2.0 if 0.54099 < x[0] < 0.54101 and action == 0 and uniforms[0] < 2.0 else 0.5


def late_escape(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = math.nan if 0.54099 < x[0] < 0.54101 else min(1.0, x[0] + 0.001)
    return 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "message"),
    [(late_cheat, "reward 2.0 at step 42, expected a number in"), (late_escape, "to .nan. at step 42")],
)
def test_what_a_function_may_not_do_stops_the_run_and_spoils_nothing(function: Any, message: str) -> None:
    env = ContinuousEnvironment.from_function(function, dim=1, n_actions=1, start=0.5)
    agent = c_scal_plus(env, partition=None, lipschitz=1.0, holder=1.0)
    with pytest.raises(InvalidArgumentError, match=message):
        simulate(agent, env, 100)
    assert agent.t == agent.statistics.visits.sum() == agent.log.n == 41  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [KINDS["doubling"], KINDS["random"]])
def test_where_a_kernel_pauses_changes_nothing(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gf.environments.replacement()
    first, second = make(env), make(env)
    whole = simulate(first, env, 2500, seed=1, checkpoints=[2500], gain=GAIN)
    monkeypatch.setattr(slices, "STEPS_AT_A_TIME", 7)  # the first slice
    monkeypatch.setattr(slices, "PAUSE", 7)  # and the longest
    monkeypatch.setattr(continuous, "LOGGED_PAUSE", 5)
    parts = simulate(second, env, 2500, seed=1, gain=GAIN)
    assert parts.rewards[-1] == whole.rewards[-1]
    assert_same(first, second)


def test_an_agent_that_has_lived_before_goes_on_learning_as_if_stepped() -> None:
    env = gf.environments.replacement()
    first, second = KINDS["min-action"](env), KINDS["min-action"](env)
    for seed, steps in ((1, 800), (2, 900)):
        run = simulate(first, env, steps, seed=seed, gain=GAIN)
        assert np.array_equal(run.final_point, stepped(second, env, steps, seed)[0])
    assert_same(first, second)


def test_regret_is_measured_against_the_oracle() -> None:
    env = gf.environments.replacement()
    oracle = gf.environments.oracle_gain(env, bins=100)
    given = simulate(c_scal_plus(env), env, 2000, seed=1, gain=oracle, checkpoints=[10, 100])
    assert given.gain == oracle.gain
    assert given.steps.tolist() == [10, 100, 2000]
    np.testing.assert_array_equal(given.regret, given.steps * oracle.gain - given.rewards)
    np.testing.assert_array_equal(given.regret, given.pseudo_regret)  # rewards are functions of state and action
    own = simulate(c_scal_plus(env), env, 2000, seed=1)
    assert own.gain == pytest.approx(0.536675, rel=0, abs=2e-4)
    assert "OracleGain" in own.gain_source
    best = gf.Discretized(
        gf.Fixed, oracle.partition, n_actions=env.n_actions, policy=oracle.actions, reward_min=env.reward_min,
        reward_max=env.reward_max,
    )  # fmt: skip
    run = simulate(best, env, 400_000, seed=2, gain=oracle)
    assert abs(run.regret[-1]) / 400_000 < 0.005  # its mean reward is the gain, within some standard deviations


def test_c_scal_plus_learns_the_smooth_river() -> None:
    """With a small bonus; the theorem's own constants leave the first 10⁷ steps to exploration."""
    env = gf.environments.continuous_riverswim(step=0.5, noise=0.25)
    agent = c_scal_plus(env, partition=partition(env, bins=20), span=15.0, bonus_scale=0.02)
    run = simulate(agent, env, 300_000, seed=1, checkpoints=[20_000, 150_000])
    slopes = np.diff(np.append(0.0, run.regret)) / np.diff(np.append(0, run.steps))
    assert slopes[-1] < 0.1 * run.gain


def test_progress_is_called_and_reaches_the_horizon() -> None:
    env, calls = gf.environments.replacement(), []
    simulate(c_scal_plus(env), env, 1e3, progress=lambda step, horizon: calls.append((step, horizon)), gain=GAIN)
    assert calls[-1] == (1000, 1000)
    assert calls == sorted(calls)


def test_agents_of_another_kind_shape_range_or_box_are_refused() -> None:
    env, car = gf.environments.lqg(), gf.environments.mountain_car()
    with pytest.raises(InvalidArgumentError, match="SCALPlus is a tabular agent, and lqg has continuous states"):
        simulate(gf.SCALPlus(4, 2, span=1.0), env, 10)
    with pytest.raises(InvalidArgumentError, match=r"1 dimension\(s\) and 3 actions, mountain-car 2 and 3"):
        simulate(c_scal_plus(car, partition=gf.Partition.uniform(bins=5)), car, 10)
    with pytest.raises(InvalidArgumentError, match=r"the agent accepts \[0, 0.5\]"):
        simulate(c_scal_plus(env, reward_min=0.0, reward_max=0.5), env, 10)
    narrow = gf.Partition.uniform(bins=5, low=-1.0, high=1.0)
    with pytest.raises(InvalidArgumentError, match=r"axis 0 of the partition is \[-1, 1\], that of lqg \[-2, 2\]"):
        simulate(c_scal_plus(env, partition=narrow), env, 10)
    clipped = gf.Partition.uniform(bins=5, low=-1.0, high=1.0, outside="clip")
    first, second = c_scal_plus(env, partition=clipped), c_scal_plus(env, partition=clipped)
    run = simulate(first, env, 300, gain=GAIN)
    assert np.array_equal(run.final_point, stepped(second, env, 300, 0, user_units=True)[0])
    assert_same(first, second)
    with pytest.raises(InvalidArgumentError, match="gain is nan"):
        simulate(c_scal_plus(env), env, 10, gain=math.nan)
    with pytest.raises(InvalidArgumentError, match="horizon is 0"):
        simulate(c_scal_plus(env), env, 0)
