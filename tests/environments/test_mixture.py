"""Mixture environments: constants that are attained, masses of cells, and gains in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.environments.continuous.dispatch import GridPolicy, follow
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import MixtureLaw
from gainful.rng import Role, stream_key

MADE = {
    "rough": gf.environments.rough_mixture(),
    "planar": gf.environments.planar_mixture(),
    "line": gf.environments.rough_mixture(1.0, teeth=3, chance=0.9),
    "rough-plane": gf.environments.planar_mixture(0.3, teeth=2, rest_reward=0.2, chance=0.8),
}


def law_of(env: ContinuousEnvironment) -> MixtureLaw:
    assert env.mixture is not None
    return env.mixture


@pytest.mark.parametrize("name", list(MADE))
def test_no_two_states_differ_by_more_than_the_constants_and_some_by_as_much(name: str) -> None:
    env = MADE[name]
    law, alpha = law_of(env), env.holder
    assert alpha is not None
    generator = np.random.default_rng(1)
    x = generator.random((4000, env.dim))
    y = np.clip(x + generator.choice([1e-6, 1e-3, 0.1, 1.0], (4000, 1)) * generator.uniform(-1, 1, x.shape), 0.0, 1.0)
    half = 0.5 / env.settings["teeth"]
    x[0], y[0] = 0.0, half  # the bottom and the top of a tooth
    apart = np.abs(x - y).max(axis=1) ** alpha
    for action in (0, 1):
        rewards = np.abs(env.rewards(x, action) - env.rewards(y, action))
        laws = 2.0 * np.abs(law.weight(x, action) - law.weight(y, action))  # the two laws have disjoint supports
        for found, constant in ((rewards, env.reward_lipschitz), (laws, env.transition_lipschitz)):
            assert constant is not None
            assert np.all(found <= constant * apart * (1 + 1e-9) + 1e-12)
            if action == 1:
                assert found[0] == pytest.approx(constant * apart[0], rel=1e-12, abs=0)


@pytest.mark.parametrize("name", list(MADE))
def test_masses_of_cells_and_means_over_them(name: str) -> None:
    """Against sums over the middles of many small cells; 11 cells do not fit the teeth."""
    env = MADE[name]
    law, n, d, fine = law_of(env), 11, env.dim, 4000 if env.dim == 1 else 60
    found = law.masses([np.arange(n + 1) / n] * d)
    axis = (np.arange(n * fine) + 0.5) / (n * fine)
    points = np.stack([g.reshape(-1) for g in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)
    good, cells = law.level(points) > 0.5, gf.Partition.uniform(bins=n, dim=d).index_many(points)
    for part, chosen in ((0, ~good), (1, good)):
        wanted = np.bincount(cells[chosen], minlength=n**d) / len(points) * 2.0
        assert found[part] == pytest.approx(wanted, rel=0, abs=3.0 / (n * fine) / n ** (d - 1))
        assert found[part].sum() == pytest.approx(1.0, rel=0, abs=1e-12)
    solved = law.solution
    low, high = np.full(d, 2 / n), np.full(d, 3 / n)
    mean = float(solved.bias(points[cells == np.ravel_multi_index((2,) * d, (n,) * d)]).mean())
    assert solved.mean_between(low, high) == pytest.approx(mean, rel=0, abs=2e-4)


@pytest.mark.parametrize("name", ["rough", "rough-plane"])
def test_steps_have_the_law(name: str) -> None:
    """Frequencies of 2,000 steps from a point: each within 5 standard deviations."""
    env, n = MADE[name], 2_000
    law, part = law_of(env), gf.Partition.uniform(bins=3, dim=env.dim)
    masses = law.masses([np.arange(4) / 3] * env.dim)
    for action, x in ((0, 0.2), (1, 0.37)):
        w = float(law.weight(np.full((1, env.dim), x), action)[0])
        p = masses[0] + w * (masses[1] - masses[0])
        to = [env.step(t, np.full(env.dim, x), action, seed=2)[1] for t in range(n)]
        seen = np.bincount(part.index_many(np.array(to)), minlength=p.size) / n
        assert np.all(np.abs(seen - p) <= 5.0 * np.sqrt(p * (1.0 - p) / n))


@pytest.mark.parametrize("name", list(MADE))
def test_the_bias_solves_the_optimality_equation(name: str) -> None:
    """Expectations under the two laws by the middles of many cells, the equation at random points."""
    env = MADE[name]
    solved, d = law_of(env).solution, env.dim
    fine = 200_003 if d == 1 else 701  # no middle lies between the two laws
    axis = (np.arange(fine) + 0.5) / fine
    points = np.stack([g.reshape(-1) for g in np.meshgrid(*[axis] * d, indexing="ij")], axis=1)
    good, h = law_of(env).level(points) > 0.5, solved.bias(points)
    at_0, at_1 = float(h[~good].mean()), float(h[good].mean())
    x = np.random.default_rng(3).random((500, d))
    q = [env.rewards(x, a) + at_0 + law_of(env).weight(x, a) * (at_1 - at_0) for a in (0, 1)]
    assert np.max(q, axis=0) - solved.bias(x) == pytest.approx(np.full(500, solved.gain), rel=0, abs=2e-4)
    assert solved.expected(x, 1) == pytest.approx(q[1] - env.rewards(x, 1), rel=0, abs=2e-4)
    clear = np.abs(q[1] - q[0]) > 1e-3
    assert np.array_equal((q[1] > q[0])[clear], (law_of(env).level(x) > solved.threshold)[clear])
    assert solved.bounds[0] < solved.gain < solved.bounds[1] < solved.bounds[0] + 1e-11
    assert solved.span == pytest.approx(float(np.ptp(h)), rel=0, abs=0.01)


@pytest.mark.parametrize("kappa", [0.1, 0.5, 0.99])
@pytest.mark.parametrize(("make", "means"), [("rough_mixture", (0.25, 0.75)), ("planar_mixture", (1 / 3, 2 / 3))])
def test_gains_by_hand(make: str, means: tuple[float, float], kappa: float) -> None:
    """With ρ = 0 work is always best: Δ = (1 - κΔ)·(E₁u - E₀u). With ρ = 1 rest is."""
    factory: Any = getattr(gf.environments, make)
    low, high = means
    difference = (high - low) / (1 + kappa * (high - low))
    solved = law_of(factory(1.0, rest_reward=0.0, chance=kappa)).solution
    assert solved.difference == pytest.approx(difference, rel=0, abs=1e-12)
    assert solved.gain == pytest.approx(kappa * difference + (1 - kappa * difference) * low, rel=0, abs=1e-12)
    assert solved.threshold == 0.0
    lazy = law_of(factory(0.5, rest_reward=1.0, chance=kappa)).solution
    assert lazy.gain == pytest.approx(1.0, rel=0, abs=1e-12)
    assert (lazy.span, lazy.threshold) == (0.0, 1.0)


@pytest.mark.parametrize("name", list(MADE))
def test_the_oracles_policy_earns_the_gain(name: str) -> None:
    """Four standard errors of 40 batch means, the seed fixed; a policy on cells loses less than a standard error."""
    env = MADE[name]
    found = gf.environments.oracle_gain(env, bins=200)
    assert found.certified
    assert found.method == "closed form"
    sums, horizon = np.zeros(41), 41 * 5_000
    policy = GridPolicy(found.actions, np.array(found.partition.bins))
    follow(env.kind, env.parameters, env.start.copy(), policy, stream_key(1, Role.ENVIRONMENT), 0, horizon, sums)
    means = sums[1:] / 5_000
    error = float(means.std(ddof=1)) / math.sqrt(40)
    assert means.mean() == pytest.approx(found.gain, rel=0, abs=4 * error)
    assert error < 2e-3
