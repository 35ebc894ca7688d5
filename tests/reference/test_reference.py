"""The compiled agents make the same runs as those in dense NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.reference import (
    DenseCSCALPlus,
    DenseSCALPlus,
    DenseSharpSCALPlus,
    DenseUCRL2B,
    DoublingEpisodes,
    best_rows,
    dense_scopt,
)
from gainful.simulation.transition_table import TabularStepper

PROBLEMS: dict[str, Any] = {
    "riverswim": lambda: gf.environments.riverswim(6),
    "toy": lambda: gf.environments.toy3d(0.1).restricted([0, 1, 2]),
    "garnet": lambda: gf.environments.garnet(12, 3, 4),
    "bernoulli": lambda: gf.MDP(*gf.environments.riverswim(4).to_dense(), reward_law="bernoulli"),
}


def assert_same_run(fast: EpisodicAgent, slow: DoublingEpisodes, mdp: gf.MDP, horizon: int, seed: int = 4) -> None:
    """Simulate the compiled agent, step the dense one through the same world, compare all that they have seen."""
    run = gf.simulate(fast, mdp, horizon, seed=seed)
    world = TabularStepper(mdp, seed)
    state, total = world.first_state, 0.0
    for t in range(horizon):
        action = slow.act(state)
        reward, to = world.step(t, state, action)
        slow.observe(state, action, reward - mdp.reward_min, to)
        state, total = to, total + reward
    assert state == run.final_state
    assert slow.t_k == run.episodes["step"].tolist()
    assert total == pytest.approx(run.rewards[-1], rel=0, abs=1e-9)
    assert np.array_equal(slow.N.sum(axis=2).reshape(-1), fast.statistics.visits)
    for k in range(mdp.n_states * mdp.n_actions):
        states, counts = fast.statistics.row(k)
        row = slow.N[divmod(k, mdp.n_actions)]
        assert np.array_equal(np.flatnonzero(row), states)
        assert np.array_equal(row[states], counts)


@pytest.mark.parametrize("scale", [1.0, 0.2, 0.03])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_scal_plus_makes_the_same_run_as_the_dense_one(problem: str, scale: float) -> None:
    mdp = PROBLEMS[problem]()
    low, high, S, A = mdp.reward_min, mdp.reward_max, mdp.n_states, mdp.n_actions
    fast = gf.SCALPlus(
        S, A, span=3.0, reward_min=low, reward_max=high, bonus_scale=scale, allowed=mdp.allowed, replanning="full"
    )
    slow = DenseSCALPlus(S, A, 3.0, high - low, 0.05, scale, mdp.allowed)
    assert_same_run(fast, slow, mdp, 1500)


@pytest.mark.parametrize("scale", [1.0, 0.2])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_sharp_scal_plus_makes_the_same_run_as_the_dense_one(problem: str, scale: float) -> None:
    mdp = PROBLEMS[problem]()
    low, high, S, A = mdp.reward_min, mdp.reward_max, mdp.n_states, mdp.n_actions
    given: dict[str, Any] = {"reward_min": low, "reward_max": high, "allowed": mdp.allowed, "bonus": "sharp"}
    fast = gf.SCALPlus(S, A, span=3.0, bonus_scale=scale, replanning="full", **given)
    slow = DenseSharpSCALPlus(S, A, 3.0, high - low, 0.05, scale, mdp.allowed)
    assert_same_run(fast, slow, mdp, 1500)


@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_ucrl2b_makes_the_same_run_as_the_dense_one(problem: str, scale: float) -> None:
    mdp = PROBLEMS[problem]()
    low, high, S, A = mdp.reward_min, mdp.reward_max, mdp.n_states, mdp.n_actions
    fast = gf.UCRL2B(S, A, reward_min=low, reward_max=high, width_scale=scale, allowed=mdp.allowed)
    slow = DenseUCRL2B(S, A, high - low, 0.05, scale, mdp.allowed)
    assert_same_run(fast, slow, mdp, 600)


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_c_scal_plus_makes_the_same_run_as_the_dense_one(scale: float) -> None:
    n, A = 7, 2
    fast = gf.CSCALPlus(
        partition=gf.Partition.uniform(bins=n), n_actions=A, span=1.9, lipschitz=1.5, holder=0.5, bonus_scale=scale
    )
    slow = DenseCSCALPlus(n, A, 1.9, 1.5, 0.5, scale=scale)
    rng = np.random.default_rng(1)
    x = 0.5
    for _ in range(1500):
        action = fast.act(x)
        assert slow.act_at(x) == action
        to = float(np.clip(x + 0.2 * rng.random() - 0.15 + 0.15 * action, 0.0, 1.0))
        fast.observe(x, action, x, to)
        slow.observe_at(x, action, x, to)
        x = to
    assert slow.t_k == fast.episodes["step"].tolist()


def test_sharp_c_scal_plus_plans_like_the_dense_sharp_scal_plus_on_cells() -> None:
    n, A, c, L, alpha = 7, 2, 1.9, 1.5, 0.5
    cells = gf.Partition.uniform(bins=n)
    fast = gf.CSCALPlus(partition=cells, n_actions=A, span=c, lipschitz=L, holder=alpha, bonus="sharp")
    slow = DenseSharpSCALPlus(n, A, c, holder_term=(c + 1.0) * L * n**-alpha)
    rng = np.random.default_rng(1)
    x = 0.5
    for _ in range(1500):
        action = fast.act(x)
        assert slow.act(cells.index(x)) == action
        to = float(np.clip(x + 0.2 * rng.random() - 0.15 + 0.15 * action, 0.0, 1.0))
        fast.observe(x, action, x, to)
        slow.observe(cells.index(x), action, x, cells.index(to))
        x = to
    assert slow.t_k == fast.episodes["step"].tolist()


@pytest.mark.parametrize("instance", range(4))
@pytest.mark.parametrize("c", [0.05, 0.3, 5.0])
def test_scopt_brackets_the_gain_of_the_dense_one(c: float, instance: int) -> None:
    mdp = gf.environments.garnet(20, 3, 8, instance=instance)
    P, R = mdp.to_dense()
    v, pi, (low, high) = dense_scopt(P, R, c, 1e-9)
    assert high - low <= 1e-9
    assert np.ptp(v) <= c + 1e-12
    found = gf.scopt(mdp, c, precision=1e-9, augmented=True)
    assert found.gain == pytest.approx((low + high) / 2, rel=0, abs=2e-9)
    assert np.array_equal(found.policy.argmax(axis=1), pi)


def test_the_best_row_between_bounds_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    mdp = gf.environments.garnet(8, 2, 8)
    P = mdp.to_dense()[0]
    lower, upper, v = np.maximum(P - 0.1, 0), np.minimum(P + 0.1, 1), rng.random(8)
    p = best_rows(lower, upper, v)
    np.testing.assert_allclose(p.sum(axis=2), 1.0, rtol=0, atol=1e-14)
    assert np.all((lower - 1e-15 <= p) & (p <= upper + 1e-15))
    inside = np.sum((p > lower + 1e-12) & (p < upper - 1e-12), axis=2)
    assert np.all(inside <= 1)  # a vertex
    for s, a in np.ndindex(
        8, 2
    ):  # no state has less than its upper bound while one of smaller v has more than its lower
        filled, emptied = v[p[s, a] < upper[s, a] - 1e-12], v[p[s, a] > lower[s, a] + 1e-12]
        assert not filled.size or not emptied.size or filled.max() <= emptied.min() + 1e-12
