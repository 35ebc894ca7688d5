from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.registry import agent_class
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.optimism.ucrl2 import reward_log, reward_width, transition_log, transition_radius
from gainful.simulation.transition_table import TabularStepper

Make = Callable[..., ExtendedAgent]
GAIN = 7203 / 16805  # of RiverSwim-6

# ---------------------------------------------------------------------- what the five agents must all do


def planned(agent: ExtendedAgent) -> EpisodePlan:
    agent.act(0)
    assert agent.current is not None
    return agent.current


def walk(agent: ExtendedAgent, world: TabularStepper, state: int, steps: int) -> int:
    for _ in range(steps):
        action = agent.act(state)
        reward, to = world.step(agent.t, state, action)
        agent.observe(state, action, reward, to)
        state = to
    return state


def assert_same_life(one: ExtendedAgent, other: ExtendedAgent) -> None:
    assert one.t == other.t
    mine, theirs = one.statistics.to_arrays(), other.statistics.to_arrays()
    for name, array in mine.items():
        assert np.array_equal(array, theirs[name]), name
    assert [record[:-1] for record in one.records] == [record[:-1] for record in other.records]  # the last is a time
    assert np.array_equal(one.visited, other.visited)
    assert one.vacuous == other.vacuous


def check_stepping_is_simulating(make: Make) -> None:
    masked = gf.environments.toy3d(0.2)
    for mdp in (gf.environments.riverswim(4, reward_law="bernoulli"), masked):
        sizes: dict[str, Any] = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "allowed": mdp.allowed}
        for scale in (1.0, 0.02):
            stepped, simulated = (make(**sizes, width_scale=scale, reward_min=-1.0) for _ in range(2))
            world = TabularStepper(mdp, 5)
            walk(stepped, world, world.first_state, 1500)
            run = gf.simulate(simulated, mdp, 1500, seed=5)
            assert_same_life(stepped, simulated)
            assert len(run.episodes) > 10


def check_saved_life_goes_on(make: Make, path: Path) -> None:
    world = TabularStepper(gf.environments.riverswim(4, reward_law="bernoulli"), 2)
    agent = make(n_states=4, n_actions=2, width_scale=0.05, seed=9, delta=0.1, reward_max=2.0)
    state = walk(agent, world, world.first_state, 700)
    agent.save(path)
    copy = gf.load_agent(path)
    assert type(copy) is type(agent)
    assert copy.settings() == agent.settings()
    assert_same_life(copy, agent)
    assert walk(copy, world, state, 800) == walk(agent, world, state, 800)
    assert_same_life(copy, agent)
    agent.save(path)
    with pytest.raises(ValueError, match="'values' has shape"):
        copy.restore({"values": np.zeros(3), "vacuous": np.array([True])})
    with pytest.raises(ValueError, match="not finite"):
        copy.restore({"values": np.full(4, np.nan), "vacuous": np.array([True])})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidAgentError):
        gf.load_agent(path)


def check_optimism(make: Make) -> None:
    mdp = gf.environments.riverswim(6)
    agent = make(n_states=6, n_actions=2)
    assert agent.guarantee.holds
    run = gf.simulate(agent, mdp, 100_000, seed=3)
    assert len(run.episodes) > 40
    assert np.all(run.episodes["gain_high"] >= GAIN)
    width = run.episodes["gain_high"] - run.episodes["gain_low"]
    assert np.all(width <= 1 / np.sqrt(run.episodes["step"]) * (1 + 1e-12))  # ε_k = r_max/√t_k


def check_learning(make: Make) -> None:
    mdp = gf.environments.riverswim(3)
    agent = make(n_states=3, n_actions=2, width_scale=0.1)
    assert "width_scale is 0.1" in str(agent.guarantee)
    run = gf.simulate(agent, mdp, 100_000, seed=4, checkpoints=[1000, 10_000, 50_000, 100_000])
    early = run.pseudo_regret[1] / 10_000
    late = (run.pseudo_regret[3] - run.pseudo_regret[2]) / 50_000
    assert late < 0.5 * early or late < 0.01 * run.gain
    assert run.pseudo_regret[3] < 0.1 * 100_000 * run.gain
    assert not agent.vacuous


def check_units(make: Make) -> None:
    """Rewards moved by a constant move the gains and nothing else (dyadic numbers, so to the bit)."""
    base, moved = make(n_states=3, n_actions=2), make(n_states=3, n_actions=2, reward_min=-2.0, reward_max=-1.0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        s, a, to = int(rng.integers(3)), int(rng.integers(2)), int(rng.integers(3))
        base.observe(s, a, 0.25 * s, to)
        moved.observe(s, a, 0.25 * s - 2.0, to)
    one, other = planned(base), planned(moved)
    assert np.array_equal(one.actions, other.actions)
    assert np.array_equal(one.values, other.values)
    assert other.gain_bounds == tuple(bound - 2.0 for bound in one.gain_bounds)


def check_bad_arguments(make: Make) -> None:
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidArgumentError, match="width_scale is"):
            make(n_states=3, n_actions=2, width_scale=scale)
    with pytest.raises(InvalidArgumentError, match="delta is 1"):
        make(n_states=3, n_actions=2, delta=1.0)
    with pytest.raises(InvalidArgumentError, match="reward_min < reward_max"):
        make(n_states=3, n_actions=2, reward_max=-1.0)
    with pytest.raises(InvalidArgumentError, match="allowed has shape"):
        make(n_states=3, n_actions=2, allowed=np.ones((2, 2), dtype=bool))
    agent = make(n_states=3, n_actions=2)
    with pytest.raises(InvalidArgumentError, match="reward 2"):
        agent.observe(0, 0, 2.0, 1)
    assert agent.t == 0


# ---------------------------------------------------------------------- UCRL2


def ucrl2(**options: Any) -> gf.UCRL2:
    return gf.UCRL2(**options)


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


def test_stepping_is_simulating() -> None:
    check_stepping_is_simulating(ucrl2)


def test_a_saved_life_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    check_saved_life_goes_on(ucrl2, tmp_path / "agent")


def test_the_optimistic_gain_is_above_the_best_one() -> None:
    check_optimism(ucrl2)


def test_it_learns() -> None:
    check_learning(ucrl2)


def test_rewards_in_other_units() -> None:
    check_units(ucrl2)


def test_bad_arguments() -> None:
    check_bad_arguments(ucrl2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ucrl2", gf.UCRL2), ("ucrl2b", gf.UCRL2B), ("scal", gf.SCAL), ("tucrl", gf.TUCRL), ("kl-ucrl", gf.KLUCRL)],
)
def test_the_registry_knows_the_family(name: str, expected: type[ExtendedAgent]) -> None:
    assert agent_class(name) is expected
