"""KL-SCAL+ on adaptive cells: its trees, forced uniform cells, files, and what the arguments do."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.dyadic_trees import DyadicTrees, cell_names
from gainful.errors import InvalidAgentError, InvalidArgumentError


def on_lqg(bins: int = 16, **options: Any) -> gf.AdaptiveKLSCALPlus:
    env = gf.environments.lqg()
    told = {"span": 1.4, "lipschitz": env.lipschitz, "holder": 1.0, **options}
    return gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=bins), env.n_actions, **told)


# ---------------------------------------------------------------------- the trees


def test_cells_of_a_depth_hold_those_of_the_next() -> None:
    names = cell_names((6, 3))
    assert names[0].tolist() == [0] * 18
    assert names[-1].tolist() == list(range(18))
    for coarse, fine in itertools.pairwise(names):
        for name in np.unique(fine):
            assert np.unique(coarse[fine == name]).size == 1


def test_children_have_the_counts_of_their_parent() -> None:
    trees = DyadicTrees((4, 4), 2, 0)
    visits = np.arange(32)
    parent = trees.summed(visits)[1]
    trees.split(np.array([1]), 7)  # the root of action 1
    assert trees.n_leaves == 5
    assert trees.leaves.tolist() == [0, 1, 5, 17, 21]
    assert trees.summed(visits)[[1, 5, 17, 21]].sum() == parent
    assert trees.first_cells.tolist() == [0, 2, 8, 10]  # action 0 has one leaf, and the refinement has four cells
    again = DyadicTrees((4, 4), 2, 0)
    again.replay(trees.splits)
    assert np.array_equal(again.depths, trees.depths)
    assert trees.splits.tolist() == [[7, 1]]


def test_rows_of_a_leaf_are_the_sum_of_those_in_it() -> None:
    trees = DyadicTrees((4,), 1, 1)
    begin, length = np.array([0, 2, 3, 3]), np.array([2, 1, 0, 1])
    to, count = np.array([0, 3, 3, 2], dtype=np.uint32), np.array([5, 1, 2, 4])
    merged = trees.merged(begin, length, to, count)
    rows = [
        list(zip(merged.next_state[i : i + n], merged.count[i : i + n], strict=True))
        for i, n in zip(merged.begin[[0, 2]], merged.length[[0, 2]], strict=True)
    ]
    assert rows == [[(0, 5), (1, 3)], [(1, 4)]]


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        ([[1, 3]], "not a leaf"),
        ([[1, 99]], "does not exist"),
        ([[2, 0], [1, 2]], "not in order"),
        ([[1, 0], [1, 0], [1, 0]], "not a leaf"),
    ],
    ids=["no leaf", "no cell", "order", "too often"],
)
def test_splits_that_cannot_be_are_refused(splits: list[list[int]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DyadicTrees((4,), 2, 0).replay(np.array(splits, dtype=np.int64))


# ---------------------------------------------------------------------- the agent


@pytest.mark.slow
@pytest.mark.parametrize("bins", [8, 6])
def test_forced_uniform_cells_are_those_of_c_kl_scal_plus_to_the_bit(bins: int) -> None:
    env, finest = gf.environments.lqg(), 3
    delta = 0.05 / ((finest + 1) * (finest + 2))  # the same ι
    uniform = gf.CKLSCALPlus(
        gf.Partition.uniform(bins=bins),
        env.n_actions,
        span=1.4,
        lipschitz=env.lipschitz,
        holder=1.0,
        delta=delta,
        episodes="vanishing",
    )
    forced = on_lqg(bins, start_depth=finest, episodes="vanishing")
    first, second = (gf.simulate(agent, env, 5_000, seed=4, gain=0.0) for agent in (uniform, forced))
    assert np.array_equal(first.rewards, second.rewards)
    for name in ("step", "gain", "gain_low", "gain_high", "span", "sweeps"):
        assert np.array_equal(uniform.episodes[name], forced.episodes[name]), name


@pytest.mark.slow
def test_coarse_cells_on_fine_counts_are_those_of_c_kl_scal_plus() -> None:
    """Rewards that are multiples of 1/64 add up without rounding, however they are grouped."""
    kept: dict[str, Any] = {"span": 2.0, "lipschitz": 1.0, "holder": 1.0}
    uniform = gf.CKLSCALPlus(gf.Partition.uniform(bins=2, dim=2), 2, delta=0.05 / 6, **kept)
    coarse = gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=8, dim=2), 2, start_depth=1, split_scale=1e300, **kept)
    random = np.random.default_rng(2)
    x = random.random(2)
    for _ in range(1_500):
        action = uniform.act(x)
        assert coarse.act(x) == action
        to, reward = random.random(2) ** (1 + action), random.integers(0, 65) / 64
        uniform.observe(x, action, reward, to)
        coarse.observe(x, action, reward, to)
        x = to
    assert np.array_equal(uniform.episodes["gain"], coarse.episodes["gain"])
    assert np.array_equal(uniform.episodes["step"], coarse.episodes["step"])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["variance", "zorl"])
def test_compiled_stepped_and_loaded_runs_are_the_same(rule: str, tmp_path: Path) -> None:
    env = gf.environments.lqg()
    compiled, stepped = on_lqg(rule=rule), on_lqg(rule=rule)
    run = gf.simulate(compiled, env, 3_000, seed=1, gain=0.0)
    x, total = env.start.copy(), 0.0
    for t in range(3_000):
        if t in (1_000, 1_777):
            stepped.save(tmp_path / "it")
            stepped = gf.load_agent(tmp_path / "it")
        action = stepped.act(x)
        reward, to = env.step(t, x, action, seed=1)
        stepped.observe(x, action, reward, to)
        x, total = to, total + reward
    assert total == run.rewards[-1]
    assert np.array_equal(compiled.splits, stepped.splits)
    assert len(compiled.splits) > 10
    assert np.array_equal(compiled.episodes["gain"], stepped.episodes["gain"])


@pytest.mark.slow
def test_a_loaded_agent_planned_from_elsewhere_after_a_cell_was_worth_knowing_nothing(tmp_path: Path) -> None:
    agent = gf.AdaptiveKLSCALPlus(
        gf.Partition.uniform(bins=4), 2, span=0.3, lipschitz=0.4 / (1.15 * 0.25), episodes="vanishing"
    )
    random, x = np.random.default_rng(0), 0.1
    for t in range(64):
        if t > 10 and t % 4 == 0:
            agent.core.begin_episode()
        action = agent.act(x)
        to = float(random.random()) if action else float(np.clip(x + 0.1 * random.normal(), 0.0, 0.999))
        agent.observe(x, action, float(x > 0.6 and random.random() < 0.7), to)
        x = to
    agent.save(tmp_path / "it")
    loaded = gf.load_agent(tmp_path / "it")
    for one in (agent, loaded):
        one.core.begin_episode()
    for name, array in agent.core.own_arrays().items():
        assert np.array_equal(array, loaded.core.own_arrays()[name]), name


@pytest.mark.slow
def test_cells_are_narrow_where_the_agent_is() -> None:
    agent = gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=32), 2, span=1.0, lipschitz=1.0, holder=1.0)
    random = np.random.default_rng(0)
    for _ in range(4_000):
        x = 0.9 + 0.1 * random.random()
        agent.observe(x, agent.act(x), 0.5, 0.9 + 0.1 * random.random())
    widths = agent.leaf_widths(0)
    assert widths[31] < 0.1 < widths[0]
    assert set(agent.splits[:, 2].tolist()) == {0, 1}


@pytest.mark.slow
def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    agent = on_lqg()
    gf.simulate(agent, gf.environments.lqg(), 300, seed=1, gain=0.0)
    agent.core.trees.splits = agent.core.trees.splits[:1]
    agent.save(tmp_path / "it")
    with pytest.raises(InvalidAgentError, match="array"):
        gf.load_agent(tmp_path / "it")


def test_what_is_proven_and_what_not() -> None:
    assert "every plan is optimistic with probability 0.95" in str(on_lqg().guarantee)
    assert not on_lqg().guarantee.holds
    assert "bias_scale is 0.5" in on_lqg(bias_scale=0.5).not_optimistic
    assert "span not given" in on_lqg(span=None).not_optimistic
    assert "lipschitz" in on_lqg(lipschitz=None).not_optimistic
    assert "width_scale" in on_lqg(width_scale=0.5).not_optimistic
    assert on_lqg().not_optimistic == ""


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rule": "both"}, "rule"),
        ({"split_scale": 0.0}, "split_scale"),
        ({"bias_scale": -1.0}, "bias_scale"),
        ({"start_depth": 5}, "start_depth"),
        ({"allowed": [[True, False]]}, "allowed"),
        ({"span": -1.0}, "span"),
    ],
    ids=["rule", "split_scale", "bias_scale", "start_depth", "allowed", "span"],
)
def test_arguments_that_cannot_be_are_named(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        on_lqg(**options)
    assert caught.value.name == name
