"""The MDP itself: builders from arrays, validation, units, laws, labels, changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gainful.errors import GainfulError, InvalidArgumentError, InvalidMDPError, TooLargeError
from gainful.mdp.model import MDP
from gainful.mdp.units import Units
from tests.strategies import mdps

LAWS: Any = ("deterministic", "bernoulli", "transition")


def two_states(**options: Any) -> MDP:
    P = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]]
    return MDP(P, options.pop("R", [[1.0, 0.5], [0.0, 0.25]]), **options)


# ---------------------------------------------------------------------- builders agree


@given(mdps(disallowed=True, labels=True, costs=True))
def test_dense_sparse_and_rows_build_the_same_mdp(mdp: MDP) -> None:
    P, _ = mdp.to_dense()
    options: dict[str, Any] = {
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
        "objective": mdp.units.objective,
    }
    R = mdp.rewards * mdp.units.sign + 0.0
    dense = MDP(P, R, allowed=mdp.allowed, **options)
    sparse = MDP.from_sparse(mdp.to_sparse(), R, allowed=mdp.allowed, **options)
    rows = MDP.from_rows(mdp.indptr, mdp.indices, mdp.probabilities, R, **options)
    assert dense == mdp
    assert sparse == mdp
    assert rows == mdp


@given(mdps(disallowed=True, laws=["transition"], reward_low=-3.0, reward_high=3.0))
def test_rewards_of_transitions_are_the_same_from_rows_and_from_a_dense_array(mdp: MDP) -> None:
    assert mdp.entry_rewards is not None
    rows = MDP.from_rows(mdp.indptr, mdp.indices, mdp.probabilities, mdp.entry_rewards, n_actions=mdp.n_actions)
    assert rows == mdp
    assert rows.reward_law == "transition"
    means = [
        sum(p * r for p, r in zip(mdp.probabilities[i:j], mdp.entry_rewards[i:j], strict=True))
        for i, j in zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True)
    ]
    np.testing.assert_allclose(mdp.rewards.reshape(-1), means, rtol=0, atol=1e-14)


@given(mdps(disallowed=True), st.randoms(use_true_random=False))
def test_the_order_and_splitting_of_transitions_does_not_matter(mdp: MDP, random: Any) -> None:
    indices: list[int] = []
    probabilities: list[float] = []
    lengths = []
    for i, j in zip(mdp.indptr[:-1], mdp.indptr[1:], strict=True):
        row = [(int(mdp.indices[k]), float(mdp.probabilities[k]) / 2) for k in range(i, j)] * 2  # halves are exact
        random.shuffle(row)
        indices += [t for t, _ in row]
        probabilities += [p for _, p in row]
        lengths.append(len(row))
    again = MDP.from_rows(np.concatenate([[0], np.cumsum(lengths)]), indices, probabilities, mdp.rewards)
    assert again == mdp


@given(mdps(disallowed=True, random_start=True, costs=True, laws=LAWS))
def test_a_copy_is_equal_to_the_bit(mdp: MDP) -> None:
    assert MDP.from_gymnasium(mdp.to_gymnasium(), name="copy") == mdp


@given(mdps(communicating=True, disallowed=True))
def test_communicating_mdps_of_the_strategy_are_strongly_connected(mdp: MDP) -> None:
    graph = sum(mdp.to_sparse()[1:], start=mdp.to_sparse()[0])
    n, _ = sp.csgraph.connected_components(graph, directed=True, connection="strong")
    assert n == 1


def test_arrays_are_copied_and_read_only() -> None:
    P, R = np.ones((1, 1, 1)), np.ones((1, 1))
    mdp = MDP(P, R)
    R[0, 0] = 7.0
    assert mdp.rewards[0, 0] == 1.0
    for array in (mdp.probabilities, mdp.indices, mdp.indptr, mdp.pair_rewards, mdp.start, mdp.allowed):
        assert not array.flags.writeable


def test_rows_are_stored_sorted_merged_and_without_zeros() -> None:
    mdp = MDP.from_rows([0, 4, 5], [1, 0, 1, 0, 1], [0.25, 0.5, 0.25, 0.0, 1.0], [[1.0], [0.0]])
    assert mdp.indices.tolist() == [0, 1, 1]
    assert mdp.indices.dtype == np.uint32
    assert mdp.probabilities.tolist() == [0.5, 0.5, 1.0]
    assert mdp.indptr.tolist() == [0, 2, 3]
    assert mdp.max_support == 2


def test_rows_within_the_tolerance_are_normalised() -> None:
    mdp = MDP([[[0.5, 0.5 + 5e-9]], [[1.0, 0.0]]], [[0.0], [0.0]])
    assert mdp.probabilities[:2].sum() == pytest.approx(1.0, rel=0, abs=2**-52)


def test_rewards_of_states_are_those_of_all_their_actions() -> None:
    assert two_states(R=[3.0, 4.0]).rewards.tolist() == [[3.0, 3.0], [4.0, 4.0]]


def test_the_views_of_an_mdp() -> None:
    mdp = two_states(name="two")
    assert repr(mdp) == "MDP('two', 2 states, 2 actions, 7 transitions)"
    assert mdp.n_transitions == 7
    assert mdp.n_pairs == 4
    assert mdp.transition(0, 1) == {0: 0.2, 1: 0.8}
    assert mdp.reward_range == (0.0, 1.0)
    assert not mdp.is_full
    np.testing.assert_allclose(mdp.q_values([0.0, 1.0]), [[1.1, 1.3], [0.5, 1.25]], rtol=0, atol=1e-15)
    assert mdp != "two"


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[[0.5, 0.48]], [[1.0, 0.0]]], r"P\[0, 0\] sums to 0.98, expected 1 \(tolerance 1e-08\); 1 of 2 rows fails"),
        ([[[1.0, 2e-8]], [[1.0, 0.0]]], r"P\[0, 0\] sums to 1.00000002, expected 1"),
        ([[[1.5, -0.5]], [[1.0, 0.0]]], r"P\[0, 0\] has the probability -0.5, expected a number in \[0, 1\]"),
        (
            [[[1.0, 0.0]], [[np.nan, 1.0]]],
            r"P\[1, 0\] has the probability nan, expected .*; 1 of 4 probabilities fails",
        ),
        ([[[1.0, 0.0]], [[np.inf, 1.0]]], r"P\[1, 0\] has the probability inf"),
        ([[[1.0, 0.0]], [[0.0, 0.0]]], r"P\[1, 0\] sums to 0, expected 1; mark an action .* as False in allowed="),
        ([[1.0, 0.0], [0.0, 1.0]], r"P has shape \(2, 2\), expected \(S, A, S\)"),
        ([[["a", "b"]]], "P is not an array of numbers"),
        (sp.eye_array(2), "P is one sparse matrix; pass a sequence"),
        ([sp.eye_array(2), sp.eye_array(3)], "the matrices have shapes"),
    ],
)
def test_bad_probabilities_are_named(P: Any, message: str) -> None:
    with pytest.raises(InvalidMDPError, match=message):
        MDP(P, [[0.0], [0.0]])


def test_messages_use_labels() -> None:
    with pytest.raises(InvalidMDPError, match=r"P\[1, 0\] \(state 'down', action 'go'\) sums to 0.5"):
        MDP([[[1, 0]], [[0, 0.5]]], [0, 0], state_labels=["up", "down"], action_labels=["go"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 2]}, r"P\[1, 0\] moves to state 2, expected 0 … 1; 1 of 2 transitions fails"),
        ({"indices": [-1, 0]}, r"P\[0, 0\] moves to state -1, expected 0 … 1"),
        (
            {"indices": [0.0, 1.0]},
            r"the next states have dtype float64, expected integers; convert them with .astype\(int\)",
        ),
        ({"indices": [0, 1, 1]}, "3 indices but 2 probabilities"),
        (
            {"indptr": [0, 1, 3]},
            r"indptr is 0 … 3, expected numbers that rise from 0 to the number of transitions \(2\)",
        ),
        ({"indptr": [0, 2]}, r"indptr has 2 entries, expected S\*A\+1 = 3"),
        ({"indptr": [0, 2, 2], "probabilities": [0.5, 0.5]}, "state 1 has no action .*; 1 of 2 states"),
        ({"rewards": [0.0, 0.0]}, r"rewards have shape \(2,\), expected \(S, A\); .* give n_actions="),
        ({"rewards": [[0.0], [np.nan]]}, r"the reward of P\[1, 0\] is nan, expected a finite number; 1 of 2 pairs"),
        ({"rewards": [0.0, np.inf], "n_actions": 1}, r"P\[1, 0\]: the reward of moving to state 1 is inf"),
        ({"n_actions": 3}, "2 rows do not divide into 3 actions per state"),
        ({"indptr": [0, 0, 0], "indices": [], "probabilities": []}, "there are no transitions"),
    ],
)
def test_bad_rows_are_named(changes: dict[str, Any], message: str) -> None:
    parts: dict[str, Any] = {
        "indptr": [0, 1, 2],
        "indices": [0, 1],
        "probabilities": [1.0, 1.0],
        "rewards": [[0.0], [0.0]],
    }
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_rows(**(parts | changes))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"R": [[0.0, 0.0, 0.0]]}, InvalidMDPError, r"R has shape \(1, 3\), expected \(S, A\) = \(2, 2\), \(2,\) or"),
        ({"R": [[np.nan, 0.0], [0.0, 0.0]]}, InvalidMDPError, r"the reward of P\[0, 0\] is nan"),
        ({"allowed": [[True, True]]}, InvalidMDPError, r"allowed has shape \(1, 2\), expected"),
        ({"allowed": [[False, False], [True, True]]}, InvalidMDPError, "state 0 has no action"),
        ({"state_labels": ["a"]}, InvalidMDPError, "state_labels has 1 names, expected 2"),
        ({"state_labels": ["a", "a"]}, InvalidMDPError, "state_labels contains 'a' twice"),
        ({"start": 2}, InvalidArgumentError, "state 2 is out of range, expected 0 … 1"),
        ({"start": "a"}, InvalidArgumentError, "there is no state 'a'; this MDP has no labels"),
        ({"start": [0.5, 0.4]}, InvalidMDPError, "start sums to 0.9"),
        ({"start": [1.5, -0.5]}, InvalidMDPError, "smallest entry -0.5"),
        ({"start": [1.0]}, InvalidMDPError, r"start has shape \(1,\), expected a state or a distribution over 2"),
        ({"reward_law": "gaussian"}, InvalidArgumentError, "reward_law is 'gaussian', expected one of deterministic"),
        ({"reward_law": "transition"}, InvalidMDPError, "needs one reward per transition"),
        ({"objective": "money"}, InvalidArgumentError, "objective is 'money', expected 'reward' or 'cost'"),
        ({"R": [2.0, 0.0], "reward_law": "bernoulli"}, InvalidMDPError, r"mean reward of P\[0, 0\] is 2, .*\[0, 1\]"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], error: type[GainfulError], message: str) -> None:
    with pytest.raises(error, match=message):
        two_states(**options)


def test_a_two_gigabyte_dense_array_is_refused() -> None:
    S = 1 << 14
    mdp = MDP.from_rows(np.arange(S + 1), np.arange(S), np.ones(S), np.zeros((S, 1)))
    with pytest.raises(
        TooLargeError, match=r"S = 16384, A = 1 takes 2.0 GiB, more than the limit of 1 GiB; use the sparse"
    ):
        mdp.to_dense()


def test_what_stands_in_rows_that_are_not_allowed_is_ignored() -> None:
    P = [[[1.0, 0.0], [np.nan, -3.0]], [[0.0, 1.0], [1.0, 0.0]]]
    mdp = MDP(P, [[1.0, np.nan], [0.0, 2.0]], allowed=[[True, False], [True, True]])
    assert mdp.n_pairs == 3
    assert mdp.rewards.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert mdp.q_values([0.0, 0.0])[0, 1] == -np.inf
    assert mdp.transition(0, 1) == {}


# ---------------------------------------------------------------------- labels and start


def test_states_and_actions_are_found_by_label_or_index() -> None:
    mdp = two_states(state_labels=["up", "down"], action_labels=["stay", "go"], start="down")
    assert mdp.start.tolist() == [0.0, 1.0]
    assert mdp.state_index("down") == mdp.state_index(1) == 1
    assert mdp.action_index("go") == 1
    assert mdp.transition("up", "go") == {0: 0.2, 1: 0.8}
    assert (mdp.state_name(0), mdp.action_name(1)) == ("up", "go")
    with pytest.raises(InvalidArgumentError, match="there is no action 'goo'; did you mean 'go'"):
        mdp.action_index("goo")


@given(st.lists(st.integers(0, 9), min_size=2, max_size=2).filter(any))
def test_a_start_distribution_is_kept_and_copied_to_the_bit(weights: list[int]) -> None:
    p = np.array(weights) / sum(weights)
    mdp = two_states(start=p)
    np.testing.assert_allclose(mdp.start, p, rtol=0, atol=2**-52)
    assert np.array_equal(MDP.from_gymnasium(mdp.to_gymnasium(), name="copy").start, mdp.start)


# ---------------------------------------------------------------------- units and laws


def test_costs_are_negated_inside_and_come_back_as_costs() -> None:
    mdp = two_states(R=[[1.0, 5.0], [2.0, 0.0]], objective="cost")
    assert mdp.rewards.tolist() == [[-1.0, -5.0], [-2.0, 0.0]]
    assert mdp.costs.tolist() == [[1.0, 5.0], [2.0, 0.0]]
    assert mdp.reward_range == (-5.0, 0.0)
    assert mdp.units.gain(-3.0) == 3.0
    assert mdp.units.gain_bounds(-3.0, -2.0) == (2.0, 3.0)
    with pytest.raises(InvalidArgumentError, match=r"rewards, not costs; read mdp\.rewards"):
        two_states().costs


@given(mdps(disallowed=True, costs=True, laws=LAWS, reward_low=-4.0, reward_high=7.0))
def test_normalised_rewards_start_at_zero_and_the_users_numbers_stay(mdp: MDP) -> None:
    new = mdp.normalised()
    inside = new.allowed.reshape(-1)
    values = new.entry_rewards if new.entry_rewards is not None else new.pair_rewards[inside]
    assert values.min() >= -1e-15
    np.testing.assert_allclose(new.rewards, mdp.rewards, rtol=0, atol=1e-14)
    np.testing.assert_allclose(new.reward_range, mdp.reward_range, rtol=0, atol=1e-14)
    assert new.units.gain(0.25) == pytest.approx(mdp.units.gain(0.25 + new.units.offset), rel=0, abs=1e-14)
    assert np.array_equal(new.probabilities, mdp.probabilities)


def test_a_normalised_mdp_is_left_alone() -> None:
    mdp = two_states()
    assert mdp.normalised() is mdp


def test_the_range_of_bernoulli_rewards_is_their_outcomes() -> None:
    assert two_states(R=[0.25, 0.5], reward_law="bernoulli").reward_range == (0.0, 1.0)
    assert two_states(R=[0.25, 0.5], reward_law="bernoulli", objective="cost").reward_range == (-1.0, 0.0)


def test_the_range_of_transition_rewards_is_that_of_possible_transitions() -> None:
    R = np.zeros((2, 2, 2))
    R[1, 1, 0] = 99.0  # p(0 | 1, 1) = 0
    R[0, 0, 1] = 4.0
    mdp = two_states(R=R)
    assert mdp.reward_law == "transition"
    assert mdp.reward_range == (0.0, 4.0)
    assert mdp.rewards[0, 0] == pytest.approx(0.4, rel=0, abs=1e-15)


def test_one_next_state_may_have_several_rewards() -> None:
    mdp = MDP.from_rows([0, 3], [0, 0, 0], [0.25, 0.5, 0.25], [1.0, 3.0, 1.0], n_actions=1)
    assert mdp.probabilities.tolist() == [0.5, 0.5]
    assert mdp.rewards.tolist() == [[2.0]]
    assert mdp.max_support == 1
    assert mdp.to_dense()[0].tolist() == [[[1.0]]]


def test_units_turn_steps_into_time() -> None:
    units = Units(objective="cost", offset=-2.0, step_duration=0.5, continuous=True)
    assert units.gain(1.0) == 2.0
    assert units.internal_precision(1e-6) == 5e-7
    assert units.gain_name == "average cost per unit of time"
    assert units.amount(np.array([1.0])).tolist() == [-1.0]
    assert units.reward(np.array([1.0])).tolist() == [1.0]


# ---------------------------------------------------------------------- parts


def test_restricted_drops_the_pairs_that_leave() -> None:
    mdp = two_states(start=[0.25, 0.75])
    part = mdp.restricted([1])
    assert part.n_states == 1
    assert part.state_labels == ("1",)
    assert part.allowed.tolist() == [[False, True]]
    assert part.rewards.tolist() == [[0.0, 0.25]]
    assert part.start.tolist() == [1.0]
    leaves = MDP([[[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]]], np.zeros(3))
    with pytest.raises(InvalidMDPError, match="state 1 has no action"):
        leaves.restricted(np.array([True, True, False]))


@pytest.mark.parametrize("states", [[], [2], [-1], [False, False], [True], ["0"]])
def test_restricted_to_no_valid_states_is_refused(states: Any) -> None:
    mdp = two_states()
    with pytest.raises(InvalidArgumentError, match=r"mask of shape \(2,\) or indices 0 … 1, at least one"):
        mdp.restricted(states)


@given(mdps(disallowed=True, laws=LAWS, costs=True, labels=True))
def test_restricted_to_all_states_changes_only_labels(mdp: MDP) -> None:
    part = mdp.restricted(np.arange(mdp.n_states))
    assert part.state_labels == tuple(mdp.state_name(s) for s in range(mdp.n_states))
    for name in ("indptr", "indices", "probabilities", "pair_rewards", "start", "allowed"):
        assert np.array_equal(getattr(part, name), getattr(mdp, name))
    assert (part.entry_rewards is None) == (mdp.entry_rewards is None)
    if part.entry_rewards is not None and mdp.entry_rewards is not None:
        assert np.array_equal(part.entry_rewards, mdp.entry_rewards)
    assert (part.reward_law, part.action_labels, part.units) == (mdp.reward_law, mdp.action_labels, mdp.units)
