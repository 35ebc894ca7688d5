"""What a hostile or careless user gives, and the one clear error each gets; the agent stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful.agents.files import AGENT_FILE
from gainful.archive import read_archive, write_archive
from gainful.errors import GainfulError, InvalidAgentError, InvalidArgumentError, InvalidRunError
from gainful.simulation.checkpoint import RUN_FILE

RIVER = gf.environments.riverswim(6)
UNIT = gf.Partition.uniform(bins=6)


def scal_plus(**options: Any) -> gf.SCALPlus:
    return gf.SCALPlus(**{"n_states": 6, "n_actions": 2, "span": 7.0, **options})


@pytest.mark.parametrize("agent", [gf.CSCALPlus(partition=UNIT, n_actions=2, span=7.0), "scal-plus", gf.SCALPlus, None])
def test_a_run_in_an_mdp_needs_a_tabular_agent(agent: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="agent"):
        gf.simulate(agent, RIVER, 100)


def test_a_run_in_gymnasium_needs_an_agent() -> None:
    none: Any = None
    with pytest.raises(InvalidArgumentError, match="the agent is None"):
        gf.simulate(none, gymnasium.make("CartPole-v1"), 100)


@pytest.mark.parametrize("horizon", [0, -5, 2.5, float("inf"), 1e30, "10", None, [5], True])
def test_a_horizon_that_cannot_be(horizon: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="horizon is"):
        gf.simulate(scal_plus(), RIVER, horizon)


@pytest.mark.parametrize("checkpoints", [["a"], [float("nan")], [10**30], [1.5, 2.7], [0], [101]])
def test_checkpoints_that_cannot_be(checkpoints: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="checkpoints"):
        gf.simulate(scal_plus(), RIVER, 100, checkpoints=checkpoints)


@pytest.mark.parametrize("transition", [(0, 1, 10**400, 0), (0, float("inf"), 0.0, 0), (float("inf"), 0, 0.0, 0)])
def test_numbers_that_no_float_holds(transition: Any) -> None:
    agent = scal_plus()
    with pytest.raises(InvalidArgumentError):
        agent.observe(*transition)
    assert agent.t == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("span", "a"), ("span", None), ("reward_max", "1"), ("delta", "0.1"), ("bonus_scale", "1"), ("seed", "a"),
        ("span", 10**400), ("delta", True),
    ],
)  # fmt: skip
def test_parameters_of_the_wrong_kind(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=name if name != "reward_max" else "rewards"):
        scal_plus(**{name: value})


@pytest.mark.parametrize(
    "options", [{"horizon": "5"}, {"stage": -1}, {"stage": "a"}, {"lipschitz": 1e308, "horizon": 1e300}]
)
def test_parameters_of_c_scal_plus_of_the_wrong_kind(options: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        gf.CSCALPlus(**{"n_actions": 2, "span": 1.0, "lipschitz": 1.0, "holder": 1.0, "dim": 1, **options})


def test_parameters_of_others_of_the_wrong_kind() -> None:
    with pytest.raises(InvalidArgumentError, match="horizon"):
        gf.OptimisticQ(6, 2, span=1.0, horizon=float("inf"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: gf.Partition.uniform(bins=10**400),
        lambda: gf.Partition.from_box(gymnasium.spaces.Box(-1, 1, (376,)), bins=20),
        lambda: UNIT.index([[0.1], [0.2, 0.3]]),
    ],
)
def test_cells_that_cannot_be(make: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        make()


def test_no_guarantee_where_end_cells_hold_everything_beyond() -> None:
    part = gf.Partition.uniform(bins=20, low=-0.1, high=0.1, outside="clip")
    agent = gf.CSCALPlus(partition=part, n_actions=5, span=2.0, lipschitz=6.4, holder=1.0)
    assert "outside is 'clip'" in str(agent.guarantee)


# ---------------------------------------------------------------------- numbers of other kinds


@pytest.mark.parametrize("kind", [np.uint8, np.float64, np.int16, float])
def test_an_agent_that_learns_at_every_step_takes_any_kind_of_whole_number(kind: Any) -> None:
    """`np.uint8(100) * 3` is 44: the values of another pair were changed."""
    plain, other = (gf.OptimisticQ(200, 3, span=1.0, horizon=1000) for _ in range(2))
    for s, a, to in ((100, 1, 3), (150, 2, 199)):
        plain.observe(s, a, 0.5, to)
        other.observe(kind(s), kind(a), 0.5, kind(to))
    assert np.array_equal(plain.target, other.target)
    assert plain.t == other.t == 2


# ---------------------------------------------------------------------- files


def pays_a_quarter(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = uniforms[0]
    return 0.25


def pays_more(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = uniforms[0]
    return 0.75


@pytest.mark.slow
def test_a_checkpoint_of_another_step_function_is_refused(tmp_path: Path) -> None:
    def live(step: Any) -> float:
        env = gf.environments.ContinuousEnvironment.from_function(step, dim=1, n_actions=2)
        agent = gf.CSCALPlus(partition=UNIT, n_actions=2, span=1.0)
        run = gf.simulate(agent, env, 1000, gain=1.0, checkpoint_file=tmp_path / "run")
        return float(run.rewards[-1])

    assert live(pays_a_quarter) == live(pays_a_quarter) == 250.0
    with pytest.raises(InvalidRunError, match="environment"):
        live(pays_more)


def test_a_refused_checkpoint_leaves_the_agent_new(tmp_path: Path) -> None:
    path = tmp_path / "run"
    gf.simulate(scal_plus(), RIVER, 1000, checkpoint_file=path)
    header, arrays = read_archive(RUN_FILE, path)
    write_archive(RUN_FILE, path, header, {**arrays, "clock": arrays["clock"][:2]})
    agent = scal_plus()
    with pytest.raises(InvalidRunError, match="clock"):
        gf.simulate(agent, RIVER, 1000, checkpoint_file=path)
    assert agent.t == 0
    assert len(agent.episodes) == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("plan_actions", lambda a: a + 999), ("plan_actions", lambda a: a.astype(np.float64)),
        ("plan_values", lambda a: a[:2]), ("own_values", lambda a: a * np.nan),
        ("statistics_reward_sum", lambda a: a * np.nan), ("statistics_next_state", lambda a: a.astype(np.int64) - 9),
        ("statistics_count", lambda a: a.astype(np.float64)), ("records", lambda a: a.reshape(1, -1)),
    ],
)  # fmt: skip
def test_a_file_written_with_impossible_arrays_is_refused(name: str, change: Any, tmp_path: Path) -> None:
    agent, path = scal_plus(), tmp_path / "agent"
    gf.simulate(agent, RIVER, 1000)
    agent.save(path)
    header, arrays = read_archive(AGENT_FILE, path)
    write_archive(AGENT_FILE, path, header, {**arrays, name: change(arrays[name])})
    with pytest.raises(InvalidAgentError, match="damaged"):
        gf.load_agent(path)


@pytest.mark.parametrize(
    "change",
    [
        {"t": -3}, {"t": 10**30}, {"settings": {"n_states": 10**12, "n_actions": 2, "span": 1.0}},
        {"plan": {"gain_bounds": [1.0, 0.0], "sweeps": 1, "doubling": True, "last_step": None,
                  "stop_on_new_state": False, "span": None}},
    ],
)  # fmt: skip
def test_a_file_written_with_impossible_numbers_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    agent, path = scal_plus(), tmp_path / "agent"
    gf.simulate(agent, RIVER, 1000)
    agent.save(path)
    header, arrays = read_archive(AGENT_FILE, path)
    write_archive(AGENT_FILE, path, {**header, **change}, arrays)
    with pytest.raises(InvalidAgentError, match="damaged"):
        gf.load_agent(path)


def test_a_name_that_is_none() -> None:
    none: Any = None
    with pytest.raises(GainfulError, match="name of a file"):
        gf.load_agent(none)
    with pytest.raises(GainfulError, match="name of a file"):
        scal_plus().save(none)


def test_an_agent_with_a_numpy_number_can_be_saved(tmp_path: Path) -> None:
    agent = gf.OptimisticQ(6, 2, span=7.0, horizon=1000, effective_horizon=np.int64(5))  # type: ignore[arg-type]
    agent.save(tmp_path / "agent")
    assert gf.load_agent(tmp_path / "agent").effective_horizon == 5.0
