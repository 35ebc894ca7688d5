"""A durable agent is the agent itself, to the bit, with a memory that outlives its process."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.errors import (
    ConflictError,
    GainfulError,
    InvalidArgumentError,
    JournalError,
    UnknownAgentError,
    UnknownDecisionError,
)
from gainful.live import Decision, DurableAgent, Receipt, fit_log, open_agent, read_journal
from gainful.live.agent_config import make_agent
from gainful.live.folder import Folder
from tests.live.lives import CONFIG, QUICK, A, S, bits, killed, lived, opened, reward_at, state_at, wait_for

AGENTS: dict[str, dict[str, Any]] = {
    "scal-plus": {"span": 3.0, "bonus_scale": 0.2},
    "scal-plus local": {"span": 3.0, "bonus_scale": 0.2, "replanning": "local"},
    "scal-plus mixed": {"span": 0.05, "bonus_scale": 0.01, "mixture": "min-action"},
    "kl-scal-plus": {},
    "kl-scal-plus vanishing": {"span": 3.0, "episodes": "vanishing"},
    "kl-scal-plus tucrl": {"unreachable": "tucrl"},
    "balanced-kl-scal-plus": {},
    "optimistic-q": {"span": 1.0, "horizon": 1000},
    "epsilon-greedy-q": {},
    "count-bonus": {"counts": "modulo:buckets=2"},
    "fixed": {},
    "mbie-eb": {"discount": 0.9, "m": 100},
    "imed-rl": {},
    "imed-rl lazy": {"lazy": 0.05},
    "psrl": {},
    "opt-psrl": {"horizon": 1000},
    "ucbvi": {"episode_length": 10, "horizon": 1000},
    "kl-ucrl": {"horizon": 1000},
    "pmevi-dt": {"horizon": 1000, "span": 3.0},
    "pmevi-dt on ucrl2": {"horizon": 1000, "base": "ucrl2", "bias": "azuma"},
    "scal": {"span": 3.0},
    "tucrl": {},
    "ucrl2": {},
    "ucrl2b": {},
    "ucrl3": {},
}


def config_of(name: str) -> dict[str, Any]:
    return {"agent": name.split()[0], "n_states": S, "n_actions": A, **AGENTS[name]}


# ---------------------------------------------------------------------- the same bits


IN_EVERY_TEST = ("scal-plus", "kl-scal-plus", "optimistic-q")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in IN_EVERY_TEST else pytest.mark.slow) for n in AGENTS]
)
def test_every_agent_lives_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    plain, _ = make_agent(config_of(name))
    lived(plain, 150)
    path = tmp_path / "agent"
    agent = opened(path, config_of(name), snapshot_every=50)
    for until in (1, 30, 77, 78, 120):
        lived(agent, until)
        if until % 2:
            killed(agent)
        else:
            agent.close()
        agent = opened(path, snapshot_every=50)
        assert agent.t == until
    lived(agent, 150)
    assert bits(agent) == bits(plain)
    agent.close()
    with opened(path) as again:
        assert bits(again) == bits(plain)


@pytest.mark.parametrize("planning", ["auto", "background"])
@pytest.mark.parametrize(
    "name",
    ["scal-plus", *(pytest.param(n, marks=pytest.mark.slow) for n in ("scal-plus local", "tucrl", "psrl", "ucrl2b"))],
)
def test_plans_made_beside_the_decisions_are_replayed_to_the_same_bits(
    name: str, planning: Any, tmp_path: Path
) -> None:
    path = tmp_path / "agent"
    agent = opened(path, config_of(name), planning=planning, snapshot_every=37)
    for until in (1, 30, 77, 78, 250):
        lived(agent, until)
        before = bits(agent)
        killed(agent)
        agent = opened(path, planning=planning, snapshot_every=37)
        assert bits(agent) == before
    frame = read_journal(path)
    plans = frame[frame.kind == "plan"]
    assert len(plans) == len(agent.episodes)
    assert (plans.planned_from <= plans.adopted_at).all()
    if planning == "background":
        assert (frame.kind == "plan begun").any()
    if (plans.planned_from < plans.adopted_at).any():
        assert not agent.guarantee.holds
        assert "adopted later" in agent.guarantee.reason_void
    agent.close()


OTHERS = ("scal-plus local", "scal-plus mixed", "tucrl", "psrl", "ucrl2b", "scal")


@pytest.mark.parametrize("name", ["scal-plus", *(pytest.param(n, marks=pytest.mark.slow) for n in OTHERS)])
def test_a_twin_that_is_waited_for_makes_the_plans_of_the_agent_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gainful.live import state_machine
    from gainful.live.background_planner import BackgroundPlanner

    begun = []

    class Counting(BackgroundPlanner):
        def begin(self, agent: Any) -> None:
            begun.append(agent.t)
            super().begin(agent)

    for name_there, value in (
        ("BACKGROUND_FROM_PAIRS", 0),
        ("QUICK_PLAN_SECONDS", 0.0),
        ("PLAN_WAIT_SECONDS", 60.0),
        ("BackgroundPlanner", Counting),
    ):
        monkeypatch.setattr(state_machine, name_there, value)
    plain, _ = make_agent(config_of(name))
    lived(plain, 200)
    agent = opened(tmp_path / "a", config_of(name), planning="auto", snapshot_every=60)
    for until in (1, 60, 131):
        lived(agent, until)
        assert begun
        killed(agent)
        agent = opened(tmp_path / "a", planning="auto", snapshot_every=60)
    lived(agent, 200)
    assert bits(agent) == bits(plain)
    assert agent.vacuous == plain.vacuous
    agent.close()
    with opened(tmp_path / "a") as again:
        assert bits(again) == bits(plain)


def test_a_plan_under_way_at_a_kill_is_made_again_and_adopted(tmp_path: Path) -> None:
    path = tmp_path / "agent"
    agent = opened(path, config_of("scal-plus"), planning="background")
    while not agent.planning_under_way:
        lived(agent, agent.t + 1)
    visits = agent.statistics.visits.copy()
    old = agent.actions
    killed(agent)
    again = opened(path, planning="background")
    assert again.planning_under_way
    assert np.array_equal(again.statistics.visits, visits)
    assert np.array_equal(again.actions, old)  # type: ignore[arg-type]
    lived(again, again.t + 5)
    again.snapshot()  # which waits for the plan
    assert len(again.episodes) > 1
    again.close()


def test_decisions_go_on_while_a_plan_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    agent = opened(tmp_path / "agent", config_of("scal-plus"), planning="background")
    lived(agent, 3)
    gate = threading.Event()
    plan = gf.SCALPlus.plan

    def slow(self: Any, statistics: Any, t: int) -> Any:
        gate.wait(60)
        return plan(self, statistics, t)

    agent.snapshot()  # which waits for a plan under way
    monkeypatch.setattr(gf.SCALPlus, "plan", slow)
    episodes = len(agent.episodes)
    lived(agent, 60)
    assert agent.planning_under_way
    assert len(agent.episodes) == episodes
    gate.set()
    wait_for("gainful-planning")
    agent.act(0)
    assert len(agent.episodes) == episodes + 1
    frame = read_journal(agent.path)
    last = frame[frame.kind == "plan"].iloc[-1]
    assert last.planned_from < last.adopted_at == 60
    agent.close()


def test_snapshots_are_made_although_there_is_always_a_plan_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    plan = gf.SCALPlus.plan

    def slow(self: Any, statistics: Any, t: int) -> Any:
        time.sleep(0.02)
        return replace(plan(self, statistics, t), last_step=0)  # every decision wants another plan

    monkeypatch.setattr(gf.SCALPlus, "plan", slow)
    agent = opened(
        tmp_path / "a",
        config_of("tucrl") | {"agent": "scal-plus", "span": 1.0},
        planning="background",
        snapshot_every=20,
    )
    until = time.monotonic() + 60
    while Folder(agent.path).snapshots()[0][0] < 100 and time.monotonic() < until:
        lived(agent, agent.t + 1)
        time.sleep(0.001)
    assert Folder(agent.path).snapshots()[0][0] >= 100
    agent.close()


def test_points_live_on_to_the_same_bits_through_refinements(tmp_path: Path) -> None:
    config = {"agent": "c-scal-plus", "n_actions": 2, "span": 1.0, "lipschitz": 1.0, "holder": 1.0, "dim": 2}
    rng = np.random.default_rng(1)
    points, rewards = rng.random((1301, 2)), rng.random(1300)
    plain, _ = make_agent(config)
    path = tmp_path / "agent"
    agent = opened(path, config, snapshot_every=300)
    for i in range(1300):
        a, b = plain.act(points[i]), agent.act(points[i])
        assert a == b
        plain.observe(points[i], a, rewards[i], points[i + 1])
        agent.observe(points[i], b, rewards[i], points[i + 1])
        if i in (100, 1030):
            killed(agent)
            agent = opened(path, snapshot_every=300)
    assert plain.stage == 1
    assert bits(agent) == bits(plain)
    agent.close()
    frame = read_journal(path)
    seen = frame[frame.kind == "observation"]
    assert np.array_equal(seen[["state_0", "state_1"]].to_numpy(), points[:-1])
    assert np.array_equal(seen["reward"].to_numpy(), rewards)


@pytest.mark.parametrize("planning", ["inline", "background"])
def test_points_on_given_cells(planning: Any, tmp_path: Path) -> None:
    config = {"agent": "uccrl", "n_actions": 2, "span": 1.0, "partition": gf.Partition.uniform(bins=5)}
    agent = opened(tmp_path / "a", config, planning=planning)
    for i in range(60):
        x = (i * 0.37) % 1.0
        agent.observe(x, agent.act(x), 0.5, (x + 0.37) % 1.0)
    before = bits(agent)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert bits(again) == before
        end = np.float32(0.1) * np.float32(10)
        again.observe(np.array([end]), 0, 0.5, np.array([end]))
        with pytest.raises(InvalidArgumentError):
            again.act(1.5)


@pytest.mark.slow
def test_an_agent_on_cells_of_a_tabular_one(tmp_path: Path) -> None:
    agent = gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=4), n_actions=2)
    with opened(tmp_path / "a", agent) as live:
        live.observe(0.3, live.act(0.3), 1.0, 0.9)
        before = bits(live)
    with opened(tmp_path / "a") as again:
        assert bits(again) == before


# ---------------------------------------------------------------------- decisions out of step


def test_a_decision_is_an_action_that_knows_its_id(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        d = agent.act(3)
        assert isinstance(d, int)
        assert isinstance(d, Decision)
        assert d == d.action
        assert d.state == 3
        assert [p.decision_id for p in agent.pending] == [d.decision_id]
        assert copy.deepcopy(d).decision_id == pickle.loads(pickle.dumps(d)).decision_id == d.decision_id
        assert np.zeros(5)[d] == 0
        assert str(d.action) == str(d)
        assert "decision_id" in repr(d)


def test_outcomes_may_come_in_any_order_and_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG)
    made = [agent.act(i % S) for i in range(20)]
    killed(agent)
    agent = opened(path)
    assert [p.decision_id for p in agent.pending] == [d.decision_id for d in made]
    for d in reversed(made):
        receipt = agent.report(d.decision_id, 0.5, (d.state + 1) % S)
        assert not receipt.repeated
    assert agent.pending == ()
    assert agent.t == 20
    assert not agent.guarantee.holds
    assert "outcomes were reported after observations" in agent.guarantee.reason_void
    killed(agent)
    with opened(path) as again:
        assert again.t == 20
        assert again.pending == ()


def test_an_outcome_told_twice_is_recognised_and_another_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=3)
    d = agent.act(2)
    first = agent.report(d.decision_id, 0.25, 4)
    assert first == Receipt(first.sequence, False)
    for _ in range(2):
        assert agent.report(d.decision_id, 0.25, 4) == Receipt(first.sequence, True)
        assert agent.observe(2, int(d), 0.25, 4, decision_id=d.decision_id) == Receipt(first.sequence, True)
        with pytest.raises(ConflictError, match=r"reward 0.25 and next state 4, now with reward 0.5"):
            agent.report(d.decision_id, 0.5, 4)
        assert agent.t == 1
        killed(agent)
        agent = opened(path, snapshot_every=3)
    lived(agent, 10)
    assert agent.report(d.decision_id, 0.25, 4).repeated
    agent.close()


@pytest.mark.parametrize("wrong", [0, -1, 999, "1", None, 1.5, True])
def test_an_unknown_decision(wrong: Any, tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        with pytest.raises(UnknownDecisionError):
            agent.report(wrong, 0.5, 0)
        with pytest.raises(UnknownDecisionError):
            agent.abandon(wrong)
        assert agent.t == 0


def test_an_abandoned_decision_waits_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG)
    d = agent.act(0)
    agent.abandon(d.decision_id)
    assert agent.pending == ()
    killed(agent)
    with opened(path) as again:
        assert again.pending == ()
        with pytest.raises(UnknownDecisionError, match="abandoned"):
            again.report(d.decision_id, 0.5, 1)


def test_a_loop_of_act_and_observe_leaves_nothing_waiting(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        lived(agent, 20)
        assert agent.pending == ()
        a = int(agent.act(1))  # a plain int: the oldest such decision waiting is meant
        agent.observe(1, a, 0.5, 2)
        assert agent.pending == ()
        agent.act(1)
        agent.observe(3, 0, 0.5, 2)  # chosen by somebody else
        assert len(agent.pending) == 1
        agent.act(1)
        agent.observe(1, a, 0.5, 2)  # which of the two? the oldest
        assert len(agent.pending) == 1
        assert agent.t == 23


def test_too_many_waiting_decisions_are_abandoned_the_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, max_pending=3)
    made = [agent.act(i) for i in range(5)]
    assert [p.decision_id for p in agent.pending] == [d.decision_id for d in made[2:]]
    killed(agent)
    with opened(path) as again:
        assert [p.decision_id for p in again.pending] == [d.decision_id for d in made[2:]]
        with pytest.raises(UnknownDecisionError, match="more than 3"):
            again.report(made[0].decision_id, 0.5, 0)


def test_an_observation_must_be_of_its_decision(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        d = agent.act(2)
        with pytest.raises(ConflictError, match="not"):
            agent.observe(3, int(d), 0.5, 0, decision_id=d.decision_id)
        assert agent.t == 0
        assert len(agent.pending) == 1


def test_decisions_side_by_side_draw_independently(tmp_path: Path) -> None:
    """Asked 400 times before any outcome, a uniform policy plays each action about as often."""
    config = {"agent": "fixed", "n_states": 2, "n_actions": 2}
    path = tmp_path / "a"
    agent = opened(path, config)
    first = [int(agent.act(0)) for _ in range(200)]
    killed(agent)
    agent = opened(path)
    chosen = first + [int(agent.act(0)) for _ in range(200)]
    killed(agent)
    assert 140 < sum(chosen) < 260  # 6 standard deviations of 10
    other = opened(tmp_path / "b", config)
    assert [int(other.act(0)) for _ in range(400)] == chosen
    assert opened(path).notices == []


# ---------------------------------------------------------------------- requests


def test_a_repeated_request_does_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, CONFIG, snapshot_every=2)
    d = agent.act(1, request_id="a1")
    told = agent.report(d.decision_id, 0.5, 2, request_id="r1")
    seen = agent.observe(4, 0, 0.5, 1, request_id="o1")
    many = agent.observe_many([0, 1], [0, 0], [0.5, 0.5], [1, 2], request_id="m1")
    for _ in range(3):
        again = agent.act(1, request_id="a1")
        assert (int(again), again.decision_id) == (int(d), d.decision_id)
        assert agent.report(d.decision_id, 0.5, 2, request_id="r1") == Receipt(told.sequence, True)
        assert agent.observe(4, 0, 0.5, 1, request_id="o1") == Receipt(seen.sequence, True)
        assert agent.observe_many([0, 1], [0, 0], [0.5, 0.5], [1, 2], request_id="m1") == Receipt(many.sequence, True)
        assert agent.t == 4
        assert agent.pending == ()
        with pytest.raises(ConflictError, match="'a1'"):
            agent.act(2, request_id="a1")
        with pytest.raises(ConflictError, match="'o1'"):
            agent.observe(4, 0, 0.75, 1, request_id="o1")
        with pytest.raises(ConflictError):
            agent.observe(4, 0, 0.5, 1, request_id="a1")
        killed(agent)
        agent = opened(path, snapshot_every=2)
    agent.close()


def test_a_repeated_request_of_the_outcome_of_a_decision(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        d = agent.act(1)
        first = agent.observe(1, d, 0.5, 2, request_id="x")
        assert agent.observe(1, d, 0.5, 2, request_id="x") == Receipt(first.sequence, True)
        assert agent.t == 1


def test_only_the_last_requests_are_remembered(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG, remember=2) as agent:
        for name in ("x", "y", "z"):
            agent.observe(0, 0, 0.5, 1, request_id=name)
        assert agent.observe(0, 0, 0.5, 1, request_id="z").repeated
        assert not agent.observe(0, 0, 0.5, 1, request_id="x").repeated


@pytest.mark.parametrize("wrong", ["", "x" * 201, 7, b"x"])
def test_a_request_id_that_is_none(wrong: Any, tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        with pytest.raises(InvalidArgumentError, match="request_id"):
            agent.act(0, request_id=wrong)
        with pytest.raises(InvalidArgumentError, match="request_id"):
            agent.observe(0, 0, 0.5, 1, request_id=wrong)
        assert agent.sequence == 0


# ---------------------------------------------------------------------- many at once


@pytest.mark.parametrize("name", ["scal-plus", "tucrl", "optimistic-q"])
def test_a_batch_is_the_same_as_its_rows_one_by_one(name: str, tmp_path: Path) -> None:
    config = config_of(name)
    plain, _ = make_agent(config)
    lived(plain, 40)
    agent = opened(tmp_path / "a", config)
    lived(agent, 40)
    rows = [(state_at(t), t % A, reward_at(t, t % A), state_at(t + 1)) for t in range(40, 400)]
    for row in rows:
        plain.observe(*row)
    receipt = agent.observe_many(*zip(*rows, strict=True))
    assert bits(agent) == bits(plain)
    killed(agent)
    with opened(tmp_path / "a") as again:
        assert bits(again) == bits(plain)
        assert again.sequence == receipt.sequence
        lived(plain, 450)
        lived(again, 450)
        assert bits(again) == bits(plain)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, S, r"states\[2\] is 7"),
        (1, -1, r"actions\[2\] is -1"),
        (2, 1.5, r"rewards\[2\] is 1.5"),
        (2, float("nan"), r"rewards\[2\] is nan"),
        (3, 0.5, r"next_states\[2\] is 0.5"),
        (0, "x", "states"),
        (1, None, "actions"),
        (3, 10**30, "next_states"),
    ],
)
def test_a_batch_with_a_bad_row_changes_nothing(column: int, value: Any, message: str, tmp_path: Path) -> None:
    columns: list[list[Any]] = [[0, 1, 2], [0, 1, 2], [0.5, 0.5, 0.5], [1, 2, 3]]
    columns[column][2] = value
    with opened(tmp_path / "a", CONFIG) as agent:
        with pytest.raises(InvalidArgumentError, match=message):
            agent.observe_many(*columns)
        assert agent.t == agent.sequence == 0


def test_a_batch_of_unequal_columns(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        with pytest.raises(InvalidArgumentError, match="as many of each"):
            agent.observe_many([0, 1], [0], [0.5], [1])
        with pytest.raises(InvalidArgumentError, match="at least 1"):
            agent.observe_many([], [], [], [])


# ---------------------------------------------------------------------- bad calls


@pytest.mark.parametrize("state", [-1, S, "1", None, 0.5, float("nan"), 10**400, [1]])
def test_a_state_that_is_none(state: Any, tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        with pytest.raises(InvalidArgumentError):
            agent.act(state)
        with pytest.raises(InvalidArgumentError):
            agent.observe(state, 0, 0.5, 0)
        with pytest.raises(InvalidArgumentError):
            agent.observe(0, 0, 0.5, state)
        assert agent.t == agent.sequence == 0


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf"), "x", None, 10**400])
def test_a_reward_that_cannot_be(reward: Any, tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        d = agent.act(0)
        with pytest.raises(InvalidArgumentError, match="reward"):
            agent.observe(0, d, reward, 1)
        with pytest.raises(InvalidArgumentError, match="reward"):
            agent.report(d.decision_id, reward, 1)
        assert agent.t == 0
        assert len(agent.pending) == 1


def test_an_action_the_state_does_not_have(tmp_path: Path) -> None:
    allowed = np.ones((S, A), dtype=bool)
    allowed[0, 1] = False
    with opened(tmp_path / "a", {**CONFIG, "allowed": allowed}) as agent:
        with pytest.raises(InvalidArgumentError, match="does not have"):
            agent.observe(0, 1, 0.5, 1)
        with pytest.raises(InvalidArgumentError, match="does not have"):
            agent.observe_many([1, 0], [1, 1], [0.5, 0.5], [1, 1])
        lived(agent, 30)
    with opened(tmp_path / "a", {**CONFIG, "allowed": allowed}) as again:
        assert again.t == 30
    with pytest.raises(JournalError, match="what it knew at first"):
        opened(tmp_path / "a", CONFIG)


def test_a_closed_agent_says_so(tmp_path: Path) -> None:
    agent = opened(tmp_path / "a", CONFIG)
    agent.close()
    agent.close()
    for call in (lambda: agent.act(0), lambda: agent.observe(0, 0, 0.5, 0), agent.snapshot, agent.sync, agent.copy):
        with pytest.raises(JournalError, match="closed"):
            call()
    assert "closed" in repr(agent)


# ---------------------------------------------------------------------- opening


def test_a_config_that_contradicts_the_folder_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "a"
    opened(path, CONFIG).close()
    opened(path, CONFIG).close()
    for config, difference in (
        ({**CONFIG, "span": 5.0}, r"span: stored 3.0, given 5.0"),
        ({**CONFIG, "seed": 4}, r"seed: stored 0, given 4"),
        ({**CONFIG, "agent": "scal", "bonus_scale": None}, "."),
        ({"agent": "ucrl2", "n_states": S, "n_actions": A}, r"agent: stored SCALPlus, given UCRL2"),
    ):
        with pytest.raises(GainfulError, match=difference):
            opened(path, config)
    with pytest.raises(JournalError, match=r"remember: stored 4096, given 5"):
        opened(path, remember=5)
    opened(path).close()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"n_states": 2}, "config\\['agent'\\]"),
        ({"agent": "scal-plus"}, "lacks 'n_states'"),
        (7, "expected a dictionary"),
        ({**CONFIG, "spam": 1}, "'spam'"),
        ({**CONFIG, "prior_weight": 1}, "expected both or neither"),
        ({**CONFIG, "prior": 1, "prior_weight": 1}, "expected an MDP"),
        ({**CONFIG, "span": -1}, "span is -1"),
        ("scal-plus", "expected a dictionary"),
    ],
)
def test_a_config_that_cannot_be_leaves_no_folder(config: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        opened(tmp_path / "a", config)
    assert not (tmp_path / "a").exists()


def test_an_agent_that_a_file_could_not_name(tmp_path: Path) -> None:
    class Mine(gf.SCALPlus):
        pass

    class SCALPlus(gf.SCALPlus):
        pass

    for made in (Mine, SCALPlus):
        with pytest.raises(GainfulError):
            opened(tmp_path / "a", made(S, A, span=1.0))
        assert not (tmp_path / "a").exists()


def test_an_unknown_agent(tmp_path: Path) -> None:
    with pytest.raises(UnknownAgentError, match="did you mean 'scal-plus'"):
        opened(tmp_path / "a", {**CONFIG, "agent": "scal-pluss"})


@pytest.mark.parametrize(
    "options",
    [
        {"fsync": "always"},
        {"fsync": 0},
        {"fsync": -1},
        {"fsync": float("nan")},
        {"planning": "later"},
        {"snapshot_every": 0},
        {"snapshot_every": 1.5},
        {"remember": 0},
        {"max_pending": "x"},
        {"keep_history": 1},
    ],
)
def test_options_that_cannot_be(options: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        opened(tmp_path / "a", CONFIG, **options)


def test_planning_beside_decisions_needs_an_agent_that_plans(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="background"):
        opened(tmp_path / "a", config_of("optimistic-q"), planning="background")
    opened(tmp_path / "a", config_of("optimistic-q"), planning="auto").close()


def test_places_that_hold_something_else(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no durable agent"):
        opened(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(JournalError, match="is a file"):
        opened(tmp_path / "file", CONFIG)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(JournalError, match=r"other files \(thesis.tex\)"):
        opened(tmp_path / "mine", CONFIG)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    (tmp_path / "empty").mkdir()
    opened(tmp_path / "empty", CONFIG).close()
    with pytest.raises(InvalidArgumentError, match="path is 7"):
        open_agent(7)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- beginning with knowledge


LOG: dict[str, list[Any]] = {
    "state": [0, 1, 2, 0],
    "action": [1, 0, 2, 1],
    "reward": [0.5, 1.0, 0.0, 0.25],
    "next_state": [1, 2, 0, 3],
}


def test_a_log_is_observed_before_going_live(tmp_path: Path) -> None:
    fitted = fit_log(LOG, CONFIG)
    plain, _ = make_agent(CONFIG)
    for row in zip(*LOG.values(), strict=True):
        plain.observe(*row)
    assert bits(fitted) == bits(plain)
    with opened(tmp_path / "a", fitted) as agent:
        assert bits(agent) == bits(plain)
        lived(agent, 50)
    with opened(tmp_path / "a", fit_log(LOG, CONFIG)) as again:
        assert again.t == 50
    with pytest.raises(JournalError, match="what it knew at first: stored 4 observations, given 0"):
        opened(tmp_path / "a", CONFIG)
    with opened(tmp_path / "b", CONFIG, history=LOG) as agent:
        assert bits(agent) == bits(plain)
        assert read_journal(agent.path)["source"].tolist() == ["history"] * 4
    opened(tmp_path / "b", CONFIG, history=LOG).close()
    opened(tmp_path / "b", CONFIG).close()
    with pytest.raises(JournalError, match="history"):
        opened(tmp_path / "b", CONFIG, history={**LOG, "reward": [0.5, 1.0, 0.0, 0.5]})


def test_a_log_with_labels_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("state,action,reward,next_state\nidle,go,0.5,busy\nbusy,stay,1,idle\n")
    config = {"agent": "scal-plus", "n_states": 2, "n_actions": 2, "span": 1.0}
    agent = fit_log(file, config, states=["idle", "busy"], actions={"go": 1, "stay": 0})
    assert agent.statistics.visits.tolist() == [0, 1, 1, 0]
    with pytest.raises(GainfulError, match=r"log.csv, line 2, column 'state': found 'idle'"):
        fit_log(file, config)
    with pytest.raises(GainfulError, match=r"column 'action': found 'go'.*give labels their numbers with actions="):
        fit_log(file, config, states=["idle", "busy"])
    with pytest.raises(GainfulError, match=r"log.csv, line 3, column 'action': found 'stay'"):
        fit_log(file, config, states=["idle", "busy"], actions=["go"])


def test_a_log_of_units_and_times_is_the_log_of_its_transitions() -> None:
    config = {"agent": "ucrl2b", "n_states": 2, "action_labels": ["wait", "order"], "cost_min": 0.0, "cost_max": 9.0}
    days = {
        "shop": ["Ulm", "Kiel", "Ulm", "Kiel", "Ulm"],
        "date": [2, 1, 1, 2, 3],
        "stock": [1, 0, 0, 1, 0],
        "did": ["wait", "order", "order", None, None],
        "euros": [1.0, 4.0, 5.0, None, None],
    }
    names = {"unit": "shop", "time": "date", "state": "stock", "action": "did", "cost": "euros"}
    moves = {"state": [0, 1, 0], "action": ["order", "wait", "order"], "cost": [5.0, 1.0, 4.0], "next_state": [1, 0, 1]}
    found, expected = fit_log(days, config, columns=names), fit_log(moves, config)
    assert found.t == expected.t == 3
    assert found.statistics.visits.tolist() == expected.statistics.visits.tolist()
    assert found.statistics.reward_sum.tolist() == expected.statistics.reward_sum.tolist()
    with pytest.raises(GainfulError, match="no column 'next_state', and no columns 'unit' and 'time'"):
        fit_log({k: v for k, v in moves.items() if k != "next_state"}, config)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("state", 7, "row 2, column 'state': found 7"),
        ("action", -1, "row 2, column 'action'"),
        ("reward", 2.0, "row 2, column 'reward': found 2.0"),
        ("reward", float("nan"), "row 2, column 'reward'"),
        ("next_state", 99, "row 2, column 'next_state'"),
    ],
)
def test_a_log_with_a_bad_row(column: str, value: Any, message: str) -> None:
    bad: dict[str, list[Any]] = {name: list(values) for name, values in LOG.items()}
    bad[column][2] = value
    with pytest.raises(GainfulError, match=message):
        fit_log(bad, CONFIG)


def test_a_log_without_a_column() -> None:
    with pytest.raises(GainfulError, match="'reward'"):
        fit_log({k: v for k, v in LOG.items() if k != "reward"}, CONFIG)


def test_a_log_of_points() -> None:
    config = {"agent": "c-scal-plus", "n_actions": 2, "span": 1.0, "lipschitz": 1.0, "holder": 1.0, "dim": 1}
    log = {"state": [0.1, 0.9], "action": [0, 1], "reward": [0.5, 1.0], "next_state": [0.9, 0.1]}
    agent = fit_log(log, config)
    other, _ = make_agent(config)
    for row in zip(*log.values(), strict=True):
        other.observe(*row)
    assert bits(agent) == bits(other)
    with pytest.raises(GainfulError, match="row 1"):
        fit_log({**log, "state": [0.1, 1.9]}, config)


def test_a_fitted_agent_is_a_copy() -> None:
    agent, _ = make_agent(CONFIG)
    assert fit_log(LOG, agent).t == 4
    assert agent.t == 0


def test_a_prior_model_counts_as_observations_and_voids_the_guarantee(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    config = {"agent": "scal-plus", "span": 7.0, "prior": mdp, "prior_weight": 7}
    with opened(tmp_path / "a", config) as agent:
        statistics = agent.statistics
        assert (statistics.visits == 7).all()
        assert agent.t == 84
        P, R = mdp.to_dense()
        for k in range(12):
            to, count = statistics.row(k)
            assert count.sum() == 7
            assert np.abs(count - 7 * P[k // 2, k % 2][to]).max() < 1.0
        assert np.allclose(statistics.reward_sum, 7 * R.reshape(-1), rtol=0, atol=1e-12)
        assert not agent.guarantee.holds
        assert "prior model" in agent.guarantee.reason_void
        agent.observe(0, agent.act(0), 0.5, 0)
        before = bits(agent)
    with opened(tmp_path / "a", config) as again:
        assert bits(again) == before
        assert not again.guarantee.holds
    with pytest.raises(JournalError, match="prior"):
        opened(tmp_path / "a", {**config, "prior_weight": 8})


@pytest.mark.parametrize("weight", [0, -1, 1.5, "x", True, 10**9])
def test_a_prior_weight_that_cannot_be(weight: Any, tmp_path: Path) -> None:
    config = {"agent": "scal-plus", "span": 7.0, "prior": gf.environments.riverswim(6), "prior_weight": weight}
    with pytest.raises(InvalidArgumentError, match="prior_weight"):
        opened(tmp_path / "a", config)


def test_a_prior_that_does_not_fit(tmp_path: Path) -> None:
    prior = {"prior": gf.environments.riverswim(6), "prior_weight": 5}
    for config in ({**CONFIG, **prior}, {"agent": "optimistic-q", "span": 1.0, "horizon": 100, **prior}):
        with pytest.raises(InvalidArgumentError):
            opened(tmp_path / "a", config)
    small = {"agent": "scal-plus", "span": 7.0, "reward_max": 0.5, "reward_min": 0.0, **prior}
    with pytest.raises(InvalidArgumentError, match="range"):
        opened(tmp_path / "a", small)


# ---------------------------------------------------------------------- changing settings


@pytest.mark.parametrize("name", ["scal-plus", "scal-plus local", "scal", "ucrl2b", "kl-scal-plus"])
@pytest.mark.parametrize("planning", ["inline", "background"])
def test_a_change_is_recorded_and_replayed(name: str, planning: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    agent = opened(path, config_of(name), planning=planning, snapshot_every=60)
    lived(agent, 50)
    old = agent.settings
    agent.set_bonus_scale(0.5, reason="too timid")
    if "span" in old:
        agent.set_span(1.5)
    before = len(agent.episodes)
    agent.act(0)
    agent.snapshot()  # which waits for the plan
    assert len(agent.episodes) > before
    scale = agent.changes[0]
    assert (scale.old, scale.new, scale.t, scale.reason) == (old[scale.name], 0.5, 50, "too timid")
    assert agent.settings[scale.name] == 0.5
    assert "was changed" in agent.guarantee.reason_void
    lived(agent, 120)
    kept, changes = bits(agent), agent.changes
    killed(agent)
    with opened(path, config_of(name), planning=planning) as again:
        assert bits(again) == kept
        assert again.changes == changes
        assert again.settings[scale.name] == 0.5
        lived(again, 200)
    frame = read_journal(path)
    assert "too timid" in frame[frame.kind == "change"].iloc[0].detail
    opened(path, {**config_of(name), **{c.name: c.new for c in changes}}).close()


def test_what_cannot_be_changed(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        wrong: list[dict[str, Any]] = [
            {"seed": 3},
            {"width_scale": 1.0},
            {"span": -1.0},
            {"bonus_scale": "x"},
            {},
            {"n_states": 9},
        ]
        for settings in wrong:
            with pytest.raises(InvalidArgumentError):
                agent.change(**settings)
        assert agent.sequence == 0
        assert agent.changes == ()
        assert agent.settings["span"] == 3.0
    with (
        opened(tmp_path / "q", config_of("optimistic-q")) as agent,
        pytest.raises(InvalidArgumentError, match="learned"),
    ):
        agent.set_span(2.0)


# ---------------------------------------------------------------------- the rest


def test_status_is_plain(tmp_path: Path) -> None:
    import json

    with opened(tmp_path / "a", {**CONFIG, "bonus_scale": 1.0}) as agent:
        assert agent.actions is None
        assert agent.gain_bounds is None
        lived(agent, 10)
        agent.predict(0)
        told = json.loads(json.dumps(agent.status(), allow_nan=False))
        assert told["observations"] == agent.t == 10
        assert told["guarantee_holds"]
        assert agent.actions is not None
        assert agent.actions.shape == (S,)
        assert agent.n_states == S
        assert agent.n_actions == A
        assert agent.dim == 0
        assert isinstance(agent.vacuous, bool)


def test_a_copy_goes_on_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "a", CONFIG) as agent:
        lived(agent, 10)
        alone = agent.copy()
        assert isinstance(alone, EpisodicAgent)
        lived(alone, 20)
        assert agent.t == 10
        lived(agent, 20)
        assert bits(agent) == bits(alone)
        alone.save(tmp_path / "file")


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    import threading

    with opened(tmp_path / "a", CONFIG, snapshot_every=50, planning="auto") as agent:

        def work() -> None:
            for _ in range(100):
                d = agent.act(1)
                agent.report(d.decision_id, 0.5, 2)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert agent.t == 400
        assert agent.pending == ()
    with opened(tmp_path / "a") as again:
        assert again.t == 400


@pytest.mark.parametrize("fsync", ["record", "off", 5])
def test_every_policy_of_syncing(fsync: Any, tmp_path: Path) -> None:
    agent = open_agent(tmp_path / "a", CONFIG, fsync=fsync, planning="inline", snapshot_every=20)
    lived(agent, 50)
    before = bits(agent)
    agent.sync()
    killed(agent)
    with open_agent(tmp_path / "a", **QUICK) as again:
        assert bits(again) == before
    assert isinstance(agent, DurableAgent)
