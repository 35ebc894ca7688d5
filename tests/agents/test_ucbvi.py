from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.files import AGENT_FILE
from gainful.archive import read_archive, write_archive
from gainful.errors import InvalidAgentError, InvalidArgumentError
from gainful.optimism.ucbvi import bonus, confidence_log
from tests.agents.test_fixed import assert_saved_goes_on, assert_stepped_equals_simulated, fitting, worlds


def make(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.UCBVI(episode_length=12, horizon=2000, bonus_scale=0.001, **fitting(mdp, seed))


@pytest.mark.parametrize("world", worlds())
def test_stepped_equals_simulated(world: str) -> None:
    assert_stepped_equals_simulated(make, worlds()[world], 1500)


@pytest.mark.parametrize("first", [777, 780])  # in the middle of a block, and at its end
def test_a_saved_agent_goes_on_to_the_same_bits(first: int, tmp_path: Path) -> None:
    assert_saved_goes_on(make, worlds()["bernoulli"], first, 1000, tmp_path)


def test_the_equations() -> None:
    log_term = confidence_log(3, 2, 1000, 0.1)
    assert log_term == pytest.approx(math.log(300_000), rel=1e-15, abs=0)
    expected = 7 * 10 * 2.0 * math.log(300_000)
    found = [bonus(log_term, 10, n, 2.0, 1.0) for n in (0, 1, 4)]
    assert found == pytest.approx([expected, expected, expected / 2], rel=1e-14, abs=0)


def slow_plan(agent: gf.UCBVI, H: int, r_max: float, scale: float, T: int) -> tuple[Any, Any]:
    """Backward induction in loops."""
    S, A = agent.n_states, agent.n_actions
    v, actions = np.zeros((H + 1, S)), np.zeros((H, S), dtype=int)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            q = []
            for a in range(A):
                n = int(agent.statistics.visits[s * A + a])
                if n == 0:
                    q.append(H * r_max)
                    continue
                states, counts = agent.statistics.row(s * A + a)
                b = scale * 7 * H * r_max * math.log(5 * S * A * T / 0.05) / math.sqrt(n)
                r = agent.statistics.reward_sum[s * A + a] / n
                q.append(min(r + b + float(np.dot(counts / n, v[h + 1][states])), H * r_max))
            v[h, s], actions[h, s] = max(q), int(np.argmax(q))
    return v, actions


def test_each_block_plays_its_own_backward_induction() -> None:
    H, T, scale = 7, 2000, 0.002
    mdp = gf.environments.riverswim(4)
    agent = gf.UCBVI(4, 2, episode_length=H, horizon=T, bonus_scale=scale)
    rng = np.random.default_rng(1)
    P, R = mdp.to_dense()
    state, moving = 0, 0
    for t in range(700):
        action = agent.act(state)
        if t % H == 0:
            v, table = slow_plan(agent, H, 1.0, scale, T)
            assert agent.current is not None
            assert agent.current.values == pytest.approx(v[0], rel=0, abs=1e-10)
            moving += bool((table != table[0]).any())
        assert action == table[t % H, state]
        to = int(rng.choice(4, p=P[state, action]))
        agent.observe(state, action, float(R[state, action]), to)
        state = to
    assert agent.episodes["step"].tolist() == list(range(1, 701, H))
    assert moving > 0  # some policies did depend on the step


def test_steps_observed_without_being_asked_count_in_the_block() -> None:
    agent = gf.UCBVI(2, 2, episode_length=3, horizon=100)
    agent.act(0)
    for _ in range(5):
        agent.observe(0, 0, 0.5, 1)
    agent.act(1)
    agent.act(0)
    assert agent.episodes["step"].tolist() == [1, 6]


def test_with_the_theorems_constant_the_plan_ignores_the_data_for_long() -> None:
    agent = gf.UCBVI(6, 2, episode_length=20, horizon=3000)
    assert agent.vacuous
    gf.simulate(agent, gf.environments.riverswim(6), 3000, seed=1)
    assert agent.vacuous
    assert agent.statistics.visits[1] == 0  # action 0 in every tie
    assert not agent.guarantee.holds
    assert "no restart" in str(agent.guarantee)


def test_it_learns_with_a_small_bonus() -> None:
    mdp, T = gf.environments.riverswim(6), 20_000
    agent = gf.UCBVI(6, 2, episode_length=20, horizon=T, bonus_scale=0.001)
    run = gf.simulate(agent, mdp, T, seed=1)
    assert run.pseudo_regret[-1] < 0.5 * 8500  # what random play loses
    assert not agent.vacuous


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    agent = gf.UCBVI(2, 2, episode_length=3, horizon=100)
    agent.act(0)
    agent.save(tmp_path / "agent")
    header, arrays = read_archive(AGENT_FILE, tmp_path / "agent")
    write_archive(AGENT_FILE, tmp_path / "agent", header, {**arrays, "own_table": arrays["own_table"][:2]})
    with pytest.raises(InvalidAgentError, match="'table' has shape"):
        gf.load_agent(tmp_path / "agent")


@pytest.mark.parametrize(
    "arguments",
    [
        {"episode_length": 0},
        {"episode_length": 2.5},
        {"horizon": 0},
        {"horizon": math.inf},
        {"bonus_scale": -1.0},
        {"bonus_scale": math.nan},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        gf.UCBVI(2, 2, **{"episode_length": 5, "horizon": 100, **arguments})
