from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.registry import AGENTS, agent_class
from gainful.errors import InvalidArgumentError
from gainful.simulation.transition_table import TabularStepper

# ---------------------------------------------------------------------- what the tests of other agents use too

Make = Callable[[gf.MDP, int], EpisodicAgent]


def worlds() -> dict[str, gf.MDP]:
    """Bernoulli rewards; missing actions; negative rewards."""
    P, R = gf.environments.riverswim(4).to_dense()
    return {
        "bernoulli": gf.MDP(P, R, reward_law="bernoulli"),
        "masked": gf.environments.toy3d(0.1),
        "negative": gf.MDP(P, 4.0 * R - 3.0),
    }


def fitting(mdp: gf.MDP, seed: int) -> dict[str, Any]:
    """The arguments every agent takes, for this MDP."""
    return {
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "reward_min": min(0.0, mdp.reward_min),
        "reward_max": max(1.0, mdp.reward_max),
        "seed": seed,
        "allowed": mdp.allowed,
    }


def assert_same_agent(a: EpisodicAgent, b: EpisodicAgent) -> None:
    """Equal to the bit, but for times."""
    assert a.t == b.t
    assert [record[:-1] for record in a.records] == [record[:-1] for record in b.records]
    assert np.array_equal(a.remaining, b.remaining)
    assert np.array_equal(a.visited, b.visited)
    mine, other = a.statistics.to_arrays(), b.statistics.to_arrays()
    for name, array in mine.items():
        assert np.array_equal(array, other[name]), name


def assert_stepped_equals_simulated(make: Make, mdp: gf.MDP, horizon: int) -> None:
    """act, TabularStepper.step, observe: the same life as `simulate`."""
    fast, slow, world = make(mdp, 3), make(mdp, 3), TabularStepper(mdp, 5)
    run = gf.simulate(fast, mdp, horizon, seed=5)
    state, total = world.first_state, 0.0
    for t in range(horizon):
        action = slow.act(state)
        assert slow.act(state) == action
        reward, to = world.step(t, state, action)
        slow.observe(state, action, reward, to)
        state, total = to, total + reward
    assert state == run.final_state
    assert total == pytest.approx(run.rewards[-1], rel=0, abs=1e-9)
    assert_same_agent(fast, slow)


def assert_saved_goes_on(make: Make, mdp: gf.MDP, first: int, then: int, folder: Path) -> None:
    """An agent saved after `first` steps and loaded lives on as the one that was not."""
    agent = make(mdp, 7)
    gf.simulate(agent, mdp, first, seed=1)
    agent.save(folder / "agent")
    loaded = gf.load_agent(folder / "agent")
    assert type(loaded) is type(agent)
    assert loaded.settings() == agent.settings()
    assert_same_agent(agent, loaded)
    a, b = gf.simulate(agent, mdp, then, seed=2), gf.simulate(loaded, mdp, then, seed=2)
    assert np.array_equal(a.rewards, b.rewards)
    assert_same_agent(agent, loaded)


def noise(mdp: gf.MDP, bias: NDArray[np.float64], steps: int, chance: float, runs: int = 1) -> float:
    """What Σ(g - r) of a policy with this bias exceeds with probability `chance` at most, averaged over `runs`.

    g - r(s_t,a_t) = p·h - h(s_t) for the pairs the policy plays, so the sum telescopes up to sp(h) and a martingale
    whose step lies in a range of at most c = max over pairs of the range of h on the next states: Azuma and Hoeffding.
    """
    c = max(float(np.ptp(bias[mdp.indices[a:b]])) for a, b in zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True))
    return float(np.ptp(bias)) + c * math.sqrt(steps * math.log(1 / chance) / (2 * runs))


# ---------------------------------------------------------------------- Fixed


def make_mixed(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.Fixed(**fitting(mdp, seed))


def make_optimal(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.Fixed(policy=gf.solve(mdp), **fitting(mdp, seed))


@pytest.mark.parametrize("make", [make_mixed, make_optimal])
@pytest.mark.parametrize("world", worlds())
def test_stepped_equals_simulated(make: Make, world: str) -> None:
    assert_stepped_equals_simulated(make, worlds()[world], 500)


@pytest.mark.parametrize("make", [make_mixed, make_optimal])
def test_a_saved_agent_goes_on_to_the_same_bits(make: Make, tmp_path: Path) -> None:
    assert_saved_goes_on(make, worlds()["bernoulli"], 333, 500, tmp_path)


def test_the_optimal_policy_has_no_regret_and_random_play_a_linear_one() -> None:
    mdp, T = gf.environments.riverswim(6), 1_000_000
    best = gf.solve(mdp)
    run = gf.simulate(gf.Fixed(6, 2, policy=best), mdp, T, seed=1, checkpoints=[T // 100, T])
    limit = noise(mdp, best.bias, T, 1e-6) / T
    assert limit < 0.01  # of a gain of .43
    assert abs(run.pseudo_regret[-1]) / T <= limit
    assert abs(run.pseudo_regret[0]) / (T // 100) <= 100 * noise(mdp, best.bias, T // 100, 1e-6) / T
    assert len(run.episodes) == 1
    random = gf.Fixed(6, 2)
    played = gf.evaluate(mdp, random.policy)
    lost = gf.simulate(random, mdp, T, seed=1).pseudo_regret[-1] / T
    mean = run.gain - float(np.asarray(played.gain).max())
    # at random the action is part of the martingale's step too: its range grows by that of the rewards
    assert abs(lost - mean) <= (noise(mdp, played.bias, T, 1e-6) + math.sqrt(T * math.log(1e6) / 2)) / T
    assert mean > 0.4


def test_every_form_of_a_policy() -> None:
    mdp = gf.environments.riverswim(3)
    best = gf.solve(mdp)
    assert best.actions is not None
    agents = [gf.Fixed(3, 2, policy=p) for p in (best, best.actions, best.actions.tolist(), best.policy)]
    lives = [gf.simulate(agent, mdp, 200, seed=1).rewards[-1] for agent in agents]
    assert len(set(lives)) == 1
    mixture = gf.Fixed(1, 3, policy=[[0.25, 0.0, 0.75]], seed=1)
    for _ in range(10_000):
        mixture.observe(0, mixture.act(0), 0.5, 0)
    share = mixture.statistics.visits / 10_000
    assert share[1] == 0.0
    assert share[0] == pytest.approx(0.25, rel=0, abs=5 * math.sqrt(0.25 * 0.75 / 10_000))  # 5 sigma


def test_it_promises_nothing_and_knows_no_gain() -> None:
    agent = gf.Fixed(2, 2, policy=[0, 1], reward_min=-1.0, reward_max=3.0)
    agent.act(0)
    assert not agent.guarantee.holds
    assert str(agent.guarantee) == "no guarantee: a fixed policy does not learn"
    assert agent.episodes[["gain_low", "gain_high"]].tolist() == [(-1.0, 3.0)]


def test_without_a_policy_it_plays_every_allowed_action() -> None:
    agent = gf.Fixed(2, 3, allowed=[[True, False, True], [False, True, False]])
    assert agent.policy.tolist() == [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 1, 0], "3 actions, expected one for each of the 2 states"),
        ([0, 2], r"policy\[1\] is 2, expected an action in 0 … 1"),
        ([0.5, 0], r"policy\[0\] is 0.5"),
        ([math.nan, 0], r"policy\[0\] is nan"),
        ([1, 0], r"policy\[0\] plays action 1, which state 0 does not have"),
        ([[0.5, 0.5], [1.0, 0.0]], r"policy\[0\] plays action 1"),
        ([[1.0, 0.0], [0.5, 0.4]], r"policy\[1\] sums to 0.9"),
        ([[1.0, 0.0], [1.5, -0.5]], "smallest entry -0.5"),
        ([[1.0, 0.0]], r"shape \(1, 2\)"),
        (["left", "right"], "not an array of numbers"),
    ],
)
def test_a_bad_policy_is_refused(policy: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.Fixed(2, 2, policy=policy, allowed=[[True, False], [True, True]])


@pytest.mark.parametrize("name", ["fixed", "mbie-eb", "opt-psrl", "psrl", "ucbvi"])
def test_the_registry_knows_it(name: str) -> None:
    assert agent_class(name) is getattr(gf, AGENTS[name][1])
