from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.simulation import many
from tests.simulation.test_tabular import mdp_of_width


def factory(mdp: gf.MDP, scale: float = 0.3) -> Callable[[int], gf.SCALPlus]:
    def make(seed: int) -> gf.SCALPlus:
        return gf.SCALPlus(
            mdp.n_states, mdp.n_actions, span=3.0, reward_min=mdp.reward_min, reward_max=mdp.reward_max,
            allowed=mdp.allowed, bonus_scale=scale, seed=seed,
        )  # fmt: skip

    return make


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["riverswim", "garnet", "machine-replacement"])
def test_each_seed_equals_its_single_run(name: str, threads: int) -> None:
    mdp = gf.environments.garnet(10, 3, 4) if name == "garnet" else gf.environments.registry.make(name)
    make = factory(mdp)
    seeds = [5, 0, 11, 3, 2, 8, 1, 9, 30, 31, 32]
    runs = gf.simulate_many(make, mdp, 700, seeds, threads=threads)
    for seed, run in zip(seeds, runs, strict=True):
        single = gf.simulate(make(seed), mdp, 700, seed=seed)
        assert run.seed == seed
        assert run.final_state == single.final_state
        assert np.array_equal(run.rewards, single.rewards)
        assert np.array_equal(run.pseudo_regret, single.pseudo_regret)
        assert np.array_equal(run.episodes["step"], single.episodes["step"])
        assert np.array_equal(run.episodes["gain"], single.episodes["gain"])


def same(run: gf.Run, single: gf.Run) -> None:
    assert run.final_state == single.final_state
    assert np.array_equal(run.rewards, single.rewards)
    assert np.array_equal(run.pseudo_regret, single.pseudo_regret)
    names = [name for name in run.episodes.dtype.names or () if name != "planning_seconds"]
    assert np.array_equal(run.episodes[names], single.episodes[names])


@pytest.mark.parametrize("long", [0, 30, 2000])
@pytest.mark.parametrize(
    "law", ["bernoulli", *(pytest.param(law, marks=pytest.mark.slow) for law in ("deterministic", "transition"))]
)
@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 20))])
def test_four_in_turn_are_four_alone(n: int, law: str, long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "LONG", long)  # steps per episode from which on runs are stepped in turn
    mdp = mdp_of_width(n, law)
    made: list[gf.SCALPlus] = []

    def make(seed: int) -> gf.SCALPlus:
        made.append(factory(mdp, 0.01)(seed))
        return made[-1]

    runs = gf.simulate_many(make, mdp, 3000, range(5), threads=1)
    for seed, (run, agent) in enumerate(zip(runs, list(made), strict=True)):
        alone = make(seed)
        same(run, gf.simulate(alone, mdp, 3000, seed=seed))
        for name, array in alone.statistics.to_arrays().items():
            assert np.array_equal(array, agent.statistics.to_arrays()[name]), name
        assert np.array_equal(alone.remaining, agent.remaining)
        assert agent.t == 3000


@pytest.mark.parametrize("name", ["fixed", "psrl", "tucrl", "scal", "optimistic-q"])
def test_agents_with_other_rules_are_stepped_in_turn_or_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No doubling, a last step, a stop at new states, mixed actions, learning at every step."""
    monkeypatch.setattr(many, "LONG", 0)
    mdp = gf.environments.riverswim(6)

    def make(seed: int) -> Any:
        if name == "fixed":
            return gf.Fixed(6, 2, policy=[1, 1, 1, 0, 1, 1])
        if name == "psrl":
            return gf.PSRL(6, 2, seed=seed)
        if name == "tucrl":
            return gf.TUCRL(6, 2, seed=seed)
        if name == "scal":
            return gf.SCAL(6, 2, span=0.5, seed=seed)
        return gf.OptimisticQ(6, 2, span=7.0, horizon=800, seed=seed)

    for seed, run in enumerate(gf.simulate_many(make, mdp, 800, range(4), threads=1)):
        same(run, gf.simulate(make(seed), mdp, 800, seed=seed))


def test_agents_that_have_lived_before_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "LONG", 0)
    mdp = gf.environments.riverswim(6)

    def make(seed: int) -> gf.SCALPlus:
        agent = factory(mdp)(seed)
        gf.simulate(agent, mdp, 100 * seed + 1, seed=seed + 50)
        return agent

    for seed, run in enumerate(gf.simulate_many(make, mdp, 800, range(4), threads=1)):
        same(run, gf.simulate(make(seed), mdp, 800, seed=seed))


def test_ctrl_c_leaves_all_agents_with_all_that_was_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "LONG", 0)
    mdp = gf.environments.riverswim(6)
    calls: list[None] = []
    run_lanes, agents = many.run_lanes, [factory(mdp)(seed) for seed in range(4)]

    def interrupted(*arguments: Any) -> None:
        run_lanes(*arguments)
        calls.append(None)
        if len(calls) == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(many, "run_lanes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gf.simulate_many(agents.__getitem__, mdp, 5000, range(4), threads=1)
    monkeypatch.undo()
    for seed, agent in enumerate(agents):
        assert 0 < agent.t < 5000
        alone = factory(mdp)(seed)
        gf.simulate(alone, mdp, agent.t, seed=seed)
        for name, array in alone.statistics.to_arrays().items():
            assert np.array_equal(array, agent.statistics.to_arrays()[name]), name
        assert np.array_equal(alone.remaining, agent.remaining)


def test_no_seeds_are_no_runs() -> None:
    mdp = gf.environments.riverswim(4)
    assert gf.simulate_many(factory(mdp), mdp, 10, []) == []


def test_a_seed_twice_is_refused() -> None:
    mdp = gf.environments.riverswim(4)
    with pytest.raises(InvalidArgumentError, match="a seed occurs twice"):
        gf.simulate_many(factory(mdp), mdp, 10, [1, 1])


@pytest.mark.parametrize(
    ("agents", "seeds", "message"),
    [
        (lambda seed: gf.UCRL2(4, 2, seed=seed), 3, r"seeds is 3, expected the seeds themselves; range\(3\)"),
        (gf.UCRL2(4, 2), range(3), "expected a function that makes the agent of a seed; write lambda seed"),
    ],
    ids=["a number", "an agent"],
)
def test_a_number_for_seeds_or_an_agent_for_its_factory_is_explained(agents: Any, seeds: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.simulate_many(agents, gf.environments.riverswim(4), 10, seeds)


def test_progress_counts_the_steps_of_all_runs() -> None:
    mdp = gf.environments.riverswim(4)
    calls: list[tuple[int, int]] = []
    gf.simulate_many(factory(mdp), mdp, 100, range(3), threads=1, progress=lambda a, b: calls.append((a, b)))
    assert calls[-1] == (300, 300)


@pytest.mark.slow
def test_many_runs_in_a_continuous_environment_are_those_of_simulate() -> None:
    env = gf.environments.lqg()

    def agent(seed: int) -> gf.CSCALPlus:
        return gf.CSCALPlus(partition=gf.Partition.uniform(bins=5), n_actions=5, span=2.0, seed=seed)

    for run in gf.simulate_many(agent, env, 200, range(2), threads=2):
        alone = gf.simulate(agent(run.seed), env, 200, seed=run.seed)
        np.testing.assert_array_equal(run.rewards, alone.rewards)
        assert run.gain == alone.gain
    summary = gf.simulate_many(agent, env, 200, range(2), keep="summary")
    assert summary.n_runs == 2
    assert np.isnan(summary.expected_regret.mean).all()
