from __future__ import annotations

from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.simulation import slices, tabular
from gainful.simulation.run import log_checkpoints
from gainful.simulation.transition_table import TabularStepper, TransitionTable, below_4, below_8, search
from tests.strategies import mdps


def agent_for(mdp: gf.MDP, **options: Any) -> gf.SCALPlus:
    # a range of 1e-177 would ask the planner for a precision that rounding forbids
    high = mdp.reward_max if mdp.reward_max > mdp.reward_min + 1e-6 else mdp.reward_min + 1.0
    return gf.SCALPlus(
        mdp.n_states, mdp.n_actions, span=2.0, reward_min=mdp.reward_min, reward_max=high, allowed=mdp.allowed,
        bonus_scale=0.3, **options,
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    mdps(communicating=True, disallowed=True, costs=True, laws=("deterministic", "bernoulli", "transition")),
    st.integers(0, 1000),
)
def test_stepped_and_compiled_runs_are_equal_to_the_bit(mdp: gf.MDP, seed: int) -> None:
    compiled, stepped = agent_for(mdp), agent_for(mdp)
    run = gf.simulate(compiled, mdp, 200, seed=seed)
    world = TabularStepper(mdp, seed)
    state = world.first_state
    for t in range(200):
        action = stepped.act(state)
        reward, to = world.step(t, state, action)
        stepped.observe(state, action, reward, to)
        state = to
    stepped.act(state)
    compiled.act(state)
    assert state == run.final_state
    for name, array in stepped.statistics.to_arrays().items():
        assert np.array_equal(array, compiled.statistics.to_arrays()[name]), name
    assert [r[:-1] for r in stepped.records] == [r[:-1] for r in compiled.records]
    assert np.array_equal(stepped.remaining, compiled.remaining)
    assert np.array_equal(stepped.visited, compiled.visited)


def test_where_a_kernel_pauses_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = gf.environments.riverswim(6)
    whole = gf.simulate(agent_for(mdp), mdp, 5000, seed=1, checkpoints=[5000])
    monkeypatch.setattr(slices, "STEPS_AT_A_TIME", 7)  # the first slice
    monkeypatch.setattr(slices, "PAUSE", 7)  # and the longest
    parts = gf.simulate(agent_for(mdp), mdp, 5000, seed=1)
    assert parts.final_state == whole.final_state
    assert parts.rewards[-1] == whole.rewards[-1]
    assert parts.pseudo_regret[-1] == whole.pseudo_regret[-1]
    assert np.array_equal(parts.episodes["step"], whole.episodes["step"])


def mdp_of_width(n: int, law: str) -> gf.MDP:
    """120 states, two actions: n next states for the first action, one for the second; uneven chances."""
    rng = np.random.default_rng(n)
    S, A = 120, 2
    lengths = np.tile([n, 1], S)
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    to = np.concatenate([np.sort(rng.choice(S, k, replace=False)) for k in lengths])
    p = np.concatenate([rng.dirichlet(np.full(k, 2.0)) for k in lengths])
    if law == "transition":
        return gf.MDP.from_rows(ptr, to, p, rng.random(to.size), n_actions=A, reward_law="transition")
    return gf.MDP.from_rows(ptr, to, p, rng.random((S, A)), reward_law="bernoulli" if law == "bernoulli" else None)


WIDTHS_AND_LAWS = list(product((1, 3, 4, 5, 8, 9, 100), ("deterministic", "bernoulli", "transition")))
IN_EVERY_TEST = {(4, "deterministic")}
"""One law for each of the three layouts: every combination of layout, law and learning rule is compiled by itself."""


@pytest.mark.parametrize(
    ("n", "law"),
    [pytest.param(*x, marks=() if x in IN_EVERY_TEST else pytest.mark.slow) for x in WIDTHS_AND_LAWS],
)
def test_rows_of_every_length_and_law_are_stepped_as_they_are_compiled(n: int, law: str) -> None:
    mdp = mdp_of_width(n, law)
    for make in (
        lambda: agent_for(mdp),
        lambda: gf.OptimisticQ(120, 2, span=1.0, horizon=1000, reward_max=mdp.reward_max),
    ):
        compiled, stepped, world = make(), make(), TabularStepper(mdp, 5)
        run = gf.simulate(compiled, mdp, 1000, seed=5, checkpoints=[1, 500])
        state, rewards, visits = world.first_state, [], np.zeros(240)
        for t in range(1000):
            action = stepped.act(state)
            reward, to = world.step(t, state, action)
            stepped.observe(state, action, reward, to)
            rewards.append(reward)
            visits[2 * state + action] += 1
            state = to
        assert state == run.final_state
        for name, array in stepped.statistics.to_arrays().items():
            assert np.array_equal(array, compiled.statistics.to_arrays()[name]), name
        assert np.array_equal(stepped.remaining, compiled.remaining)
        assert np.array_equal(stepped.visited, compiled.visited)
        assert stepped.statistics.changed_pairs().tolist() == compiled.statistics.changed_pairs().tolist()
        assert [r[:-1] for r in stepped.records] == [r[:-1] for r in compiled.records]
        assert run.rewards.tolist() == [rewards[0], sum(rewards[:500]), sum(rewards)]
        # two sums of 1000 numbers in [0, 1], each rounded at every step
        mean = float(visits @ mdp.pair_rewards)
        assert 1000 * run.gain - run.pseudo_regret[-1] == pytest.approx(mean, rel=0, abs=1e-9)


@pytest.mark.parametrize("n", [3, 7, 8, 20])
def test_chances_are_the_probabilities_to_32_bits(n: int) -> None:
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.full(n, 0.05), size=(n, 1)) + 1e-12  # some of them below 2⁻³²
    mdp = gf.MDP(p / p.sum(axis=2, keepdims=True), np.zeros((n, 1)))
    table = TransitionTable.of(mdp)
    assert len(table.padding) == (4 if n <= 4 else 8 if n <= 8 else 0)
    bound = table.lines.reshape(n, 2, -1)[:, 0] if table.padding else table.bounds.reshape(n, n)
    assert np.all(bound[:, n - 1 :] == 2**32 - 1)
    before = np.append(np.full((n, 1), -1), bound[:, : n - 1].astype(np.int64), axis=1)
    chances = (bound[:, :n] - before) / 2.0**32
    assert chances.min() >= 0
    assert np.all(chances.sum(axis=1) == 1.0)
    # each bound is rounded, by half a unit; a first one is one unit at least
    assert np.abs(chances - mdp.to_dense()[0][:, 0]).max() <= 1.5 * 2.0**-32


def test_a_step_takes_the_first_next_state_whose_bound_is_not_below_the_bits() -> None:
    for n in (2, 3, 4, 5, 8, 9, 33):
        bound = np.sort(np.random.default_rng(n).integers(0, 2**32 - 1, n).astype(np.uint32))
        bound[-1] = 2**32 - 1
        for u in (*bound, *(bound[:-1] + np.uint32(1)), np.uint32(0)):
            expected = int(np.argmax(u <= bound))
            assert search_row(bound, u) == expected
            if n <= 8:
                padded = np.append(bound, np.full(8 - n, 2**32 - 1, dtype=np.uint32))
                assert count_below(padded, u, 4 if n <= 4 else 8) == expected


@numba.njit
def search_row(bound: Any, u: Any) -> Any:
    return search(bound, np.uint64(0), np.uint64(bound.size), u)


@numba.njit
def count_below(bound: Any, u: Any, width: int) -> Any:
    return below_4(bound, np.uint64(0), u) if width == 4 else below_8(bound, np.uint64(0), u)


def test_ctrl_c_in_a_kernel_leaves_the_agent_with_all_that_was_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python raises KeyboardInterrupt when the kernel returns, and what it returned is lost."""
    mdp = gf.environments.riverswim(6)
    calls: list[None] = []
    run_steps = tabular.run_steps

    def interrupted(*arguments: Any) -> None:
        run_steps(*arguments)
        calls.append(None)
        if len(calls) == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(tabular, "run_steps", interrupted)
    agent, whole = agent_for(mdp), agent_for(mdp)
    with pytest.raises(KeyboardInterrupt):
        gf.simulate(agent, mdp, 5000, seed=1)
    monkeypatch.undo()
    assert 0 < agent.t < 5000
    assert agent.statistics.visits.sum() == agent.t
    gf.simulate(whole, mdp, agent.t, seed=1)
    for name, array in whole.statistics.to_arrays().items():
        assert np.array_equal(array, agent.statistics.to_arrays()[name]), name
    assert np.array_equal(whole.remaining, agent.remaining)


def test_whoever_watches_finds_the_agent_up_to_date() -> None:
    mdp = gf.environments.riverswim(6)
    agent = agent_for(mdp)
    agent.on_episode = lambda view: told.append((view.step - 1, int(view.statistics.visits.sum())))
    told: list[tuple[int, int]] = []
    gf.simulate(
        agent, mdp, 3000, seed=1, progress=lambda step, _: told.append((step, int(agent.statistics.visits.sum())))
    )
    assert len(told) > 100
    assert all(step == visits for step, visits in told)


def test_an_agent_that_has_lived_before_goes_on_learning_as_if_stepped() -> None:
    mdp = gf.environments.riverswim(6)
    compiled, stepped = agent_for(mdp), agent_for(mdp)
    for seed, steps in ((1, 1500), (2, 900)):
        run = gf.simulate(compiled, mdp, steps, seed=seed)
        world = TabularStepper(mdp, seed)
        state = world.first_state
        for t in range(steps):
            action = stepped.act(state)
            reward, to = world.step(t, state, action)
            stepped.observe(state, action, reward, to)
            state = to
        assert state == run.final_state
    assert compiled.t == stepped.t == 2400 == compiled.statistics.visits.sum()
    assert np.array_equal(stepped.statistics.visits, compiled.statistics.visits)
    assert [r[:-1] for r in stepped.records] == [r[:-1] for r in compiled.records]


def test_frequencies_are_the_probabilities() -> None:
    mdp = gf.environments.garnet(20, 2, 6, instance=3)
    world = TabularStepper(mdp, 11)
    n = 40_000
    for pair in (0, 17, 39):
        found = np.zeros(20)
        for t in range(n):
            found[world.step(t, *divmod(pair, 2))[1]] += 1
        expected = np.zeros(20)
        for to, p in mdp.transition(*divmod(pair, 2)).items():
            expected[to] = p
        # five standard deviations of a binomial frequency, per next state
        assert np.all(np.abs(found / n - expected) <= 5 * np.sqrt(expected * (1 - expected) / n) + 1e-12)


@pytest.mark.parametrize("objective", ["reward", "cost"])
def test_bernoulli_rewards_have_their_mean(objective: Any) -> None:
    mdp = gf.MDP(np.ones((1, 2, 1)), [[0.3, 0.9]], reward_law="bernoulli", objective=objective)
    world = TabularStepper(mdp, 1)
    sign = 1.0 if objective == "reward" else -1.0
    for action, mean in enumerate((0.3, 0.9)):
        rewards = np.array([world.step(t, 0, action)[0] for t in range(20_000)])
        assert set(np.unique(rewards)) == {0.0, sign}
        assert abs(rewards.mean() - sign * mean) < 5 * np.sqrt(mean * (1 - mean) / 20_000)


def test_the_first_state_follows_the_start_distribution() -> None:
    mdp = gf.MDP(np.full((3, 1, 3), 1 / 3), np.zeros((3, 1)), start=[0.2, 0.0, 0.8])
    first = [TabularStepper(mdp, seed).first_state for seed in range(3000)]
    assert first.count(1) == 0
    assert abs(first.count(0) / 3000 - 0.2) < 5 * np.sqrt(0.16 / 3000)


def test_regret_is_the_gain_times_the_steps_less_the_rewards() -> None:
    mdp = gf.environments.riverswim(6)
    run = gf.simulate(agent_for(mdp), mdp, 3000, seed=1, checkpoints=[10, 100, 1000])
    assert run.steps.tolist() == [10, 100, 1000, 3000]
    assert run.gain == pytest.approx(7203 / 16805, rel=0, abs=1e-9)
    np.testing.assert_allclose(run.regret, run.steps * run.gain - run.rewards, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.regret, run.pseudo_regret, rtol=0, atol=1e-12)  # deterministic rewards
    assert run.horizon == 3000


def test_a_continuous_time_cost_problem_has_its_regret_in_money() -> None:
    # arrivals at 1, a fast (dear) and a slow service: costs per unit of time, one step lasts 1/Λ
    rates = np.zeros((2, 2, 2))
    rates[0, :, 1], rates[1, 0, 0], rates[1, 1, 0] = 1.0, 1.0, 3.0
    mdp = gf.MDP.from_rates(rates, costs=[[0.0, 0.0], [1.0, 2.0]])
    best = gf.solve(mdp)
    run = gf.simulate(agent_for(mdp), mdp, 50_000, seed=1)
    assert run.gain == pytest.approx(-best.gain * mdp.units.step_duration, rel=0, abs=1e-9)
    assert run.regret[-1] / 50_000 < 0.05 * abs(run.gain)


def test_regret_per_step_falls_with_the_theorems_own_constants() -> None:
    """RiverSwim-6, c = 7: the linear phase ends around 10⁶ steps (three seeds, 3·10⁶ steps each)."""
    mdp = gf.environments.riverswim(6)
    curves = []
    for seed in range(3):
        run = gf.simulate(
            gf.SCALPlus(6, 2, span=7.0), mdp, 3_000_000, seed=seed, checkpoints=[10_000, 100_000, 3_000_000]
        )
        curves.append(run.pseudo_regret / run.steps)
    early, middle, late = np.mean(curves, axis=0)
    assert late < 0.3 * middle < 0.3 * early


def test_progress_is_called_and_reaches_the_horizon() -> None:
    mdp = gf.environments.riverswim(6)
    calls: list[tuple[int, int]] = []
    gf.simulate(agent_for(mdp), mdp, 1e3, seed=1, progress=lambda step, horizon: calls.append((step, horizon)))
    assert calls[-1] == (1000, 1000)
    assert [c[0] for c in calls] == sorted(c[0] for c in calls)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 1.5}, "horizon is 1.5"),
        ({"horizon": 10, "checkpoints": [11]}, "expected steps in 1 … 10"),
        ({"horizon": 10, "checkpoints": [0]}, "expected steps in 1 … 10"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    mdp = gf.environments.riverswim(6)
    with pytest.raises(InvalidArgumentError, match=message):
        gf.simulate(agent_for(mdp), mdp, **change)


def test_an_agent_of_another_shape_range_or_mask_is_refused() -> None:
    mdp = gf.environments.riverswim(6)
    with pytest.raises(InvalidArgumentError, match="5 states and 2 actions"):
        gf.simulate(gf.SCALPlus(5, 2, span=1.0), mdp, 10)
    with pytest.raises(InvalidArgumentError, match=r"the agent accepts \[0, 0.5\]"):
        gf.simulate(gf.SCALPlus(6, 2, span=1.0, reward_max=0.5), mdp, 10)
    narrow = gf.MDP(np.ones((1, 2, 1)), [[0.3, 0.9]], allowed=[[True, False]], action_labels=["stay", "go"])
    with pytest.raises(InvalidArgumentError, match="does not have the action go"):
        gf.simulate(gf.SCALPlus(1, 2, span=1.0), narrow, 10)


def test_checkpoints_are_spread_over_the_decades() -> None:
    steps = log_checkpoints(10**6)
    assert steps[0] == 1
    assert steps[-1] == 10**6
    assert np.all(np.diff(steps) > 0)
    assert 100 <= steps.size <= 125
