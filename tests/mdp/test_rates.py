"""Continuous-time processes: uniformisation checked by hand on birth-death chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gainful.errors import GainfulError, InvalidArgumentError, InvalidMDPError
from gainful.mdp.model import MDP

ARRIVAL, SERVICE, K = 2.0, 3.0, 3


def birth_death(arrival: float = ARRIVAL, service: float = SERVICE, capacity: int = K) -> np.ndarray:
    """M/M/1/K with one action: (K+1, 1, K+1) rates."""
    q = np.zeros((capacity + 1, 1, capacity + 1))
    for n in range(capacity):
        q[n, 0, n + 1] = arrival
        q[n + 1, 0, n] = service
    return q


def generator(rates: np.ndarray) -> np.ndarray:
    q = rates.copy()
    for s in range(q.shape[0]):
        q[s, :, s] = -q[s].sum(axis=1)
    return q


def stationary(mdp: MDP) -> np.ndarray:
    """The stationary distribution of an MDP with one action."""
    P = mdp.to_dense()[0][:, 0]
    A = np.vstack([P.T - np.eye(mdp.n_states), np.ones(mdp.n_states)])
    return np.asarray(np.linalg.lstsq(A, np.append(np.zeros(mdp.n_states), 1.0), rcond=None)[0])


def gain(mdp: MDP) -> float:
    """The user's gain of an MDP with one action."""
    return mdp.units.gain(float(stationary(mdp) @ mdp.pair_rewards))


def rho_distribution(arrival: float, service: float, capacity: int) -> np.ndarray:
    weights = (arrival / service) ** np.arange(capacity + 1)
    return np.asarray(weights / weights.sum())


# ---------------------------------------------------------------------- numbers by hand


def test_the_uniformised_queue_by_hand() -> None:
    mdp = MDP.from_rates(birth_death(), costs=[0.0, 1.0, 2.0, 3.0])
    assert mdp.units.step_duration == 1 / 5
    assert mdp.units.objective == "cost"
    P, _ = mdp.to_dense()
    np.testing.assert_allclose(
        P[:, 0], [[0.6, 0.4, 0, 0], [0.6, 0, 0.4, 0], [0, 0.6, 0, 0.4], [0, 0, 0.6, 0.4]], rtol=0, atol=1e-15
    )
    assert mdp.n_transitions == 8  # no self-loop where the total rate is Λ
    np.testing.assert_allclose(mdp.costs[:, 0], [0.0, 0.2, 0.4, 0.6], rtol=0, atol=1e-15)
    assert mdp.reward_law == "deterministic"
    expected = float(rho_distribution(ARRIVAL, SERVICE, K) @ np.arange(4))
    assert gain(mdp) == pytest.approx(expected, rel=0, abs=1e-12)


def test_a_larger_uniformisation_adds_self_loops_and_keeps_the_gain() -> None:
    mdp = MDP.from_rates(birth_death(), costs=[0.0, 1.0, 2.0, 3.0], uniformization=10.0)
    assert mdp.units.step_duration == 0.1
    assert mdp.transition(1, 0) == pytest.approx({0: 0.3, 1: 0.5, 2: 0.2}, rel=0, abs=1e-15)
    plain = MDP.from_rates(birth_death(), costs=[0.0, 1.0, 2.0, 3.0])
    assert gain(mdp) == pytest.approx(gain(plain), rel=0, abs=1e-12)


def test_jump_rewards_are_earned_at_the_jump() -> None:
    """5 for each accepted customer, 1 per unit of time and customer present to pay."""
    jumps = np.zeros((4, 1, 4))
    jumps[[0, 1, 2], 0, [1, 2, 3]] = 5.0
    mdp = MDP.from_rates(birth_death(), [0.0, -1.0, -2.0, -3.0], jump_rewards=jumps)
    assert mdp.reward_law == "transition"
    # state 1: reward rate -1, a jump up at rate 2 worth 5; Λ = 5
    assert mdp.rewards[1, 0] == pytest.approx((-1 + 2 * 5) / 5, rel=0, abs=1e-15)
    assert mdp.reward_range == pytest.approx((-0.6, 5.0), rel=0, abs=1e-15)
    assert mdp.entry_rewards is not None
    np.testing.assert_allclose(mdp.entry_rewards, [0, 5, -0.2, 4.8, -0.4, 4.6, -0.6, -0.6], rtol=0, atol=1e-15)
    rho = rho_distribution(ARRIVAL, SERVICE, K)
    expected = 5 * ARRIVAL * (1 - rho[3]) - float(rho @ np.arange(4))
    assert gain(mdp) == pytest.approx(expected, rel=0, abs=1e-12)
    means = MDP.from_rates(birth_death(), [0.0, -1.0, -2.0, -3.0], jump_rewards=jumps, reward_law="deterministic")
    assert means.reward_law == "deterministic"
    np.testing.assert_allclose(means.rewards, mdp.rewards, rtol=0, atol=1e-15)


def test_an_event_that_changes_nothing_may_cost_something() -> None:
    """Rejected customers, at rate 2 in the full state, cost 7 each."""
    rates, jumps = birth_death(), np.zeros((4, 1, 4))
    rates[3, 0, 3] = ARRIVAL
    jumps[3, 0, 3] = 7.0
    mdp = MDP.from_rates(rates, jump_costs=jumps)
    assert mdp.units.step_duration == 0.2
    assert gain(mdp) == pytest.approx(7 * ARRIVAL * rho_distribution(ARRIVAL, SERVICE, K)[3], rel=0, abs=1e-12)


@given(st.floats(0.1, 9.0), st.floats(0.1, 9.0), st.integers(1, 5), st.floats(1.0, 4.0))
def test_the_gain_does_not_depend_on_the_uniformisation(
    arrival: float, service: float, capacity: int, factor: float
) -> None:
    rates = birth_death(arrival, service, capacity)
    mdp = MDP.from_rates(rates, np.arange(capacity + 1.0), uniformization=factor * rates.sum(axis=2).max())
    expected = float(rho_distribution(arrival, service, capacity) @ np.arange(capacity + 1))
    assert gain(mdp) == pytest.approx(expected, rel=0, abs=1e-9)


def test_an_absorbing_pair_stays_and_goes_on_earning() -> None:
    mdp = MDP.from_rates([[[0.0, 2.0]], [[0.0, 0.0]]], [1.0, 3.0])
    assert mdp.transition(1, 0) == {1: 1.0}
    assert mdp.units.gain(float(mdp.pair_rewards[1])) == 3.0


# ---------------------------------------------------------------------- forms of input


def two_actions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates, reward rates and jump rewards of an admission problem: accept or reject."""
    rates = np.concatenate([birth_death(), birth_death()], axis=1)
    for n in range(K):
        rates[n, 1, n + 1] = 0.0
    jumps = np.where(rates > 0, 1.0, 0.0)
    flows = -np.arange(4.0)[:, None] * np.array([1.0, 2.0])
    return rates, flows, jumps


def test_dense_sparse_and_generator_rates_are_the_same() -> None:
    rates, flows, jumps = two_actions()
    mdp = MDP.from_rates(rates, flows, jump_rewards=jumps)
    sparse = [sp.csr_array(rates[:, a]) for a in range(2)]
    sparse_jumps = [sp.coo_array(jumps[:, a]) for a in range(2)]
    assert MDP.from_rates(sparse, flows, jump_rewards=sparse_jumps) == mdp
    assert MDP.from_rates(generator(rates), flows, jump_rewards=jumps) == mdp
    assert MDP.from_rates([sp.csc_matrix(m.toarray()) for m in sparse], flows, jump_rewards=jumps) == mdp


@pytest.mark.parametrize("objective", ["reward", "cost"])
def test_a_table_of_rates_is_the_same(tmp_path: Path, objective: str) -> None:
    rates, flows, jumps = two_actions()
    s, a, t = np.nonzero(rates)
    extra = (np.array([0]), np.array([1]), np.array([0]))  # action 1 in the empty state: nothing happens
    s, a, t = (np.concatenate([x, y]) for x, y in zip((s, a, t), extra, strict=True))
    table = pd.DataFrame(
        {
            "state": s,
            "action": a,
            "next_state": t,
            "rate": rates[s, a, t],
            objective: jumps[s, a, t],
            f"{objective}_rate": flows[s, a],
        }
    )
    table.to_csv(tmp_path / "rates.csv", index=False)
    expected = (
        MDP.from_rates(rates, flows, jump_rewards=jumps)
        if objective == "reward"
        else MDP.from_rates(rates, costs=flows, jump_costs=jumps)
    )
    assert MDP.from_rates(table) == expected
    assert MDP.from_rates(tmp_path / "rates.csv") == expected


def test_a_table_with_labels_and_missing_actions() -> None:
    table = {
        "state": ["idle", "busy"],
        "action": ["wait", "work"],
        "next_state": ["busy", "idle"],
        "rate": [1.0, 4.0],
        "reward_rate": [0.0, 2.0],
    }
    mdp = MDP.from_rates(table, start="busy")
    assert mdp.state_labels == ("idle", "busy")
    assert mdp.allowed.tolist() == [[True, False], [False, True]]
    assert mdp.start.tolist() == [0.0, 1.0]
    assert mdp.transition("idle", "wait") == {0: 0.75, 1: 0.25}
    assert mdp.rewards.tolist() == [[0.0, 0.0], [0.0, 0.5]]


def test_actions_that_are_not_allowed_do_not_count() -> None:
    rates, flows, _ = two_actions()
    rates[0, 1, 2] = 1e6
    mdp = MDP.from_rates(rates, flows, allowed=[[True, False]] * 4, state_labels=list("abcd"), action_labels=["x", "y"])
    assert mdp.units.step_duration == 0.2
    assert mdp.n_pairs == 4


# ---------------------------------------------------------------------- bad input


def put(value: float, at: tuple[int, int, int] = (1, 0, 2)) -> np.ndarray:
    q = birth_death()
    q[at] = value
    return q


@pytest.mark.parametrize(
    ("rates", "options", "error", "message"),
    [
        (put(-1.0), {}, InvalidMDPError, r"rates\[1, 0, 2\] is -1, expected a finite rate of at least 0; 1 of 6 rates"),
        (put(np.nan), {}, InvalidMDPError, r"rates\[1, 0, 2\] is nan, expected a finite rate"),
        (put(np.inf), {"state_labels": list("abcd")}, InvalidMDPError, r"rates\[1, 0, 2\] \(from 'b' to 'c'\) is inf"),
        (put(-4.0, (1, 0, 1)), {}, InvalidMDPError, r"rates\[1, 0, 1\] is -4, expected minus .*, -5 \(a generator\)"),
        (0 * put(0.0), {}, InvalidMDPError, "all rates are 0, so nothing ever happens"),
        (put(1.0)[:, 0], {}, InvalidMDPError, r"rates has shape \(4, 4\), expected \(S, A, S\)"),
        (sp.eye_array(4), {}, InvalidMDPError, "rates is one sparse matrix; pass a sequence"),
        ([sp.eye_array(4), sp.eye_array(3)], {}, InvalidMDPError, "the matrices of rates have shapes"),
        ([sp.csr_array(np.ones((4, 3)))], {}, InvalidMDPError, "the matrices of rates have shapes"),
        (put(1.0), {"uniformization": 4.9}, InvalidArgumentError, "4.9, expected at least 5, .* state 2, action 0"),
        (put(1.0), {"uniformization": np.inf}, InvalidArgumentError, "uniformization is inf"),
        (put(1.0), {"rewards": None}, InvalidArgumentError, "there are no rewards; give rewards= or costs="),
        (put(1.0), {"costs": np.zeros(4)}, InvalidArgumentError, "found both rewards and costs, expected one kind"),
        (put(1.0), {"rewards": np.zeros((4, 2))}, InvalidMDPError, r"rewards has shape \(4, 2\), expected .*\(4, 1\)"),
        (put(1.0), {"rewards": put(0.0)}, InvalidMDPError, "a reward at each jump goes to jump_rewards"),
        (put(1.0), {"rewards": [0, np.nan, 0, 0]}, InvalidMDPError, r"the reward of P\[1, 0\] is nan"),
        (put(1.0), {"jump_rewards": np.zeros((3, 1, 3))}, InvalidMDPError, "jump_rewards is for 3 states"),
        (put(1.0), {"jump_rewards": put(np.nan)}, InvalidMDPError, r"P\[1, 0\]: the reward of moving to .* nan"),
        (put(1.0), {"allowed": [True]}, InvalidMDPError, r"allowed has shape \(1,\), expected"),
        (put(1.0), {"start": 9}, InvalidArgumentError, "state 9 is out of range"),
    ],
)
def test_bad_rates_are_named(rates: Any, options: dict[str, Any], error: type[GainfulError], message: str) -> None:
    arguments: dict[str, Any] = {"rewards": np.zeros(4)} | options
    with pytest.raises(error, match=message):
        MDP.from_rates(rates, **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": None}, "column 'rate' missing"),
        ({"rate": [1.0, -1.0]}, "the table, row 1, column 'rate': found -1.0, expected a rate, at least 0"),
        ({"rate": [1.0, np.nan]}, "row 1, column 'rate': found NaN"),
        ({"reward": None}, "found the columns 'state', 'action', 'next_state', 'rate', expected 'reward' "),
        ({"cost_rate": [1.0, 1.0]}, "not both kinds"),
        ({"next_state": [1, 2]}, "row 1, column 'next_state': state '2' has no action"),
        (
            {"state": [0, 0], "next_state": [0, 0], "reward_rate": [1.0, 2.0]},
            r"row 0, column 'reward_rate': found 1, expected one value for state 0, action 0 \(elsewhere 2\)",
        ),
    ],
)
def test_bad_tables_of_rates_are_named(changes: dict[str, Any], message: str) -> None:
    columns: dict[str, Any] = {
        "state": [0, 1],
        "action": [0, 0],
        "next_state": [1, 0],
        "rate": [1.0, 2.0],
        "reward": [1.0, 0.0],
    } | changes
    table = pd.DataFrame({key: value for key, value in columns.items() if value is not None})
    with pytest.raises(InvalidMDPError, match=message):
        MDP.from_rates(table)


def test_arrays_do_not_go_with_a_table() -> None:
    table = {"state": [0], "action": [0], "next_state": [0], "rate": [1.0], "reward": [1.0]}
    with pytest.raises(InvalidArgumentError, match="costs= cannot be combined with a table of rates"):
        MDP.from_rates(table, costs=[1.0])
