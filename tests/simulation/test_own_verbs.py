"""Agents whose verbs are their author's own: what was written runs, never something else."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import gymnasium
import numba
import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError, SteppedInPythonWarning

RIVER = gf.environments.riverswim(6)


class Careful(gf.UCRL2):
    """UCRL2 that never does what the plan says in state 0."""

    def act(self, state: int) -> int:
        action = super().act(state)
        return 0 if state == 0 else action


class Watching(gf.UCRL2):
    """UCRL2 that notes what it observes."""

    def __init__(self, *sizes: int, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.seen: list[tuple[int, int, float, int]] = []

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        self.seen.append((state, action, reward, next_state))
        super().observe(state, action, reward, next_state)


class Alternating:
    """Neither a subclass nor anything else: two methods."""

    def __init__(self, n_actions: int = 2) -> None:
        self.n_actions, self.n = n_actions, 0
        self.seen: list[Any] = []

    def act(self, state: Any) -> int:
        return self.n % self.n_actions

    def observe(self, state: Any, action: int, reward: float, next_state: Any) -> None:
        self.n += 1
        self.seen.append((state, action, reward, next_state))


def test_simulate_does_not_ignore_an_overridden_act() -> None:
    agent = Careful(6, 2)
    with pytest.warns(SteppedInPythonWarning, match="Careful has its own act"):
        run = gf.simulate(agent, RIVER, 500, seed=1)
    assert run.final_state == 0
    assert agent.statistics.visits[1] == 0
    assert agent.statistics.visits[0] == 500


def test_simulate_does_not_ignore_an_overridden_observe_and_gives_the_same_bits_as_the_compiled_loop() -> None:
    agent, plain = Watching(6, 2, seed=3), gf.UCRL2(6, 2, seed=3)
    with pytest.warns(SteppedInPythonWarning, match="its own observe"):
        run = gf.simulate(agent, RIVER, 700, seed=1)
    compiled = gf.simulate(plain, RIVER, 700, seed=1)
    assert len(agent.seen) == 700
    for name in ("rewards", "regret", "pseudo_regret", "expected_regret"):
        assert np.array_equal(getattr(run, name), getattr(compiled, name)), name
    assert np.array_equal(agent.statistics.visits, plain.statistics.visits)


def test_simulate_does_not_ignore_a_method_of_one_object() -> None:
    agent = gf.UCRL2(6, 2)
    agent.act = types.MethodType(lambda self, state: 0, agent)  # type: ignore[method-assign]
    with pytest.warns(SteppedInPythonWarning):
        gf.simulate(agent, RIVER, 100, seed=1)
    assert agent.statistics.visits.reshape(6, 2)[:, 1].sum() == 0


def test_any_object_with_act_and_observe_is_simulated() -> None:
    agent = Alternating()
    with pytest.warns(SteppedInPythonWarning, match="Alternating has methods of its own"):
        run = gf.simulate(agent, RIVER, 300, seed=1)
    assert [a for _, a, _, _ in agent.seen] == [0, 1] * 150
    assert run.rewards[-1] == pytest.approx(sum(r for _, _, r, _ in agent.seen), rel=0, abs=1e-9)
    gaps = gf.optimality_gaps(RIVER)
    expected = sum(gaps[s, a] for s, a, _, _ in agent.seen)
    assert run.expected_regret[-1] == pytest.approx(expected, rel=1e-12, abs=0)
    assert run.final_state == agent.seen[-1][3]


def test_any_object_runs_in_simulate_many() -> None:
    with pytest.warns(SteppedInPythonWarning):
        runs = gf.simulate_many(lambda _: Alternating(), RIVER, 200, seeds=range(5))
    with pytest.warns(SteppedInPythonWarning):
        one = gf.simulate(Alternating(), RIVER, 200, seed=3)
    assert np.array_equal(runs[3].rewards, one.rewards)


@pytest.mark.slow  # solves a continuous model
def test_any_object_sees_points_in_the_environments_own_units() -> None:
    env, agent = gf.environments.lqg(), Alternating(3)
    with pytest.warns(SteppedInPythonWarning):
        gf.simulate(agent, env, 50, seed=1)
    points = np.array([s for s, _, _, _ in agent.seen])
    assert points.shape == (50, env.dim)
    assert points.min() < 0.0  # lqg lives in [-1, 1]


def test_any_object_sees_the_observations_of_a_gymnasium_environment() -> None:
    agent = Alternating()
    run = gf.simulate(agent, gymnasium.make("CartPole-v1"), 60, seed=1)
    assert agent.seen[0][0].shape == (4,)
    assert run.rewards[-1] == 60.0
    frozen = Alternating(4)
    gf.simulate(frozen, gymnasium.make("FrozenLake-v1"), 20, seed=1)
    assert all(0 <= s < 16 for s, _, _, _ in frozen.seen)


@pytest.mark.parametrize("action", [2, -1, 0.5, "left", None])
def test_an_action_that_does_not_exist_is_named_with_its_step(action: Any) -> None:
    agent = Alternating()
    agent.act = lambda state: action  # type: ignore[method-assign]
    with pytest.warns(SteppedInPythonWarning), pytest.raises(InvalidArgumentError, match=r"act returned .* at step 1"):
        gf.simulate(agent, RIVER, 10)


def test_an_object_without_the_verbs_is_refused() -> None:
    for wrong in (object(), Alternating, lambda state: 0):
        with pytest.raises(InvalidArgumentError, match="any object with act and observe"):
            gf.simulate(wrong, RIVER, 10)


def test_a_subclass_without_a_plan_says_what_to_write() -> None:
    class Unfinished(EpisodicAgent):
        pass

    with pytest.raises(InvalidArgumentError, match=r"Unfinished has no method plan; write plan\(self, statistics, t\)"):
        gf.simulate(Unfinished(6, 2), RIVER, 10)
    with pytest.raises(InvalidArgumentError, match="Unfinished has no method plan"):
        Unfinished(6, 2).act(0)


def test_a_stepwise_agent_of_unknown_kind_is_refused() -> None:
    class Odd(gf.EpsilonGreedyQ):
        kind = 7

    with pytest.raises(InvalidArgumentError, match=r"Odd.kind is 7"):
        gf.simulate(Odd(6, 2), RIVER, 10)
    with pytest.raises(InvalidArgumentError, match=r"Odd.kind is 7"):
        Odd(6, 2).observe(0, 0, 0.0, 1)

    class Nothing(StepwiseAgent):
        pass

    with pytest.raises(InvalidArgumentError, match="Nothing has no rule to learn by; give the class a function update"):
        gf.simulate(Nothing(6, 2), RIVER, 10)


def test_a_stepped_run_continues_from_its_file(tmp_path: Path) -> None:
    whole, agent = Watching(6, 2), Watching(6, 2)
    with pytest.warns(SteppedInPythonWarning):
        expected = gf.simulate(whole, RIVER, 9000, seed=1)

    def stop(step: int, horizon: int) -> None:
        if step > 5000:
            raise KeyboardInterrupt

    file = tmp_path / "run"
    with pytest.warns(SteppedInPythonWarning), pytest.raises(KeyboardInterrupt):
        gf.simulate(agent, RIVER, 9000, seed=1, checkpoint_file=file, checkpoint_every=0.0, progress=stop)
    again = Watching(6, 2)
    with pytest.warns(SteppedInPythonWarning):
        run = gf.simulate(again, RIVER, 9000, seed=1, checkpoint_file=file)
    assert 0 < len(again.seen) < 9000
    for name in ("rewards", "pseudo_regret", "expected_regret"):
        assert np.array_equal(getattr(run, name), getattr(expected, name)), name


def test_a_run_whose_learner_cannot_be_saved_says_so(tmp_path: Path) -> None:
    with (
        pytest.warns(SteppedInPythonWarning),
        pytest.raises(InvalidArgumentError, match="does not know the state of Alternating"),
    ):
        gf.simulate(Alternating(), RIVER, 10, checkpoint_file=tmp_path / "run")


# ---------------------------------------------------------------------- a rule of one's own


@numba.njit
def towards(q, target, numbers, state, action, reward, next_state, visits):  # type: ignore[no-untyped-def]
    error = reward - numbers[1] + q[next_state].max() - q[state, action]
    q[state, action] += error / visits**0.6
    numbers[1] += 0.01 * error / visits**0.6


@numba.njit
def sometimes(q, numbers, allowed, state, uniform):  # type: ignore[no-untyped-def]
    if uniform < numbers[0]:
        return int(uniform / numbers[0] * q.shape[1])
    return q[state].argmax()


class OwnQ(StepwiseAgent):
    update = towards
    choose = sometimes

    def __init__(self, n_states: int, n_actions: int, **options: Any) -> None:
        super().__init__(n_states, n_actions, **options)
        self.numbers = np.array([0.1, 0.0])


class SlowQ(OwnQ):
    update = staticmethod(towards.py_func)
    choose = staticmethod(sometimes.py_func)


@pytest.mark.slow  # compiles a loop of its own
def test_a_compiled_rule_of_ones_own_gives_the_bits_of_stepping() -> None:
    compiled, stepped = OwnQ(6, 2, seed=5), SlowQ(6, 2, seed=5)
    run = gf.simulate(compiled, RIVER, 3000, seed=2)
    with pytest.warns(SteppedInPythonWarning, match="the rule of SlowQ is not compiled"):
        slow = gf.simulate(stepped, RIVER, 3000, seed=2)
    assert np.array_equal(compiled.q, stepped.q)
    assert np.array_equal(compiled.numbers, stepped.numbers)
    assert np.array_equal(run.rewards, slow.rewards)
    assert np.array_equal(run.expected_regret, slow.expected_regret)
    assert compiled.t == 3000
    runs = gf.simulate_many(lambda seed: OwnQ(6, 2, seed=5), RIVER, 3000, seeds=[2, 4])
    assert np.array_equal(runs[0].rewards, run.rewards)


@pytest.mark.slow  # compiles a loop of its own
def test_a_rule_that_chooses_what_a_state_does_not_have_is_stopped() -> None:
    @numba.njit
    def wrong(q, numbers, allowed, state, uniform):  # type: ignore[no-untyped-def]
        return 0 if uniform < 0.9 else -1

    class Wrong(OwnQ):
        choose = wrong

    with pytest.raises(InvalidArgumentError, match=r"Wrong.choose returned -1 in state"):
        gf.simulate(Wrong(6, 2), RIVER, 1000)


# ---------------------------------------------------------------------- plans of one's own


class Planned(EpisodicAgent):
    """Plays what it is given."""

    def __init__(self, *sizes: int, wanted: Any = None, probabilities: Any = None, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.wanted, self.probabilities = wanted, probabilities

    def plan(self, statistics: Any, t: int) -> EpisodePlan:
        return EpisodePlan(
            actions=self.wanted, gain_bounds=(0.0, 1.0), values=np.zeros(6), sweeps=0, probabilities=self.probabilities
        )


@pytest.mark.parametrize(
    ("wanted", "probabilities", "problem"),
    [
        (np.array([0, 0, 0, 0, 0, 2]), None, "state 5 plays action 2"),
        (np.array([0, 0, 0, -1, 0, 0]), None, "state 3 plays action -1"),
        (np.array([0, 1, 0, 0, 0, 0]), None, "state 1 plays action 1"),
        (np.zeros(5, dtype=np.int64), None, r"actions is int64 of shape \(5,\)"),
        (np.zeros(6), None, "actions is float64"),
        (None, None, "actions is None"),
        (None, np.full((6, 2), 0.5), "state 1 plays action 1 with probability 0.5"),
        (None, np.full((6, 2), 0.4), "state 0 has the probabilities"),
        (None, np.full((6, 2), np.nan), "state 0 has the probabilities"),
    ],
)
def test_a_plan_that_is_none_is_refused_before_a_compiled_loop_takes_it(
    wanted: Any, probabilities: Any, problem: str
) -> None:
    allowed = np.ones((6, 2), dtype=bool)
    allowed[1, 1] = False
    agent = Planned(6, 2, wanted=wanted, probabilities=probabilities, allowed=allowed)
    with pytest.raises(InvalidArgumentError, match=problem):
        gf.simulate(agent, RIVER, 10)
