"""What UCRL2, UCRL2B, TUCRL, SCAL and KL-UCRL must all do."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.extended import ExtendedAgent
from gainful.agents.registry import agent_class
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.simulation.transition_table import TabularStepper
from tests.agents.extended_runs import assert_same_agent, planned, walk

Make = Callable[..., ExtendedAgent]
GAIN = 7203 / 16805  # of RiverSwim-6


def scal(**options: Any) -> gf.SCAL:
    return gf.SCAL(**{"span": 7.0, **options})


def kl_ucrl(**options: Any) -> gf.KLUCRL:
    return gf.KLUCRL(**{"horizon": 10**6, **options})


FAMILY: dict[str, Make] = {
    "ucrl2": gf.UCRL2,
    "ucrl2b": gf.UCRL2B,
    "scal": scal,
    "tucrl": gf.TUCRL,
    "kl-ucrl": kl_ucrl,
}
family = pytest.mark.parametrize("make", FAMILY.values(), ids=FAMILY)


@family
def test_stepping_is_simulating(make: Make) -> None:
    masked = gf.environments.toy3d(0.2)
    for mdp in (gf.environments.riverswim(4, reward_law="bernoulli"), masked):
        sizes: dict[str, Any] = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "allowed": mdp.allowed}
        for scale in (1.0, 0.02):
            stepped, simulated = (make(**sizes, width_scale=scale, reward_min=-1.0) for _ in range(2))
            world = TabularStepper(mdp, 5)
            walk(stepped, world, world.first_state, 1500)
            run = gf.simulate(simulated, mdp, 1500, seed=5)
            assert_same_agent(stepped, simulated)
            assert len(run.episodes) > 10


@family
def test_a_saved_agent_goes_on_to_the_same_bits(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "agent"
    world = TabularStepper(gf.environments.riverswim(4, reward_law="bernoulli"), 2)
    agent = make(n_states=4, n_actions=2, width_scale=0.05, seed=9, delta=0.1, reward_max=2.0)
    state = walk(agent, world, world.first_state, 700)
    agent.save(path)
    copy = gf.load_agent(path)
    assert type(copy) is type(agent)
    assert copy.settings() == agent.settings()
    assert_same_agent(copy, agent)
    assert walk(copy, world, state, 800) == walk(agent, world, state, 800)
    assert_same_agent(copy, agent)
    agent.save(path)
    with pytest.raises(ValueError, match="'values' has shape"):
        copy.restore({"values": np.zeros(3), "vacuous": np.array([True])})
    with pytest.raises(ValueError, match="not finite"):
        copy.restore({"values": np.full(4, np.nan), "vacuous": np.array([True])})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InvalidAgentError):
        gf.load_agent(path)


@family
def test_the_optimistic_gain_is_above_the_best_one(make: Make) -> None:
    mdp = gf.environments.riverswim(6)
    agent = make(n_states=6, n_actions=2)
    assert agent.guarantee.holds
    run = gf.simulate(agent, mdp, 100_000, seed=3)
    assert len(run.episodes) > 40
    assert np.all(run.episodes["gain_high"] >= GAIN)
    width = run.episodes["gain_high"] - run.episodes["gain_low"]
    assert np.all(width <= 1 / np.sqrt(run.episodes["step"]) * (1 + 1e-12))  # ε_k = r_max/√t_k


@family
def test_it_learns(make: Make) -> None:
    mdp = gf.environments.riverswim(3)
    agent = make(n_states=3, n_actions=2, width_scale=0.1)
    assert "width_scale is 0.1" in str(agent.guarantee)
    run = gf.simulate(agent, mdp, 100_000, seed=4, checkpoints=[1000, 10_000, 50_000, 100_000])
    early = run.pseudo_regret[1] / 10_000
    late = (run.pseudo_regret[3] - run.pseudo_regret[2]) / 50_000
    assert late < 0.5 * early or late < 0.01 * run.gain
    assert run.pseudo_regret[3] < 0.1 * 100_000 * run.gain
    assert not agent.vacuous


@family
def test_rewards_in_other_units(make: Make) -> None:
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


@family
def test_bad_arguments(make: Make) -> None:
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ucrl2", gf.UCRL2), ("ucrl2b", gf.UCRL2B), ("scal", gf.SCAL), ("tucrl", gf.TUCRL), ("kl-ucrl", gf.KLUCRL)],
)
def test_the_registry_knows_the_family(name: str, expected: type[ExtendedAgent]) -> None:
    assert agent_class(name) is expected
