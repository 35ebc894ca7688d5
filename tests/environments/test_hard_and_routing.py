"""Server routing, the weakly communicating toy and the hard family: rows, structure, gains, diameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.environments import hard_family, server_routing, weakly_communicating_toy
from gainful.errors import InvalidArgumentError
from tests.published.exact import PRECISION, linear_programme

# ---------------------------------------------------------------------- server routing


def test_server_routing_rows() -> None:
    """Rates 1 + 2 + 5 = 8 per unit of time, so every event has its rate over 8 and a step lasts 1/8."""
    mdp = server_routing(
        2,
        arrival_rate=1.0,
        first_service_rate=2.0,
        second_service_rate=5.0,
        first_holding_cost=3.0,
        second_holding_cost=4.0,
        loss_cost=10.0,
    )
    assert mdp.units.step_duration == pytest.approx(1 / 8, rel=0, abs=1e-15)
    here = mdp.state_index("1 and 1")
    both = {mdp.state_index("0 and 1"): 2 / 8, mdp.state_index("1 and 0"): 5 / 8}
    assert mdp.transition(here, "send to first") == pytest.approx(
        {mdp.state_index("2 and 1"): 1 / 8, **both}, rel=0, abs=1e-15
    )
    assert mdp.transition(here, "send to second") == pytest.approx(
        {mdp.state_index("1 and 2"): 1 / 8, **both}, rel=0, abs=1e-15
    )
    full = mdp.state_index("2 and 0")
    assert mdp.transition(full, "send to first") == pytest.approx(
        {full: 1 / 8 + 5 / 8, mdp.state_index("1 and 0"): 2 / 8}, rel=0, abs=1e-15
    )
    assert mdp.costs[here].tolist() == pytest.approx([7 / 8, 7 / 8], rel=0, abs=1e-15)
    assert mdp.costs[full].tolist() == pytest.approx([6 / 8 + 10 / 8, 6 / 8], rel=0, abs=1e-15)
    assert str(gf.structure(mdp)) == "communicating"


@pytest.mark.parametrize(("arrivals", "rate", "holding", "lost"), [(2.0, 1.0, 1.0, 30.0), (0.5, 2.0, 3.0, 20.0)])
def test_server_routing_without_queues_is_erlangs(arrivals: float, rate: float, holding: float, lost: float) -> None:
    mdp = server_routing(
        1,
        arrival_rate=arrivals,
        first_service_rate=rate,
        second_service_rate=rate,
        first_holding_cost=holding,
        second_holding_cost=holding,
        loss_cost=lost,
    )
    x = arrivals / rate
    blocked = x * x / 2 / (1 + x + x * x / 2)
    expected = holding * x * (1 - blocked) + lost * arrivals * blocked
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(expected, rel=0, abs=PRECISION)


def test_server_routing_default_by_a_linear_programme() -> None:
    mdp = server_routing()
    P, _ = mdp.to_dense()
    expected = -linear_programme(P, mdp.rewards, mdp.allowed) * 2.8  # 1.2 + 1 + 0.6 events per unit of time
    assert expected == pytest.approx(3.564374, rel=0, abs=5e-7)
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(expected, rel=0, abs=2 * PRECISION)


def test_equal_servers_get_the_shorter_line() -> None:
    mdp = server_routing(6, first_service_rate=1.0, second_service_rate=1.0, loss_cost=100.0)
    plan = gf.solve(mdp, precision=PRECISION)
    for first in range(7):
        for second in range(7):
            if first != second:
                wanted = "send to first" if first < second else "send to second"
                assert plan.action(f"{first} and {second}") == wanted


# ---------------------------------------------------------------------- weakly communicating


@pytest.mark.parametrize("n", [1, 2, 5])
def test_weakly_communicating_toy(n: int) -> None:
    mdp = weakly_communicating_toy(n)
    kind = gf.structure(mdp)
    assert str(kind) == "weakly communicating"
    assert kind.unichain is False
    assert [states.tolist() for states in kind.classes] == [[0, 1]]
    assert kind.transient.tolist() == list(range(2, n + 2))
    assert gf.diameter(mdp) == np.inf
    assert gf.diameter(mdp.restricted([0, 1])) == pytest.approx(1.0, rel=0, abs=1e-9)
    plan = gf.solve(mdp, precision=PRECISION)
    assert plan.gain == pytest.approx(0.5, rel=0, abs=PRECISION)
    h = np.array([-0.5, 0.0, *(k - 0.5 for k in range(1, n + 1))])
    assert mdp.q_values(h).max(axis=1) == pytest.approx(0.5 + h, rel=0, abs=1e-15)  # the optimality equation


def test_weakly_communicating_toy_rows() -> None:
    mdp = weakly_communicating_toy(2)
    assert mdp.transition("low", "go") == {1: 1.0}
    assert mdp.transition("low", "stay") == {0: 1.0}
    assert mdp.transition("high", "go") == {0: 1.0}
    assert mdp.transition("high", "stay") == {1: 1.0}
    assert mdp.transition("cloud 1", "go") == {0: 1.0}
    assert mdp.transition("cloud 1", "stay") == {0: 0.5, 2: 0.5}
    assert mdp.transition("cloud 2", "stay") == {2: 0.5, 3: 0.5}
    assert mdp.rewards.tolist() == [[0.0, 0.25], [0.0, 0.5], [1.0, 1.0], [1.0, 1.0]]
    assert mdp.start.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert weakly_communicating_toy(2, start_above=True).start.tolist() == [0.0, 0.0, 0.0, 1.0]


# ---------------------------------------------------------------------- the hard family


def test_hard_family_rows() -> None:
    mdp = hard_family(40.0, 5, n_pieces=4, advantage=0.5, good_piece=2, good_arm=0)  # δ = .1, ε = .05, A' = 2
    low = [mdp.state_index(f"piece {j} low") for j in range(4)]
    high = [mdp.state_index(f"piece {j} high") for j in range(4)]
    for j in range(4):
        for arm in range(2):
            up = 0.15 if (j, arm) == (2, 0) else 0.1
            expected = {low[j]: 1 - up, high[j]: up}
            assert mdp.transition(low[j], f"arm {arm}") == pytest.approx(expected, rel=0, abs=1e-15)
            expected = {low[j]: 0.1, high[j]: 0.9}
            assert mdp.transition(high[j], f"arm {arm}") == pytest.approx(expected, rel=0, abs=1e-15)
        for a in range(2, 5):
            assert mdp.transition(high[j], a) == {high[j]: 1.0}
        assert mdp.rewards[low[j]].tolist() == [0.0] * 5
        assert mdp.rewards[high[j]].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    moves = [[next(iter(mdp.transition(s, a))) for a in ("to root", "to branch 0", "to branch 1")] for s in low]
    # 0 has the children 1 and 2, 1 has the child 3
    assert moves == [[low[i] for i in line] for line in ([0, 1, 2], [0, 3, 1], [0, 2, 2], [1, 3, 3])]
    assert mdp.start[low[0]] == 1.0


@pytest.mark.parametrize(
    ("D", "A", "k", "advantage"), [(40.0, 5, 4, 0.25), (8.0, 5, 1, 0.9), (20.0, 7, 13, 0.1), (100.0, 9, 20, 0.5)]
)
def test_hard_family_gain_and_diameter(D: float, A: int, k: int, advantage: float) -> None:
    mdp = hard_family(D, A, n_pieces=k, advantage=advantage)
    assert (mdp.n_states, mdp.n_actions, str(gf.structure(mdp))) == (2 * k, A, "communicating")
    expected = (1 + advantage) / (2 + advantage)
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(expected, rel=0, abs=PRECISION)
    assert gf.diameter(mdp) <= D


def test_hard_family_gain_does_not_depend_on_the_place() -> None:
    for piece in range(4):
        for arm in range(2):
            mdp = hard_family(good_piece=piece, good_arm=arm)
            assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(5 / 9, rel=0, abs=PRECISION)


@pytest.mark.parametrize(("D", "A", "k", "expected"), [(40.0, 5, 1, 10.0), (40.0, 7, 4, 22.0), (40.0, 5, 7, 24.0)])
def test_hard_family_diameter_in_closed_form(D: float, A: int, k: int, expected: float) -> None:
    """One piece: 1/δ. Else out of a high state 1/δ, over the tree, up into another high state 1/δ.

    The farthest pieces are two ordinary leaves on different sides of the root (A' = 3 and k = 4: 2 steps apart;
    A' = 2 and k = 7: 4), the good one being the last.
    """
    assert gf.diameter(hard_family(D, A, n_pieces=k)) == pytest.approx(expected, rel=0, abs=1e-6)


def test_the_diameter_grows_with_the_parameter() -> None:
    found = [gf.diameter(hard_family(D)) for D in (40.0, 80.0, 160.0)]
    assert np.diff(found) == pytest.approx([20.0, 40.0], rel=0, abs=1e-5)


# ---------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (server_routing, {"capacity": 0}, "capacity is 0"),
        (server_routing, {"arrival_rate": 0.0}, "arrival_rate is 0.0, expected a finite number above 0"),
        (server_routing, {"second_service_rate": -1.0}, "second_service_rate is -1"),
        (server_routing, {"first_holding_cost": -1.0}, "first_holding_cost is -1"),
        (server_routing, {"loss_cost": float("nan")}, "loss_cost is nan"),
        (weakly_communicating_toy, {"n_transient": 0}, "n_transient is 0"),
        (weakly_communicating_toy, {"start_above": "yes"}, "start_above is 'yes', expected True or False"),
        (hard_family, {"diameter": 7.9}, "diameter is 7.9, expected a finite number of at least 8"),
        (hard_family, {"diameter": 10.0, "n_pieces": 8}, "diameter is 10.0, expected a finite number of at least 12"),
        (hard_family, {"n_actions": 3}, "n_actions is 3, expected an integer of at least 5"),
        (hard_family, {"n_actions": 6}, "n_actions is 6, expected an odd number"),
        (hard_family, {"n_pieces": 0}, "n_pieces is 0"),
        (hard_family, {"advantage": 1.0}, r"advantage is 1.0, expected a number in \(0, 1\)"),
        (hard_family, {"advantage": 0.0}, r"advantage is 0.0, expected a number in \(0, 1\)"),
        (hard_family, {"good_piece": 4}, "good_piece is 4, expected an integer from 0 to 3"),
        (hard_family, {"good_arm": 2}, "good_arm is 2, expected an integer from 0 to 1"),
    ],
)
def test_bad_parameters_are_named(factory: Callable[..., gf.MDP], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        factory(**parameters)
