"""Gymnasium: environments with a table become MDPs, MDPs become environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp import gymnasium_table
from gainful.mdp.gymnasium_env import MDPEnv
from gainful.mdp.model import MDP
from tests.strategies import mdps

TAXI = next(name for name in ("Taxi-v4", "Taxi-v3") if name in gymnasium.registry)
CLIFF = next(name for name in ("CliffWalking-v1", "CliffWalking-v0") if name in gymnasium.registry)


class Tabled(gymnasium.Env[Any, Any]):
    """A minimal environment with a table, without Gymnasium's own classes."""

    def __init__(self, P: Any, initial: Any = None) -> None:
        self.P = P
        if initial is not None:
            self.initial_state_distrib = initial


# ---------------------------------------------------------------------- environment -> MDP


@pytest.mark.parametrize(
    ("name", "states", "actions", "reachable"),
    [("FrozenLake-v1", 16, 4, 11), (TAXI, 500, 6, 400), (CLIFF, 48, 4, 37)],
)
def test_toy_text_environments_become_continuing(name: str, states: int, actions: int, reachable: int) -> None:
    """Reachable: FrozenLake's 16 cells less 4 holes and the goal; Taxi's passenger waiting away from its destination
    or riding (25·(4·3 + 4)); CliffWalking's three upper rows and the start. Ends restart, so none is entered."""
    mdp = MDP.from_gymnasium(name)
    assert (mdp.n_states, mdp.n_actions) == (states, actions)
    assert mdp.name == name
    part = MDP.from_gymnasium(gymnasium.make(name), drop_unreachable=True)
    assert part.n_states == reachable
    assert part.state_labels is not None
    old = [int(label) for label in part.state_labels]
    np.testing.assert_array_equal(part.rewards, mdp.rewards[old])
    np.testing.assert_array_equal(part.start, mdp.start[old])


def test_frozen_lake_restarts_with_the_reward_of_the_goal() -> None:
    mdp = MDP.from_gymnasium("FrozenLake-v1")
    assert mdp.reward_law == "transition"
    assert mdp.start.tolist() == [1.0] + [0.0] * 15
    # right of 14 is the goal (restart at 0, reward 1); up 10, down stays at 14
    assert mdp.transition(14, 2) == pytest.approx({0: 1 / 3, 10: 1 / 3, 14: 1 / 3}, rel=0, abs=1e-15)
    assert mdp.rewards[14, 2] == pytest.approx(1 / 3, rel=0, abs=1e-15)
    assert mdp.transition(5, 0) == {0: 1.0}  # a hole


def test_cliff_walking_without_slipping_is_deterministic() -> None:
    mdp = MDP.from_gymnasium(CLIFF)
    assert mdp.reward_law == "deterministic"
    assert mdp.transition(35, 2) == {36: 1.0}  # down from above the goal ends at the goal, so at the start
    assert mdp.rewards[36, 1] == -100.0


def test_a_taxi_delivery_restarts_anywhere_the_initial_distribution_allows() -> None:
    base: Any = gymnasium.make(TAXI).unwrapped
    mdp = MDP.from_gymnasium(TAXI)
    s = base.encode(0, 0, 4, 0)
    assert mdp.rewards[s, 5] == 20.0
    assert len(mdp.transition(s, 5)) == np.count_nonzero(base.initial_state_distrib) == 300


def test_wrappers_are_looked_through() -> None:
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("FrozenLake-v1"), 5)
    wrapped = gymnasium.wrappers.TransformReward(env, lambda r: 7 * float(r))
    assert MDP.from_gymnasium(wrapped) == MDP.from_gymnasium("FrozenLake-v1")


def test_probabilities_of_one_pair_are_added_up() -> None:
    P = {0: {0: [(0.5, 1, 2.0, False), (0.25, 0, 0.0, True), (0.25, 1, 0.0, True)]}, 1: {0: [(1.0, 0, 1.0, False)]}}
    mdp = MDP.from_gymnasium(Tabled(P, [0.5, 0.5]))
    assert mdp.transition(0, 0) == {0: 0.25, 1: 0.75}
    assert mdp.rewards.tolist() == [[1.0], [1.0]]
    assert mdp.name == "Tabled"


def test_lists_and_missing_actions_are_understood() -> None:
    P = [{0: [(1.0, 1, 0.0, False)]}, {1: [(1.0, 0, 1.0, False)]}]
    mdp = MDP.from_gymnasium(Tabled(P, [1.0, 0.0]), name="mine")
    assert mdp.allowed.tolist() == [[True, False], [False, True]]
    assert mdp.name == "mine"


def test_nothing_is_dropped_when_all_states_are_reachable() -> None:
    P = [[[(1.0, 1, 0.0, False)]], [[(1.0, 0, 1.0, False)]]]
    assert MDP.from_gymnasium(Tabled(P, [1.0, 0.0]), drop_unreachable=True).state_labels is None


def test_a_start_can_be_given() -> None:
    P = [[[(1.0, 1, 0.0, True)]], [[(1.0, 0, 1.0, False)]]]
    assert MDP.from_gymnasium(Tabled(P), start=1).transition(0, 0) == {1: 1.0}
    assert MDP.from_gymnasium(Tabled(P), start=[0.5, 0.5]).transition(0, 0) == {0: 0.5, 1: 0.5}
    for bad, message in [
        (2, "Tabled: start=2, expected a state 0 … 1"),
        ("a", "its states have no names; give an index"),
        ([1.0], r"start has shape \(1,\) and sums to 1, expected a distribution over 2 states"),
    ]:
        with pytest.raises(InvalidMDPError, match=message):
            MDP.from_gymnasium(Tabled(P), start=bad)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            "CartPole-v1",
            r"CartPole-v1 has no transition table: CartPoleEnv has no attribute P .*; build the MDP from arrays",
        ),
        ("NoSuchThing-v0", "Gymnasium has no environment 'NoSuchThing-v0': .*; check the id"),
        (Tabled([[[(1.0, 0, 0.0, False)]]]), "Tabled has no initial_state_distrib, .*; pass start="),
        (Tabled({1: {0: []}}, [1.0]), "the states of P are 1, expected 0 … S-1"),
        (Tabled({0: {0: []}}, [1.0]), "Tabled: P has no transitions"),
        (Tabled([[[(1.0, 3, 0.0, False)]]], [1.0]), r"Tabled: P\[0\]\[0\] moves to state 3, expected 0 … 0"),
        (Tabled([[[(1.0, 0)]]], [1.0]), r"Tabled: P\[0\]\[0\] contains \(1.0, 0\), expected \(probability, next state"),
        (Tabled([[[(0.9, 0, 0.0, False)]]], [1.0]), r"Tabled: P\[0, 0\] sums to 0.9, expected 1"),
        (Tabled({"a": {}}, [1.0]), "Tabled: P is a dict, expected a dictionary with integer keys"),
        (Tabled([[[(1.0, 0, 0.0, False)]]], [0.5]), "initial_state_distrib has shape .* sums to 0.5"),
    ],
)
def test_environments_without_a_usable_table_are_refused(env: Any, message: str) -> None:
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_gymnasium(env)


# ---------------------------------------------------------------------- MDP -> environment


def example(**options: Any) -> MDP:
    P = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]]
    return MDP(P, options.pop("R", [[1.0, 0.5], [0.0, 0.25]]), **options)


@pytest.mark.parametrize("law", ["deterministic", "bernoulli", "transition"])
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes.*")
def test_the_environment_passes_gymnasiums_own_checks(law: Any) -> None:
    R = np.linspace(0, 1, 8).reshape(2, 2, 2) if law == "transition" else [[1.0, 0.5], [0.0, 0.25]]
    check_env(example(R=R, reward_law=law, start=[0.5, 0.5]).to_gymnasium())


@settings(max_examples=50)
@given(
    mdps(disallowed=True, labels=True, costs=True, laws=("deterministic", "bernoulli", "transition"), random_start=True)
)
def test_an_environment_gives_its_mdp_back(mdp: MDP) -> None:
    env = mdp.to_gymnasium()
    assert MDP.from_gymnasium(env) == mdp
    assert MDP.from_gymnasium(gymnasium.wrappers.TimeLimit(env, 10)) == mdp


@settings(max_examples=50)
@given(mdps(min_actions=1, disallowed=True, laws=("deterministic", "transition"), random_start=True, reward_low=-1.0))
def test_the_table_of_the_environment_is_the_same_process(mdp: MDP) -> None:
    """As any reader of `P` and `initial_state_distrib` sees it, not knowing MDPEnv."""
    env = mdp.to_gymnasium()
    assert isinstance(env, MDPEnv)
    again = gymnasium_table.from_gymnasium(MDP, Tabled(env.P, env.initial_state_distrib))
    A = again.n_actions  # actions that no state has are not in the table
    assert not mdp.allowed[:, A:].any()
    np.testing.assert_array_equal(again.allowed, mdp.allowed[:, :A])
    np.testing.assert_allclose(again.rewards, mdp.rewards[:, :A], rtol=0, atol=1e-15)
    np.testing.assert_array_equal(again.to_dense()[0], mdp.to_dense()[0][:, :A])
    np.testing.assert_array_equal(again.start, mdp.start)


def test_bernoulli_rewards_are_two_entries_of_the_table() -> None:
    env = MDP([[[1.0]]], [0.25], reward_law="bernoulli", objective="cost").to_gymnasium()
    assert isinstance(env, MDPEnv)
    assert env.P == {0: {0: [(0.75, 0, 0.0, False), (0.25, 0, -1.0, False)]}}


def test_start_name_and_reachability_apply_to_an_mdps_own_environment() -> None:
    mdp = MDP(np.eye(3).reshape(3, 1, 3), [0.0, 1.0, 2.0])
    part = MDP.from_gymnasium(mdp.to_gymnasium(), start=1, name="part", drop_unreachable=True)
    assert part.state_labels == ("1",)
    assert part.rewards.tolist() == [[1.0]]
    assert part.name == "part"


@pytest.mark.parametrize("law", ["deterministic", "bernoulli", "transition"])
@pytest.mark.parametrize("objective", ["reward", "cost"])
def test_the_environment_draws_what_the_mdp_says(law: Any, objective: Any) -> None:
    """20 000 steps of uniform actions: each frequency and mean within 5 standard errors (fixed seed)."""
    R: Any = np.linspace(0, 2, 8).reshape(2, 2, 2) if law == "transition" else [[1.0, 0.5], [0.0, 0.25]]
    mdp = example(R=R, reward_law=law, objective=objective)
    env = mdp.to_gymnasium()
    s, _ = env.reset(seed=3)
    moves, total, n = np.zeros((2, 2, 2)), np.zeros((2, 2)), 20_000
    actions = np.random.default_rng(4).integers(0, 2, n)
    low, high = mdp.reward_range
    for a in actions:
        following, reward, terminated, truncated, _ = env.step(a)
        assert not terminated
        assert not truncated
        assert low <= float(reward) <= high
        moves[s, a, following] += 1
        total[s, a] += float(reward)
        s = following
    visits = moves.sum(axis=2)
    P, means = mdp.to_dense()
    error = 5 * np.sqrt(np.maximum(P * (1 - P), 1e-12) / visits[:, :, None])
    assert np.all(np.abs(moves / visits[:, :, None] - P) <= error)
    assert np.all(np.abs(total / visits - means) <= 5 * (high - low) / 2 / np.sqrt(visits))
    if law == "deterministic":
        np.testing.assert_allclose(total / visits, means, rtol=0, atol=1e-9)


def test_the_same_seed_gives_the_same_steps() -> None:
    def trace(seed: int) -> list[Any]:
        env = example(reward_law="bernoulli", start=[0.5, 0.5]).to_gymnasium()
        first, _ = env.reset(seed=seed)
        return [first, *(env.step(t % 2)[:2] for t in range(50))]

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_labels_masks_and_the_beginning_state() -> None:
    mdp = example(
        state_labels=["up", "down"], action_labels=["stay", "go"], allowed=[[True, False], [True, True]], start="down"
    )
    env = mdp.to_gymnasium(render_mode="ansi")
    state, info = env.reset(seed=0)
    assert state == 1
    assert info["state_label"] == "down"
    assert info["action_mask"].tolist() == [1, 1]
    assert info["action_mask"].dtype == np.int8
    assert env.render() == "down\n"
    state, info = env.reset(options={"state": "up"})
    assert (state, info["state_label"]) == (0, "up")
    assert info["action_mask"].tolist() == [1, 0]
    with pytest.raises(InvalidArgumentError, match=r"state up does not have the action go; it has: stay \(info"):
        env.step(1)
    env.step(0)
    assert str(env.render()).startswith("up --stay (1)--> ")


def test_misuse_of_the_environment_is_named() -> None:
    env = example().to_gymnasium()
    with pytest.raises(InvalidArgumentError, match="step was called before reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="action 2 is out of range, expected 0 … 1"):
        env.step(2)
    with pytest.raises(InvalidArgumentError, match="state 5 is out of range"):
        env.reset(options={"state": 5})
    mdp = example()
    with pytest.raises(InvalidArgumentError, match="render_mode is 'human', expected None, 'ansi' or 'rgb_array'"):
        mdp.to_gymnasium(render_mode="human")
