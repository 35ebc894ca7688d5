"""Optimal gains of continuous environments: closed forms, agreement of grids, proofs, and simulation."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.environments import OracleGain, make_continuous, oracle_gain
from gainful.environments.continuous.dispatch import GridPolicy, follow
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.oracle import interpolation_rows, least_between
from gainful.errors import InvalidArgumentError
from gainful.rng import Role, stream_key

ON_AN_INTERVAL = ["continuous-inventory", "continuous-riverswim", "lqg", "replacement"]
GAINS = {"continuous-inventory": 3.975094, "continuous-riverswim": 0.410511, "lqg": 0.908260, "replacement": 0.536675}


@lru_cache
def oracle(name: str, bins: int) -> OracleGain:
    return oracle_gain(make_continuous(name), bins)


def inside(found: OracleGain, value: float) -> bool:
    assert found.bounds is not None
    return found.bounds[0] <= value <= found.bounds[1]


@pytest.mark.parametrize("name", ON_AN_INTERVAL)
def test_grids_agree_within_their_proofs_and_bounds_are_second_order(name: str) -> None:
    coarse, fine = oracle(name, 75), oracle(name, 150)
    assert coarse.bounds is not None
    assert fine.bounds is not None
    assert fine.certified
    assert inside(fine, fine.gain)
    assert inside(coarse, fine.gain)
    assert max(coarse.bounds[0], fine.bounds[0]) <= min(coarse.bounds[1], fine.bounds[1])
    assert fine.bounds[1] - fine.bounds[0] <= 0.35 * (coarse.bounds[1] - coarse.bounds[0])
    assert inside(fine, GAINS[name])
    assert fine.error < 0.1 * (fine.bounds[1] - fine.bounds[0]) + 1e-4
    assert abs(fine.gain - GAINS[name]) <= fine.error
    assert fine.partition.n_cells == fine.actions.size == 300


@pytest.mark.parametrize(("mean_wear", "cost"), [(0.1, 1.0), (0.1, 0.0), (0.05, 3.0), (0.3, 1.5)])
def test_replacement_has_its_closed_form(mean_wear: float, cost: float) -> None:
    rate = 1 / mean_wear
    limit = (math.sqrt(4 + 2 * rate * (1 + cost)) - 2) / rate
    assert limit <= 1.0
    found = oracle_gain(gf.environments.replacement(mean_wear, replacement_cost=cost), bins=100)
    assert inside(found, 1 - limit)
    assert found.gain == pytest.approx(1 - limit, rel=0, abs=2 * found.error + 1e-6)
    switch = found.partition.edges()[1:][np.flatnonzero(np.diff(found.actions))]
    assert switch == pytest.approx([limit], rel=0, abs=2 * found.partition.side)


def test_lqg_approaches_riccatis_gain_from_below_as_controls_get_finer() -> None:
    """Box and controls so wide that clipping is out of reach (6 deviations and more): average cost P·noise².

    Playing u instead of the best u* costs (½ + P)(u - u*)², so controls Δ apart lose about (½ + P)Δ²/12.
    """
    P, c = (1 + math.sqrt(5)) / 4, 0.5 * 4.0**2 + 0.5 * 2.0**2
    closed = 1 - P * 0.25 / c
    losses = []
    for n_actions in (5, 9, 17, 33):
        found = oracle_gain(gf.environments.lqg(n_actions, bound=4.0, max_control=2.0), bins=100)
        assert found.bounds is not None
        assert found.bounds[0] <= closed
        losses.append(closed - found.gain)
        spacing = 4.0 / (n_actions - 1)
        expected = (0.5 + P) * spacing**2 / 12 / c
        assert losses[-1] == pytest.approx(expected, rel=0.3, abs=2 * found.error)
    assert losses[0] > losses[1] > losses[2] > losses[3] > 0.0


def test_filling_the_tank_every_period_has_its_renewal_gain() -> None:
    """With orders that cost nothing extra and holding for free, filling up is optimal: each period faces `capacity`."""
    env = gf.environments.continuous_inventory(2, order_cost=0.0, holding_cost=0.0, unit_cost=1.0, price=4.0)
    sold = 2.0 * (1 - math.exp(-5.0))
    found = oracle_gain(env, bins=100)
    assert inside(found, 3.0 * sold)
    assert found.gain == pytest.approx(3.0 * sold, rel=0, abs=2 * found.error + 1e-6)


def residual_range(env: ContinuousEnvironment, found: OracleGain, nodes: int, points: int) -> tuple[float, float]:
    """min and max of (Lh - h) at many points for the piecewise linear bias of a grid: an independent evaluation."""
    z = np.arange(nodes + 1) / nodes
    rows = [interpolation_rows(env, z, a) for a in range(env.n_actions)]
    rewards = np.stack([env.rewards(z, a) for a in range(env.n_actions)], axis=1)
    v = gf.solve(gf.MDP(rows, rewards), precision=1e-8, start_values=None).bias
    x = np.linspace(0.0, 1.0, points)
    middle = (np.arange(40 * nodes) + 0.5) / (40 * nodes)  # E h(X') by cells forty times smaller
    edges = np.arange(40 * nodes + 1)[None, :] / (40 * nodes)
    q = []
    for a in range(env.n_actions):
        assert env.law is not None
        cdf = np.array(np.broadcast_to(env.law(x[:, None], a, edges)[0], (points, 40 * nodes + 1)))
        ends = cdf[:, 0] * v[0] + (1 - cdf[:, -1]) * v[-1]
        q.append(env.rewards(x, a) + np.diff(cdf, axis=1) @ np.interp(middle, z, v) + ends)
    residual = np.max(q, axis=0) - np.interp(x, z, v)
    return float(residual.min()), float(residual.max())


@pytest.mark.parametrize("name", ["lqg", "replacement", "continuous-inventory"])
def test_the_bracket_of_the_continuous_operator_holds_the_gain(name: str) -> None:
    """min (Lh - h) ≤ g* ≤ max (Lh - h) for any h, with L evaluated by another quadrature, at points off the grid."""
    env = make_continuous(name)
    low, high = residual_range(env, oracle(name, 150), nodes=60, points=701)
    assert low - 1e-4 <= GAINS[name] <= high + 1e-4
    assert high - low < 0.02 * env.reward_range


@pytest.mark.parametrize("name", ON_AN_INTERVAL)
def test_rows_are_the_expectation_of_interpolated_functions(name: str) -> None:
    env = make_continuous(name)
    nodes = np.unique(np.concatenate([np.arange(61) / 60, [0.1234, 0.777]]))
    h = np.sin(7 * nodes) + nodes
    key = stream_key(6, Role.ENVIRONMENT)
    for action in range(env.n_actions):
        rows = interpolation_rows(env, nodes, action)
        assert rows.sum(axis=1) == pytest.approx(np.ones(nodes.size), rel=0, abs=1e-12)
        assert rows.data.min() > 0.0
        for i in (0, 31, nodes.size - 1):
            seen = np.interp([env.step(t, [nodes[i]], action, key=key)[1][0] for t in range(1500)], nodes, h)
            expected = float((rows @ h)[i])
            assert np.mean(seen) == pytest.approx(expected, rel=0, abs=4.5 * np.std(seen) / math.sqrt(1500) + 1e-12)


def test_the_least_of_a_maximum_of_lines() -> None:
    lines = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4], [1.0, 0.5, 2.0]])  # cross at ½; then lines over [1, 0, .4]
    t = np.linspace(0, 1, 100_001)[:, None]
    wanted = [((1 - t) * lines[j] + t * lines[j + 1]).max(axis=1).min() for j in (0, 1)]
    assert least_between(lines) == pytest.approx(wanted, rel=0, abs=1e-5)


def batch_means(env: ContinuousEnvironment, found: OracleGain, horizon: int, seed: int) -> tuple[float, float]:
    """The mean reward of the oracle's policy and its standard error from 40 batches, the first left out."""
    sums = np.zeros(41)
    bins: NDArray[Any] = np.array(found.partition.bins)
    follow(
        env.kind,
        env.parameters,
        env.start.copy(),
        GridPolicy(found.actions, bins),
        stream_key(seed, Role.ENVIRONMENT),
        0,
        horizon,
        sums,
    )
    means = sums[1:] / (horizon / 41)
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(40))


@pytest.mark.parametrize("name", ON_AN_INTERVAL)
def test_the_oracles_policy_earns_its_gain(name: str) -> None:
    """Four standard errors of batch means (t law with 39 degrees of freedom: one failure in 3600), seed fixed."""
    found = oracle(name, 150)
    mean, error = batch_means(make_continuous(name), found, 41 * 25_000, seed=1)
    assert found.bounds is not None
    assert error < 0.01 * make_continuous(name).reward_range
    assert mean == pytest.approx(GAINS[name], rel=0, abs=4 * error + 1e-4 * make_continuous(name).reward_range)


def test_the_mountain_car_is_an_estimate_that_its_policy_confirms() -> None:
    env = gf.environments.mountain_car()
    found = oracle_gain(env, bins=40)
    assert found.bounds is None
    assert not found.certified
    assert "an estimate" in repr(found)
    mean, error = batch_means(env, found, 41 * 25_000, seed=2)
    assert mean == pytest.approx(found.gain, rel=0, abs=2 * found.error + 4 * error)
    assert 0.0090 < found.gain < 0.0100
    assert found.action(env.to_unit([-0.5, 0.05])) == 2
    assert found.action(env.to_unit([-0.5, -0.05])) == 0


def test_what_has_no_oracle_says_why() -> None:
    with pytest.raises(InvalidArgumentError, match="ship-steering has no oracle: it has 3 dimensions"):
        oracle_gain(gf.environments.ship_steering())

    def still(x: Any, action: int, uniforms: Any, out: Any) -> float:
        out[0] = x[0]
        return 0.0

    own = gf.environments.ContinuousEnvironment.from_function(still, dim=1, n_actions=1, name="still")
    with pytest.raises(InvalidArgumentError, match="still has no oracle: the law of its steps is unknown"):
        oracle_gain(own)
    with pytest.raises(InvalidArgumentError, match="bins is 2"):
        oracle_gain(gf.environments.lqg(), bins=2)
