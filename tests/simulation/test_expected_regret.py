"""Expected regret: the sum of the optimality gaps of the pairs played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.archive import read_archive, write_archive
from gainful.simulation import many
from gainful.simulation.checkpoint import RUN_FILE
from gainful.simulation.transition_table import TabularStepper
from tests import bits
from tests.simulation.test_checkpoint import KilledError, killed_at
from tests.simulation.test_tabular import agent_for
from tests.strategies import mdps

RIVER = gf.environments.riverswim(6)


def learner(name: str, mdp: gf.MDP) -> Any:
    options: dict[str, Any] = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "allowed": mdp.allowed}
    options |= {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max}
    if name == "optimistic-q":
        return gf.OptimisticQ(span=7.0, horizon=3000, **options)
    if name == "fixed":
        return gf.Fixed(**options)
    return gf.UCRL2B(**options)


def played(agent: Any, mdp: gf.MDP, steps: int, seed: int) -> list[tuple[int, int]]:
    """The pairs that an agent plays, stepped by hand."""
    world, pairs = TabularStepper(mdp, seed), []
    state = world.first_state
    for t in range(steps):
        action = agent.act(state)
        reward, to = world.step(t, state, action)
        agent.observe(state, action, reward, to)
        pairs.append((state, action))
        state = to
    return pairs


@pytest.mark.parametrize("name", ["ucrl2b", "optimistic-q", "fixed"])
@pytest.mark.parametrize(
    "mdp", [RIVER, gf.environments.garnet(8, 3, 3, reward_law="bernoulli")], ids=["river", "garnet"]
)
def test_it_is_the_sum_of_the_gaps_along_the_trajectory(name: str, mdp: gf.MDP) -> None:
    checkpoints = [1, 10, 500, 3000]
    run = gf.simulate(learner(name, mdp), mdp, 3000, seed=2, checkpoints=checkpoints)
    gaps = gf.optimality_gaps(mdp)
    lost = np.cumsum([gaps[pair] for pair in played(learner(name, mdp), mdp, 3000, 2)])
    np.testing.assert_allclose(run.expected_regret, lost[np.array(checkpoints) - 1], rtol=1e-12, atol=1e-12)
    assert run.expected_regret[-1] > 1.0


def test_only_the_steps_of_the_run_count_and_not_what_the_agent_did_before() -> None:
    agent = learner("ucrl2b", RIVER)
    before = gf.simulate(agent, RIVER, 2000, seed=1)
    visits = agent.statistics.visits.copy()
    after = gf.simulate(agent, RIVER, 2000, seed=2, checkpoints=[2000])
    gaps = gf.optimality_gaps(RIVER).reshape(-1)
    assert before.expected_regret[-1] == pytest.approx(float(visits @ gaps), rel=1e-12, abs=0)
    played = agent.statistics.visits - visits
    assert after.expected_regret[-1] == pytest.approx(float(played @ gaps), rel=1e-12, abs=0)


@settings(max_examples=15, deadline=None)
@given(
    mdps(communicating=True, disallowed=True, costs=True, laws=("deterministic", "bernoulli", "transition")),
    st.integers(0, 1000),
)
def test_it_never_falls_and_is_zero_for_the_optimal_policy(mdp: gf.MDP, seed: int) -> None:
    run = gf.simulate(agent_for(mdp), mdp, 300, seed=seed)
    if np.isnan(run.expected_regret).all():  # rewards that differ by less than float64 can tell apart
        return
    assert run.expected_regret[0] >= 0.0
    assert np.all(np.diff(run.expected_regret) >= 0.0)
    gaps = gf.optimality_gaps(mdp)
    high = max(mdp.reward_max, mdp.reward_min + 1e-6)
    options: dict[str, Any] = {"reward_min": mdp.reward_min, "reward_max": high, "allowed": mdp.allowed}
    best = gf.Fixed(mdp.n_states, mdp.n_actions, policy=np.nanargmin(gaps, axis=1), **options)
    assert np.all(gf.simulate(best, mdp, 300, seed=seed).expected_regret == 0.0)


@pytest.mark.parametrize("long", [0, 2000])  # in turn from the first step on, or one by one
def test_many_runs_have_the_expected_regret_of_single_ones(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "LONG", long)
    runs = gf.simulate_many(lambda _: learner("ucrl2b", RIVER), RIVER, 3000, range(5), threads=2)
    for seed, run in enumerate(runs):
        alone = gf.simulate(learner("ucrl2b", RIVER), RIVER, 3000, seed=seed)
        assert np.array_equal(run.expected_regret, alone.expected_regret)
    assert runs[0].expected_regret[-1] != runs[1].expected_regret[-1]


def test_a_killed_run_continues_to_the_same_expected_regret(tmp_path: Path) -> None:
    whole = gf.simulate(learner("ucrl2b", RIVER), RIVER, 4000, seed=5)
    file = tmp_path / "run"
    for step in (1, 300, 2500):
        with pytest.raises(KilledError):
            gf.simulate(
                learner("ucrl2b", RIVER), RIVER, 4000, 5, progress=killed_at(step),
                checkpoint_file=file, checkpoint_every=0,
            )  # fmt: skip
    resumed = gf.simulate(learner("ucrl2b", RIVER), RIVER, 4000, seed=5, checkpoint_file=file)
    assert np.array_equal(whole.expected_regret, resumed.expected_regret)


def test_a_file_without_it_continues_with_nan_at_the_checkpoints_that_were_passed() -> None:
    agent, mdp = bits.agent_and_environment("scal-plus")
    whole = gf.simulate(agent, mdp, 100_000, seed=6)
    agent, mdp = bits.agent_and_environment("scal-plus")
    with bits.copied(bits.V1 / "checkpoint.npz") as file:
        header, arrays = read_archive(RUN_FILE, file)
        assert "expected_regret" not in arrays
        passed = header["run"]["passed"]
        resumed = gf.simulate(agent, mdp, 100_000, seed=6, checkpoint_file=file)
    assert 0 < passed < resumed.steps.size
    assert np.isnan(resumed.expected_regret[:passed]).all()
    assert np.array_equal(resumed.expected_regret[passed:], whole.expected_regret[passed:])


def test_a_file_with_a_damaged_expected_regret_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    gf.simulate(learner("ucrl2b", RIVER), RIVER, 100, seed=5, checkpoint_file=file)
    header, arrays = read_archive(RUN_FILE, file)
    write_archive(RUN_FILE, file, header, arrays | {"expected_regret": np.zeros(3)})
    with pytest.raises(gf.errors.InvalidRunError, match="expected_regret"):
        gf.simulate(learner("ucrl2b", RIVER), RIVER, 100, seed=5, checkpoint_file=file)


def test_it_is_unknown_on_points_in_foreign_environments_and_where_the_gain_depends_on_the_start() -> None:
    agent, lqg = bits.agent_and_environment("discretized")
    assert np.isnan(gf.simulate(agent, lqg, 100, gain=0.0).expected_regret).all()
    foreign = gf.simulate(gf.UCRL2B(16, 4), gymnasium.make("FrozenLake-v1"), 100)
    assert foreign.expected_regret.shape == foreign.steps.shape
    assert np.isnan(foreign.expected_regret).all()
    apart = gf.MDP(np.eye(2)[:, None, :], [[0.0], [1.0]])
    run = gf.simulate(gf.UCRL2B(2, 1), apart, 100, gain=1.0)
    assert np.isnan(run.expected_regret).all()
    assert np.isfinite(run.pseudo_regret).all()
