"""The lower confidence bound on L: against the plain formula, and against environments whose L is known."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.lipschitz_bound import guarantee_after, refuted_smoothness
from gainful.cli.main import run
from gainful.errors import InvalidArgumentError
from gainful.theory.kl import klup


def plain_bound(agent: Any, alpha: float, delta: float) -> float:
    """The same from the definitions: every two cells, every action, every function, by NumPy."""
    part, A, r_max = agent.partition, agent.n_actions, agent.reward_range
    corners = list(itertools.product(*(range(n) for n in part.bins)))
    edges = [(axis, k) for axis, n in enumerate(part.bins) for k in range(1, n)]
    log = math.log(2 * len(corners) * A * (1 + len(edges)) / delta)
    best = 0.0
    for a in range(A):
        seen = []
        for cell in range(len(corners)):
            pair = cell * A + a
            n = int(agent.statistics.visits[pair])
            if n == 0:
                continue
            to, count = agent.statistics.row(pair)
            means = [agent.statistics.reward_sum[pair] / n / r_max]
            means += [sum(c for y, c in zip(to, count, strict=True) if corners[y][i] >= k) / n for i, k in edges]
            radius = (log + 0.5 * math.log(n) + math.log(2)) / n
            seen.append((corners[cell], 1.0 - klup(1.0 - np.array(means), radius), klup(means, radius)))
        for (x, low, _), (y, _, high) in itertools.permutations(seen, 2):
            far = max((abs(i - j) + 1) / n for i, j, n in zip(x, y, part.bins, strict=True))
            gaps = (low - high) * np.where(np.arange(low.size) == 0, 1.0, 2.0) / far**alpha
            best = max(best, float(gaps.max()))
    return best


def walked(bins: list[int], n: int = 4_000) -> Any:
    """An agent that saw rewards and moves which depend on where it was."""
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=bins), 2, reward_max=2.0, lipschitz=0.01, holder=1.0, span=1.0)
    rng = np.random.default_rng(3)
    points, noise = rng.random((n, len(bins))), rng.random((n, len(bins)))
    for x, u in zip(points, noise, strict=True):
        agent.observe(x, int(x[-1] > 0.8), 2.0 * float(u[0] < x[0] ** 2), 0.7 * x + 0.3 * u)
    return agent


@pytest.mark.parametrize(("bins", "alpha"), [([6], 1.0), ([3, 4], 0.5)], ids=["line", "plane"])
def test_the_bound_is_that_of_the_definitions(bins: list[int], alpha: float) -> None:
    agent = walked(bins)
    found = gf.lipschitz_lower_bound(agent, holder=alpha, delta=0.1)
    assert found.lipschitz == pytest.approx(plain_bound(agent, alpha, 0.1), rel=0, abs=1e-7)
    assert found.lipschitz > 0.1


def test_a_refuted_constant_voids_the_guarantee_and_names_the_cells() -> None:
    agent = walked([6])
    found = gf.lipschitz_lower_bound(agent)
    assert agent.guarantee.holds
    assert not guarantee_after(agent).holds
    first, second = found.cells
    assert f"L = 0.01 is refuted by cells {first} and {second}" in refuted_smoothness(agent)
    assert refuted_smoothness(agent) in str(guarantee_after(agent))
    # the sure part: rewards of action 0 are x² in units of r_max, and next states have the density of a width .3
    assert found.lipschitz < 2 * 0.7 / 0.3


def test_nothing_is_shown_by_nothing() -> None:
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=4), 2, span=1.0, lipschitz=0.001, holder=1.0)
    found = gf.lipschitz_lower_bound(agent)
    assert (found.lipschitz, found.cells, str(found)) == (0.0, (), "the data show no lower bound on L")
    assert guarantee_after(agent).holds
    assert guarantee_after(gf.UCRL2(2, 2)) == gf.UCRL2(2, 2).guarantee


def test_end_cells_that_hold_far_points_are_left_out() -> None:
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=2, outside="clip"), 1)
    for _ in range(2_000):
        agent.observe(-50.0, 0, 0.0, -50.0)
        agent.observe(50.0, 0, 1.0, 50.0)
    assert gf.lipschitz_lower_bound(agent).lipschitz == 0.0


@pytest.mark.parametrize(
    ("options", "name"), [({"holder": 0.0}, "holder"), ({"holder": 1.5}, "holder"), ({"delta": 1.0}, "delta")]
)
def test_arguments_out_of_range_are_named(options: dict[str, float], name: str) -> None:
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=2), 1)
    with pytest.raises(InvalidArgumentError) as caught:
        gf.lipschitz_lower_bound(agent, **options)
    assert caught.value.name == name


def test_a_tabular_agent_has_no_cells() -> None:
    with pytest.raises(InvalidArgumentError, match="cells of a partition"):
        gf.lipschitz_lower_bound(gf.UCRL2(2, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lqg", "replacement", "continuous_inventory"])
def test_the_true_constant_is_never_refuted_and_a_tenth_of_it_is(name: str) -> None:
    """Each of 40 runs may fail with probability 0.05 at most; in fact the union over all cells is far from tight."""
    env = getattr(gf.environments, name)()
    assert env.lipschitz is not None
    least = math.inf
    for seed in range(40):
        agent = gf.CKLSCALPlus(
            gf.Partition.uniform(bins=12), env.n_actions, reward_min=env.reward_min, reward_max=env.reward_max
        )
        for _ in range(4):
            gf.simulate(agent, env, 5_000, seed=seed, gain=0.0)
            found = gf.lipschitz_lower_bound(agent, holder=1.0)
            assert not found.refutes(env.lipschitz)
        least = min(least, found.lipschitz)
    assert least > 0.1 * env.lipschitz


@pytest.mark.slow
def test_learn_says_that_the_constant_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    told = ["--agent-set", "lipschitz=1", "--agent-set", "holder=1", "--span", "1.4", "--gain", "0.9"]
    command = ["learn", "lqg", "--bins", "8", "--horizon", "2e4", *told]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lipschitz"]["refuted"]
    assert not found["guarantee_holds"]
    assert "L = 1 is refuted by cells" in found["guarantee"]
    assert run(command) == 0
    assert "L = 1 is refuted by cells" in " ".join(capsys.readouterr().out.split())
