"""Arrays of a file that do not fit the agent are refused before it takes them; rewards and states by one rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.files import AGENT_FILE, agent_state
from gainful.archive import write_archive
from gainful.errors import InvalidAgentError, InvalidArgumentError
from tests.live.lives import QUICK

BLOCKS = {"n_states": 3, "n_actions": 2, "episode_length": 4, "horizon": 100}


def file_with(agent: Any, path: Path, **changed: Any) -> Path:
    """The file of an agent with other arrays, or another header, as a program would write it that means harm."""
    header, arrays = agent_state(agent)
    header |= {name: value for name, value in changed.items() if name in header}
    arrays = arrays | {name: np.asarray(value) for name, value in changed.items() if name not in header}
    write_archive(AGENT_FILE, path, header, arrays)
    return path


@pytest.mark.parametrize(
    "changed",
    [
        {"own_block": [-1]},
        {"own_block": [1]},
        {"own_block": [2**62]},
        {"own_block": [0.0]},
        {"own_table": np.zeros((1, 3), dtype=np.int64)},
        {"visits_before": np.full(6, 1)},
        {"visits_before": np.full(6, -1)},
        {"remaining": np.zeros(6)},
        {"planned_at": 7},
        {"planned_at": -2},
    ],
    ids=str,
)
def test_a_saved_block_of_ucbvi_was_not_range_checked(changed: dict[str, Any], tmp_path: Path) -> None:
    agent = gf.UCBVI(**BLOCKS)
    assert gf.load_agent(file_with(agent, tmp_path / "good")).t == 0
    bad = file_with(agent, tmp_path / "bad", **changed)
    with pytest.raises(InvalidAgentError, match="truncated or damaged"):
        gf.load_agent(bad)


@pytest.mark.parametrize("name", ["own_q", "own_target", "own_numbers"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_saved_tables_of_q_learners_are_finite(name: str, value: float, tmp_path: Path) -> None:
    agent = gf.OptimisticQ(n_states=3, n_actions=2, span=2.0, horizon=100)
    table = agent_state(agent)[1][name].copy()
    table.flat[0] = value
    with pytest.raises(InvalidAgentError, match="not finite"):
        gf.load_agent(file_with(agent, tmp_path / "bad", **{name: table}))


def test_saved_values_of_scal_plus_are_finite(tmp_path: Path) -> None:
    agent = gf.SCALPlus(n_states=3, n_actions=2, span=2.0)
    with pytest.raises(InvalidAgentError, match="not finite"):
        gf.load_agent(file_with(agent, tmp_path / "bad", own_values=np.full(3, np.nan)))


# ---------------------------------------------------------------------- one rule for plain and durable agents

TEXT = ["0", b"0", np.str_("0"), np.bytes_(b"0"), np.array("0"), bytearray(b"0"), None, object]
NOT_STATES = [True, np.True_, np.array(True), "1", b"1", None, 0.5, float("nan")]


@pytest.fixture(params=["plain", "on cells", "durable", "durable on cells"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    cells = gf.Partition.uniform(bins=2, dim=1)
    if request.param == "plain":
        yield gf.UCRL2(n_states=2, n_actions=2)
        return
    if request.param == "on cells":
        yield gf.CSCALPlus(partition=cells, n_actions=2, span=1.0, lipschitz=1.0)
        return
    config: Any = {"agent": "ucrl2", "n_states": 2, "n_actions": 2}
    if request.param == "durable on cells":
        config = gf.CSCALPlus(partition=cells, n_actions=2, span=1.0, lipschitz=1.0)
    with gf.open_agent(tmp_path / "agent", config, **QUICK) as opened:
        yield opened


@pytest.mark.parametrize("reward", TEXT, ids=repr)
def test_plain_agents_read_text_as_rewards(agent: Any, reward: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="reward"):
        agent.observe(0, 0, reward, 0)
    assert agent.t == 0


@pytest.mark.parametrize("action", [True, np.True_, "1", None])
def test_a_truth_value_is_no_action(agent: Any, action: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="action"):
        agent.observe(0, action, 0.5, 0)
    assert agent.t == 0


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("state", NOT_STATES, ids=repr)
def test_plain_agents_took_true_for_state_1(durable: bool, state: Any, tmp_path: Path) -> None:
    config = {"agent": "ucrl2", "n_states": 2, "n_actions": 2}
    agent = gf.open_agent(tmp_path / "agent", config, **QUICK) if durable else gf.UCRL2(n_states=2, n_actions=2)
    for call in (
        lambda: agent.act(state),
        lambda: agent.predict(state),
        lambda: agent.observe(state, 0, 0.5, 0),
        lambda: agent.observe(0, 0, 0.5, state),
    ):
        with pytest.raises(InvalidArgumentError, match="state"):
            call()
    assert agent.t == 0
    if isinstance(agent, gf.DurableAgent):
        agent.close()


def test_numbers_of_any_type_are_rewards(agent: Any) -> None:
    from decimal import Decimal
    from fractions import Fraction

    rewards = [0, 1.0, True, np.float32(0.5), np.int8(1), np.True_, Decimal("0.5"), Fraction(1, 2), np.array(0.5)]
    for reward in rewards:
        agent.observe(0, 0, reward, 0)
    assert agent.t == len(rewards)


@pytest.mark.parametrize("most", [1e150, np.nextafter(1e150, 0.0), -1e150], ids=repr)
def test_a_durable_agent_with_large_rewards_could_not_be_opened_again(most: float, tmp_path: Path) -> None:
    ends = {"reward_max": max(most, 0.0), "reward_min": min(most, 0.0)}
    config = {"agent": "ucrl2", "n_states": 2, "n_actions": 2, **ends}
    with gf.open_agent(tmp_path / "agent", config, snapshot_every=3, **QUICK) as agent:
        for t in range(20):
            agent.observe(t % 2, 0, most, (t + 1) % 2)
        agent.observe_many([0] * 5, [1] * 5, [most] * 5, [1] * 5)
        sums = agent.statistics.reward_squares.copy()
    with gf.open_agent(tmp_path / "agent", **QUICK) as again:
        assert (again.t, again.notices) == (25, [])
        np.testing.assert_array_equal(again.statistics.reward_squares, sums)
        again.copy().save(tmp_path / "file")
    assert gf.load_agent(tmp_path / "file").t == 25
