"""The environments: structure, dynamics, parameters, and that each one builds and solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.environments import (
    access_control_queue,
    admission_control,
    garnet,
    inventory_control,
    machine_replacement,
    make,
    names,
    riverswim,
    riverswim_bourel,
    riverswim_ergodic,
    riverswim_maillard,
    six_arms,
    toy3d,
    two_state_toy,
)
from gainful.errors import InvalidArgumentError


@pytest.mark.parametrize("name", names())
def test_every_environment_builds_with_defaults_and_solves(name: str) -> None:
    mdp = make(name)
    assert mdp.name == name
    assert str(gf.structure(mdp)) in ("communicating", "unichain", "weakly communicating")
    plan = gf.solve(mdp, precision=1e-7)
    low, high = plan.gain_bounds
    assert low <= plan.gain <= high
    assert high - low <= 1e-7


@pytest.mark.parametrize("name", [n for n in names() if n != "garnet"])
def test_states_and_actions_have_labels(name: str) -> None:
    mdp = make(name)
    assert mdp.state_labels is not None
    assert mdp.action_labels is not None


@pytest.mark.parametrize("name", names())
def test_the_same_parameters_give_the_same_bits(name: str) -> None:
    assert make(name) == make(name)


# ---------------------------------------------------------------------- RiverSwim


def test_riverswim_rows() -> None:
    mdp = riverswim(6)
    assert mdp.transition("left bank", "right") == {0: 0.4, 1: 0.6}
    assert mdp.transition(2, "right") == {1: 0.05, 2: 0.6, 3: 0.35}
    assert mdp.transition("right bank", "right") == {4: 0.4, 5: 0.6}
    assert mdp.transition(3, "left") == {2: 1.0}
    assert mdp.rewards[0].tolist() == [0.005, 0.0]
    assert mdp.rewards[5].tolist() == [0.0, 1.0]
    assert np.count_nonzero(mdp.rewards) == 2


def test_maillard_rows() -> None:
    mdp = riverswim_maillard(6)
    assert mdp.transition(0, "right") == pytest.approx({0: 0.4, 1: 0.6}, rel=0, abs=1e-15)
    assert mdp.transition(5, "right") == pytest.approx({4: 0.05, 5: 0.95}, rel=0, abs=1e-15)
    assert mdp.rewards[0].tolist() == [0.1, 0.0]


def test_bourel_rows() -> None:
    mdp = riverswim_bourel(6)
    assert mdp.transition(0, "right") == pytest.approx({0: 0.6, 1: 0.4}, rel=0, abs=1e-15)
    assert mdp.transition(3, "right") == pytest.approx({2: 0.05, 3: 0.55, 4: 0.4}, rel=0, abs=1e-15)
    assert mdp.transition(5, "right") == pytest.approx({4: 0.05, 5: 0.95}, rel=0, abs=1e-15)
    assert mdp.transition(3, "left") == {2: 1.0}
    assert mdp.rewards[0].tolist() == [0.05, 0.0]
    assert mdp.rewards[5].tolist() == [0.0, 1.0]


def test_ergodic_riverswim_leaves_no_state_for_good() -> None:
    mdp = riverswim_ergodic(5, left_success=0.8)
    assert mdp.transition(2, "left") == pytest.approx({1: 0.8, 3: 0.2}, rel=0, abs=1e-15)
    assert mdp.transition(4, "left") == pytest.approx({3: 0.8, 4: 0.2}, rel=0, abs=1e-15)
    for actions in np.ndindex(*(2,) * 5):  # every policy has one class: all states
        assert gf.evaluate(mdp, np.array(actions)).stationary.min() > 0.0


@pytest.mark.parametrize("factory", [riverswim, riverswim_bourel, riverswim_maillard, riverswim_ergodic])
def test_riverswim_with_bernoulli_rewards_has_the_same_gain(factory: Callable[..., gf.MDP]) -> None:
    noisy = factory(6, reward_law="bernoulli")
    assert noisy.reward_law == "bernoulli"
    expected = gf.solve(factory(6), precision=1e-9).gain
    assert gf.solve(noisy, precision=1e-9).gain == pytest.approx(expected, rel=0, abs=1e-9)


# ---------------------------------------------------------------------- toys


def test_toy3d_without_delta_has_a_state_out_of_reach() -> None:
    mdp = toy3d(0.0)
    assert str(gf.structure(mdp)) == "unichain"
    assert gf.diameter(mdp) == np.inf
    assert gf.solve(mdp, precision=1e-9).gain == pytest.approx(2 / 3, rel=0, abs=1e-9)
    assert str(gf.structure(toy3d(0.1))) == "communicating"


def test_toy3d_has_one_action_in_two_states() -> None:
    assert toy3d(0.1).allowed.tolist() == [[True, False], [True, False], [True, True]]


def test_two_state_toy_without_constraint() -> None:
    plan = gf.solve(two_state_toy(), precision=1e-9)
    assert plan.gain == pytest.approx(1.0, rel=0, abs=1e-9)
    assert [plan.action(s) for s in ("s0", "s1")] == ["go", "stay"]
    assert gf.diameter(two_state_toy()) == pytest.approx(1.0, rel=0, abs=1e-9)


def test_six_arms_rooms() -> None:
    mdp = six_arms()
    assert mdp.transition("hall", "arm 6") == {0: 0.99, 6: 0.01}
    assert [a for a in range(6) if mdp.transition("room 1", a) == {0: 1.0}] == [4]
    assert mdp.rewards[1].tolist() == [50.0, 50.0, 50.0, 50.0, 0.0, 50.0]
    for room in range(2, 7):
        stays = [a for a in range(6) if mdp.transition(room, a) == {room: 1.0}]
        assert stays == [room - 1]
        assert np.flatnonzero(mdp.rewards[room]).tolist() == stays


# ---------------------------------------------------------------------- Garnet


@pytest.mark.parametrize(("S", "A", "b"), [(50, 2, 3), (20, 3, 20), (30, 2, 25), (10, 4, 1), (1, 2, 1)])
def test_garnet_has_exactly_b_distinct_next_states(S: int, A: int, b: int) -> None:
    mdp = garnet(S, A, b, instance=3)
    assert mdp.n_transitions == S * A * b
    rows = mdp.indices.reshape(S * A, b).astype(int)
    assert (np.diff(rows, axis=1) > 0).all()
    assert mdp.probabilities.reshape(S * A, b).sum(axis=1) == pytest.approx(1.0, rel=0, abs=1e-12)
    assert mdp.rewards.min() >= 0.0
    assert mdp.rewards.max() <= 1.0


@pytest.mark.parametrize(("S", "b"), [(40, 4), (40, 30)], ids=["Floyd", "random keys"])
def test_garnet_next_states_and_probabilities_are_uniform(S: int, b: int) -> None:
    mdp = garnet(S, 500, b, instance=1)
    n = S * 500
    # each next state appears in a row with probability b/S; the mean of a spacing is 1/b; five standard deviations
    counts = np.bincount(mdp.indices, minlength=S)
    q = b / S
    assert np.abs(counts - n * q).max() <= 5 * np.sqrt(n * q * (1 - q))
    spacings = mdp.probabilities.reshape(n, b)
    sd = np.sqrt((b - 1) / (b * b * (b + 1)))  # of one spacing: Beta(1, b-1)
    assert np.abs(spacings.mean(axis=0) - 1 / b).max() <= 5 * sd / np.sqrt(n)
    assert spacings[:, 0].std() == pytest.approx(sd, rel=0.05, abs=0)


def test_garnet_instances_differ_and_repeat() -> None:
    assert garnet(30, 2, 4, instance=5) == garnet(30, 2, 4, instance=5)
    assert garnet(30, 2, 4, instance=5) != garnet(30, 2, 4, instance=6)


def test_garnet_of_the_authors_study() -> None:
    mdp = garnet(200, 3, 144, instance=0, rewards="states", n_rewarded=10, reset_probability=0.01)
    P, R = mdp.to_dense()
    assert P[:, :, 0].min() >= 0.01
    assert mdp.max_support in (144, 145)
    assert sorted(R[:, 0])[-10:] == [1.0] * 10
    assert R.sum() == 30.0


def test_a_large_garnet_has_all_its_transitions() -> None:
    mdp = garnet(100_000, 4, 8)
    assert mdp.n_transitions == 3_200_000


# ---------------------------------------------------------------------- operations research


def test_access_control_rows() -> None:
    mdp = access_control_queue(2, priorities=(1, 3), free_probability=0.25)
    # one server free, accept: both busy, so 0, 1, 2 become free with 9/16, 6/16, 1/16; then a priority at random
    row = mdp.transition("1 free, priority 3", "accept")
    assert row == pytest.approx({0: 9 / 32, 1: 9 / 32, 2: 6 / 32, 3: 6 / 32, 4: 1 / 32, 5: 1 / 32}, rel=0, abs=1e-15)
    assert mdp.transition("2 free, priority 1", "reject") == pytest.approx({4: 0.5, 5: 0.5}, rel=0, abs=1e-15)
    assert not mdp.allowed[:2, 1].any()
    assert mdp.rewards[5].tolist() == [0.0, 3.0]
    assert mdp.start.tolist() == [0, 0, 0, 0, 0.5, 0.5]


def test_access_control_is_scale_free_in_its_pay() -> None:
    once = gf.solve(access_control_queue(4), precision=1e-9).gain
    twice = gf.solve(access_control_queue(4, priorities=(2, 4, 8, 16)), precision=1e-9).gain
    assert twice == pytest.approx(2 * once, rel=0, abs=3e-9)


def test_admission_control_answers_per_unit_of_time() -> None:
    slow = gf.solve(admission_control(8), precision=1e-9).gain
    fast = admission_control(8, arrival_rate=8.0, service_rate=10.0, holding_cost=10.0)
    assert gf.solve(fast, precision=1e-8).gain == pytest.approx(10 * slow, rel=0, abs=2e-8)


def test_admission_control_cannot_exceed_its_capacity() -> None:
    mdp = admission_control(3)
    assert not mdp.allowed[3, 1]
    assert mdp.n_states == 4


def test_machine_replacement_must_replace_at_the_end() -> None:
    mdp = machine_replacement(4)
    assert mdp.allowed[:, 0].tolist() == [True, True, True, False]
    assert mdp.units.objective == "cost"
    assert gf.solve(machine_replacement(), precision=1e-9).gain == pytest.approx(35 / 16, rel=0, abs=1e-9)


def test_inventory_rows_and_costs() -> None:
    mdp = inventory_control(3, demand=[0.5, 0.25, 0.25], order_cost=4, unit_cost=2, holding_cost=1, lost_sale_cost=8)
    assert mdp.transition("stock 1", "order 1") == pytest.approx({0: 0.25, 1: 0.25, 2: 0.5}, rel=0, abs=1e-15)
    assert mdp.transition("stock 1", "order 0") == pytest.approx({0: 0.5, 1: 0.5}, rel=0, abs=1e-15)
    assert mdp.allowed.sum(axis=1).tolist() == [4, 3, 2, 1]
    costs = mdp.units.reward(mdp.pair_rewards).reshape(4, 4)
    assert costs[1, 1] == pytest.approx(4 + 2 + 1 * (0.5 * 2 + 0.25 * 1), rel=0, abs=1e-12)
    assert costs[1, 0] == pytest.approx(1 * 0.5 + 8 * 0.25, rel=0, abs=1e-12)


def test_poisson_demand_equals_the_given_distribution() -> None:
    mean, n = 2.5, 60
    law = [float(np.exp(-mean))]
    for d in range(1, n):
        law.append(law[-1] * mean / d)
    given = gf.solve(inventory_control(8, demand=law), precision=1e-9).gain
    assert gf.solve(inventory_control(8, mean_demand=mean), precision=1e-9).gain == pytest.approx(
        given, rel=0, abs=3e-9
    )


def test_a_fixed_order_cost_gives_an_s_S_rule() -> None:
    plan = gf.solve(inventory_control(), precision=1e-8)
    assert plan.actions is not None
    orders = plan.actions
    low = int(np.flatnonzero(orders).max())
    assert (orders[: low + 1] > 0).all()
    assert not orders[low + 1 :].any()
    assert len({int(s + orders[s]) for s in range(low + 1)}) == 1  # all up to the same level


# ---------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (riverswim, {"n_states": 1}, "n_states is 1, expected an integer of at least 2"),
        (riverswim, {"n_states": 6.0}, "n_states is 6.0, expected an integer"),
        (riverswim, {"n_states": True}, "n_states is True"),
        (
            riverswim,
            {"reward_law": "gaussian"},
            "reward_law is 'gaussian', expected one of 'deterministic', 'bernoulli'",
        ),
        (riverswim_maillard, {"n_states": "six"}, "n_states is 'six'"),
        (riverswim_ergodic, {"left_success": 1.0}, r"left_success is 1.0, expected a number in \(0, 1\)"),
        (toy3d, {"delta": 1.0}, r"delta is 1.0, expected a number in \[0, 1\)"),
        (toy3d, {"delta": float("nan")}, "delta is nan"),
        (garnet, {"n_states": 5, "branching": 6}, "branching is 6, expected an integer from 1 to 5"),
        (garnet, {"rewards": "gaussian"}, "rewards is 'gaussian'"),
        (garnet, {"instance": -1}, "instance is -1"),
        (garnet, {"rewards": "states", "n_rewarded": 1000}, "n_rewarded is 1000"),
        (garnet, {"reset_probability": 1.5}, "reset_probability is 1.5"),
        (machine_replacement, {"wear_probability": 0.0}, r"wear_probability is 0.0, expected a number in \(0, 1\]"),
        (
            machine_replacement,
            {"replacement_cost": -1},
            "replacement_cost is -1.0, expected a finite number of at least 0",
        ),
        (access_control_queue, {"n_servers": 0}, "n_servers is 0"),
        (access_control_queue, {"priorities": ()}, "priorities has 0 entries"),
        (access_control_queue, {"priorities": 4}, "priorities is 4, expected a sequence"),
        (access_control_queue, {"priorities": (1, 1)}, "expected distinct numbers"),
        (access_control_queue, {"priorities": (1, "x")}, r"priorities\[1\] is 'x'"),
        (admission_control, {"arrival_rate": 0}, "arrival_rate is 0.0, expected a finite number above 0"),
        (admission_control, {"reward": float("inf")}, "reward is inf"),
        (inventory_control, {"capacity": 0}, "capacity is 0"),
        (inventory_control, {"mean_demand": -2.0}, "mean_demand is -2"),
        (inventory_control, {"demand": [0.5, 0.4]}, "demand sums to 0.9"),
        (inventory_control, {"demand": [1.5, -0.5]}, "smallest entry -0.5"),
        (inventory_control, {"demand": [1.0]}, "demand is always 0"),
    ],
)
def test_bad_parameters_are_named(factory: Callable[..., gf.MDP], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        factory(**parameters)
