"""IMED-RL against its equations: skeleton, plan, index, decisions; its guarantee, files and simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import gainful as gf
from gainful.agents.files import AGENT_FILE, agent_state
from gainful.agents.statistics import Statistics
from gainful.archive import write_archive
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.experiments.agent_factory import AgentFactory
from gainful.optimism.imed_rl import MOST_ATOMS
from gainful.simulation.transition_table import TabularStepper
from gainful.theory import (
    binary_kl,
    imed_rl_divergence,
    imed_rl_estimates,
    imed_rl_index,
    imed_rl_optimum,
    imed_rl_skeleton,
)

RIVER = gf.environments.riverswim(6)


def dense(statistics: Statistics) -> np.ndarray[Any, Any]:
    """(S, A, S) transition counts."""
    S, A = statistics.n_states, statistics.n_actions
    table = np.zeros((S * A, S))
    seen = statistics.to_arrays()
    table[np.repeat(np.arange(S * A), seen["length"]), seen["next_state"]] = seen["count"]
    return table.reshape(S, A, S)


class PlainIMEDRL:
    """The equations, one after the other, on dense arrays and lists of rewards."""

    def __init__(self, mdp: gf.MDP) -> None:
        S, A = mdp.n_states, mdp.n_actions
        self.counts, self.allowed, self.r_max = np.zeros((S, A, S)), mdp.allowed, mdp.reward_max - mdp.reward_min
        self.low = mdp.reward_min
        self.rewards: dict[tuple[int, int], list[float]] = {
            (s, a): [self.r_max / 2] for s in range(S) for a in range(A)
        }

    def observe(self, s: int, a: int, reward: float, to: int) -> None:
        self.counts[s, a, to] += 1
        self.rewards[s, a].append(reward - self.low)

    def indices(self, s: int) -> np.ndarray[Any, Any]:
        """(A,) H of every action; -inf where one was never tried."""
        visits = self.counts.sum(axis=2)
        sums = np.array([[sum(self.rewards[i, a][1:]) for a in range(visits.shape[1])] for i in range(visits.shape[0])])
        found = np.full(visits.shape[1], np.inf)
        untried = self.allowed[s] & (visits[s] == 0)
        if untried.any():
            return np.where(untried, -np.inf, np.inf)
        r, p = imed_rl_estimates(self.counts, sums, self.r_max)
        _, h = imed_rl_optimum(r, p, imed_rl_skeleton(visits, self.allowed))
        values = r[s] + p[s] @ h
        needed = values[self.allowed[s]].max()
        for a in np.flatnonzero(self.allowed[s]):
            rewards, times = np.unique(self.rewards[s, int(a)], return_counts=True)
            law = rewards, times / times.sum()
            K = 0.0 if values[a] == needed else imed_rl_divergence(law, p[s, a], h, needed, self.r_max)
            found[a] = imed_rl_index(int(visits[s, a]), K)
        return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "mdp",
    [
        RIVER,
        gf.environments.riverswim_maillard(5),
        gf.environments.garnet(5, 3, 3, reward_law="bernoulli"),
        gf.environments.machine_replacement(),
        gf.environments.toy3d(0.1),
    ],
    ids=lambda mdp: mdp.name.split("(")[0],
)
def test_every_decision_has_the_least_index_of_the_equations(mdp: gf.MDP) -> None:
    agent, plain, step = gf.IMEDRL.for_mdp(mdp), PlainIMEDRL(mdp), TabularStepper(mdp, 3)
    state = step.first_state
    for t in range(400):
        action, indices = agent.act(state), plain.indices(state)
        assert indices[action] == pytest.approx(indices.min(), rel=1e-7, abs=1e-7), t
        assert agent.indices(state) == pytest.approx(indices, rel=1e-7, abs=1e-7)
        reward, to = step.step(t, state, action)
        agent.observe(state, action, reward, to)
        plain.observe(state, action, reward, to)
        state = to


@st.composite
def laws(draw: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Visits, successes and transition counts of two actions in one of three states, and a bias."""
    counts = draw(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=2))
    wins = [draw(st.integers(0, sum(row))) for row in counts]
    bias = draw(st.lists(st.floats(-20, 20), min_size=3, max_size=3))
    return np.array(counts), np.array(wins), np.array(bias)


@settings(max_examples=25)
@example((np.array([[0, 0, 11], [0, 0, 0]]), np.array([0, 0]), np.array([0.0, -7.5, 0.0])), 0.25)
@given(laws(), st.floats(0.02, 0.98))
def test_the_divergence_of_the_equation_is_that_of_a_convex_programme(given_laws: Any, share: float) -> None:
    """The primal: min KL(p‖q) over laws q on the atoms and the top, of mean γ at least, by SLSQP."""
    counts, wins, bias = given_laws
    n = counts[0].sum() + 1
    row, chance = (counts[0] + 1 / 3) / n, (wins[0] + 0.5) / n
    atoms = np.append((np.array([0.0, 1.0])[:, None] + bias).reshape(-1), 1.0 + bias.max())
    p = np.append(np.outer([1 - chance, chance], row).reshape(-1), 0.0)
    mean, top = float(p @ atoms), float(atoms.max())
    needed = mean + share * (top - mean)
    K = imed_rl_divergence(([0.0, 1.0], [1 - chance, chance]), row, bias, needed, 1.0)
    scaled = (atoms - needed) / (top - needed)
    found: Any = None
    q = (1 - share) * p + share * np.eye(p.size)[-1]
    for _ in range(4):  # SLSQP may call a point the minimum that is not: it goes on from there
        found = minimize(  # type: ignore[call-overload]
            lambda q: -np.sum(p[:-1] * np.log(q[:-1] / p[:-1])),
            q,
            jac=lambda q: np.append(-p[:-1] / q[:-1], 0.0),
            bounds=[(1e-12, 1)] * (p.size - 1) + [(0, 1)],
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(q.size)},
                {"type": "ineq", "fun": lambda q: q @ scaled, "jac": lambda q: scaled},
            ],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 300},
        )
        q = np.append(np.maximum(found.x[:-1], 1e-9), max(found.x[-1], 0.0))
        q /= q.sum()
    assert found.fun + 1e-6 >= K  # K is the infimum
    if found.success:
        assert pytest.approx(found.fun, rel=1e-4, abs=1e-6) == K


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(laws(), st.floats(-50, 50))
def test_the_compiled_index_is_that_of_the_equations_and_does_not_mind_a_shift(given_laws: Any, shift: float) -> None:
    counts, wins, bias = given_laws
    counts = counts + np.eye(2, 3, dtype=np.int64)  # each was tried
    agent = gf.IMEDRL(3, 2)
    for a in range(2):
        rewards = np.repeat([1.0, 0.0], [wins[a], counts[a].sum() - wins[a]])
        for reward, to in zip(rewards, np.repeat(np.arange(3), counts[a]), strict=True):
            agent.observe(0, a, float(reward), int(to))
    agent.bias[:] = bias
    found = agent.indices(0)
    agent.bias[:] = bias + shift
    assert agent.indices(0) == pytest.approx(found, rel=1e-7, abs=1e-7)
    n = counts.sum(axis=1) + 1
    p, chance = (counts + 1 / 3) / n[:, None], wins / n
    values = (wins + 0.5) / n + p @ bias
    for a in range(2):
        law = [0.0, 0.5, 1.0], [1 - chance[a] - 1 / n[a], 1 / n[a], chance[a]]
        K = 0.0 if values[a] == values.max() else imed_rl_divergence(law, p[a], bias, values.max(), 1.0)
        assert found[a] == pytest.approx(imed_rl_index(n[a] - 1, K), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.7), (0.5, 0.75), (0.0, 0.5), (0.9, 0.95)])
def test_one_state_is_a_bandit_and_coins_have_their_relative_entropy(p: float, q: float) -> None:
    K = imed_rl_divergence(([0.0, 1.0], [1 - p, p]), [1.0], [5.0], 5.0 + q, 1.0)
    assert pytest.approx(float(binary_kl(p, q)), rel=1e-9, abs=1e-12) == K


def test_the_equations_refuse_nothing_that_is_at_the_top() -> None:
    assert imed_rl_divergence(([1.0], [1.0]), [1.0], [0.0], 1.0, 1.0) == 0.0
    assert imed_rl_divergence(([0.5], [1.0]), [1.0], [0.0], 1.0, 1.0) == np.inf


def test_nothing_is_claimed_before_the_data_prove_that_every_policy_visits_every_state() -> None:
    agent = gf.IMEDRL(2, 1)
    assert "2 pairs were never tried" in str(agent.guarantee)
    agent.observe(0, 0, 0.0, 0)
    agent.observe(1, 0, 0.0, 0)
    assert "some policy might never visit state 1" in str(agent.guarantee)
    assert "lose whole runs" in str(agent.guarantee)
    agent.observe(0, 0, 0.0, 1)
    assert agent.guarantee.holds
    assert "every policy visits every state" in agent.guarantee.assumptions
    lazy = gf.IMEDRL(2, 1, lazy=0.01, ergodic=True)
    assert "lazy is 0.01" in str(lazy.guarantee)


def test_a_model_says_whether_it_is_ergodic() -> None:
    assert gf.IMEDRL.for_mdp(gf.environments.riverswim_ergodic(6)).guarantee.holds
    assert "the model is not ergodic" in str(gf.IMEDRL.for_mdp(RIVER).guarantee)
    factory = AgentFactory("imed-rl", RIVER, None, 0, 100, None, {})
    assert factory.make().settings()["ergodic"] is False
    assert "riverswim is not ergodic" in factory.note
    told = AgentFactory("imed-rl", RIVER, None, 0, 100, None, {"ergodic": True})
    assert told.make().guarantee.holds
    assert not told.note


def test_a_pair_with_very_many_rewards_keeps_their_mean_and_claims_nothing() -> None:
    agent, rewards = gf.IMEDRL(1, 1), np.random.default_rng(0).random(200)
    for reward in rewards:
        agent.observe(0, 0, float(reward), 0)
    weights, values = agent.atoms.weight[0], agent.atoms.value[0]
    assert agent.atoms.number[0] == MOST_ATOMS
    assert weights.sum() == pytest.approx(201, rel=1e-12, abs=0)
    assert weights @ values == pytest.approx(rewards.sum() + 0.5, rel=1e-12, abs=0)
    assert "32 different rewards" in str(agent.guarantee)


@pytest.mark.parametrize("lazy", [-0.1, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(lazy: float) -> None:
    with pytest.raises(InvalidArgumentError, match="lazy"):
        gf.IMEDRL(2, 2, lazy=lazy)


@pytest.mark.slow
@pytest.mark.parametrize("lazy", [0.0, 0.02])
def test_stepped_compiled_and_resumed_runs_are_equal_to_the_bit(lazy: float, tmp_path: Path) -> None:
    mdp = gf.environments.garnet(5, 3, 3, reward_law="bernoulli")
    run = gf.simulate(whole := gf.IMEDRL.for_mdp(mdp, seed=4, lazy=lazy), mdp, 600, seed=2)
    stepped, step = gf.IMEDRL.for_mdp(mdp, seed=4, lazy=lazy), TabularStepper(mdp, 2)
    state, total = step.first_state, 0.0
    for t in range(600):
        if t == 300:
            stepped.save(tmp_path / "agent")
            stepped = gf.load_agent(tmp_path / "agent")
        action = stepped.act(state)
        assert stepped.act(state) == action
        reward, to = step.step(t, state, action)
        stepped.observe(state, action, reward, to)
        state, total = to, total + reward
    assert run.rewards[-1] == total
    for name, array in whole.own_arrays().items():
        assert np.array_equal(array, stepped.own_arrays()[name]), name
    for name, array in whole.statistics.to_arrays().items():
        assert np.array_equal(array, stepped.statistics.to_arrays()[name]), name


@pytest.mark.slow
def test_many_states_are_planned_by_iteration_to_the_same_bias() -> None:
    mdp = gf.environments.garnet(70, 2, 3)
    agent = gf.IMEDRL.for_mdp(mdp, seed=1)
    gf.simulate(agent, mdp, 5_000, seed=1)
    agent.skeleton_planned_at[0] = -1
    state = int(np.flatnonzero(agent.statistics.visits.reshape(70, 2).min(axis=1) > 0)[0])
    agent.act(state)
    counts = dense(agent.statistics)
    r, p = imed_rl_estimates(counts, agent.statistics.reward_sum.reshape(70, 2), agent.reward_range)
    gain, bias = imed_rl_optimum(r, p, imed_rl_skeleton(counts.sum(axis=2)))
    assert agent.bias == pytest.approx(bias, rel=0, abs=1e-4)
    low, high = agent.skeleton_gain
    assert low - 1e-9 <= gain <= high + 1e-9
    assert high - low <= 1e-7


@pytest.mark.slow
def test_the_loss_is_that_of_the_first_measurement() -> None:
    """128.7 ± 0.9 on RiverSwim-6 and 101 ± 4.5 on its ergodic variant, after 10⁵ steps of a prototype in Python."""
    for mdp, mean, error in ((RIVER, 128.7, 0.9), (gf.environments.riverswim_ergodic(6), 101.0, 4.5)):
        runs = [gf.simulate(gf.IMEDRL.for_mdp(mdp, seed=s), mdp, 100_000, seed=s) for s in range(12)]
        lost = np.array([run.expected_regret[-1] for run in runs])
        assert abs(lost.mean() - mean) < 4.0 * np.hypot(error, lost.std() / np.sqrt(lost.size))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("policy", np.full(2, 7, dtype=np.int64)),
        ("bias", np.array([0.0, np.nan])),
        ("reward_weight", np.zeros((4, MOST_ATOMS))),
        ("reward_number", np.full(4, 99, dtype=np.int64)),
        ("skeleton_planned_at", np.array([5], dtype=np.int64)),
    ],
)
def test_a_file_with_arrays_that_do_not_fit_is_refused(name: str, wrong: Any, tmp_path: Path) -> None:
    header, arrays = agent_state(gf.IMEDRL(2, 2))
    write_archive(AGENT_FILE, tmp_path / "agent", header, arrays | {f"own_{name}": wrong})
    with pytest.raises(InvalidAgentError, match="damaged"):
        gf.load_agent(tmp_path / "agent")
