"""A durable agent takes and gives the user's words: a label in, a label out; an integer in, an integer out."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import ConflictError, InvalidArgumentError, InvalidMDPError, JournalError
from gainful.live import fit_log, open_agent, read_journal, recover
from gainful.live.agent_config import make_agent
from tests.live.lives import bits

MACHINE: dict[str, list[Any]] = {
    "state": ["new", "new", "worn", "worn", "worn", "broken"],
    "action": ["run", "run", "run", "run", "service", "repair"],
    "next_state": ["new", "worn", "worn", "broken", "new", "new"],
    "probability": [0.9, 0.1, 0.7, 0.3, 1.0, 1.0],
    "cost": [1.0, 1.0, 3.0, 3.0, 6.0, 40.0],
}
QUICK: dict[str, Any] = {"fsync": "off", "planning": "inline"}
CONFIG = {
    "agent": "kl-scal-plus",
    "state_labels": ["new", "worn", "broken"],
    "action_labels": ["run", "service", "repair"],
    "allowed": gf.MDP.from_table(MACHINE).allowed,
    "cost_min": 1.0,
    "cost_max": 40.0,
}


@pytest.fixture
def machine() -> gf.MDP:
    return gf.MDP.from_table(MACHINE)


def lived(agent: gf.DurableAgent, words: bool) -> None:
    """Eight steps of a machine, in words and costs, or in numbers and rewards."""
    states, actions = ("new", "worn", "broken"), ("run", "service", "repair")
    for s, a, cost, to in ((0, 0, 1.0, 0), (0, 0, 1.0, 1), (1, 1, 6.0, 0), (0, 0, 1.0, 1), (1, 0, 3.0, 2)):
        if words:
            agent.observe(states[s], actions[a], cost=cost, next_state=states[to])
        else:
            agent.observe(s, a, -cost, to)
    first = agent.act("broken" if words else 2)
    if words:
        agent.report(first, cost=40.0, next_state="new")
    else:
        agent.report(first, -40.0, 0)
    second = agent.act("broken" if words else 2)
    agent.observe("broken" if words else 2, second, -40.0, "new" if words else 0)
    if words:
        mixed: Any = ["run", 1]
        agent.observe_many(["new", "worn"], mixed, next_states=["worn", "new"], costs=[1.0, 6.0])
    else:
        agent.observe_many([0, 1], [0, 1], [-1.0, -6.0], [1, 0])


def test_words_and_numbers_are_the_same_to_the_bit(machine: gf.MDP, tmp_path: Path) -> None:
    made = gf.KLSCALPlus.for_mdp(machine)
    for name, words in (("words", True), ("numbers", False)):
        with open_agent(tmp_path / name, made if words else CONFIG, **QUICK) as agent:
            lived(agent, words)
            assert agent.n_pending == 0
    with open_agent(tmp_path / "words", **QUICK) as one, open_agent(tmp_path / "numbers", **QUICK) as other:
        assert bits(one.copy()) == bits(other.copy())
        assert one.labels == other.labels == made.labels


def test_a_label_in_is_a_label_out_also_after_a_restart(machine: gf.MDP, tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", gf.KLSCALPlus.for_mdp(machine), **QUICK) as agent:
        first = agent.act("broken", request_id="a")
        assert first == "repair"
        assert agent.act(2) == machine.action_index("repair")
    with open_agent(tmp_path / "machine", **QUICK) as agent:
        again = agent.act("broken", request_id="a")
        assert (again, again.decision_id, again.state, again.number) == ("repair", first.decision_id, "broken", 2)
        assert repr(again) == f"LabelledDecision(action='repair', decision_id={first.decision_id}, state='broken')"
        assert agent.predict("broken") == "repair"
        assert [(w.state, w.action, w.state_label, w.action_label) for w in agent.pending] == [
            (2, 2, "broken", "repair"),
            (2, 2, "broken", "repair"),
        ]
        policy = agent.policy()
        assert policy is not None
        assert list(policy) == ["new", "worn", "broken"]
        assert policy["broken"] == "repair"
        copied = pickle.loads(pickle.dumps(again))
        assert (copied, copied.decision_id, copied.number) == ("repair", first.decision_id, 2)


def test_costs_stay_costs(machine: gf.MDP, tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", gf.KLSCALPlus.for_mdp(machine), **QUICK) as agent:
        lived(agent, words=True)
        status = agent.status()
        assert agent.gain_bounds is not None
        low, high = agent.gain_bounds
    assert status["objective"] == "cost"
    assert 0.99 < low <= high < 40.01
    assert status["gain_bounds"] == [low, high]
    table = read_journal(tmp_path / "machine")
    seen = table[table.kind == "observation"]
    assert seen.state_label.tolist()[:3] == ["new", "new", "worn"]
    assert seen.action_label.tolist()[2] == "service"
    assert seen.next_state_label.tolist()[4] == "broken"
    assert seen.cost.tolist() == (-seen.reward).tolist()
    assert recover(tmp_path / "machine", tmp_path / "saved").lost == []
    with open_agent(tmp_path / "saved", **QUICK) as agent:
        assert agent.predict("broken") == "repair"


def test_an_exported_journal_is_a_log_in_words(machine: gf.MDP, tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", gf.KLSCALPlus.for_mdp(machine), **QUICK) as agent:
        lived(agent, words=True)
        visits = agent.statistics.visits.tolist()
    table = read_journal(tmp_path / "machine")
    log = table[table.kind == "observation"][["state_label", "action_label", "next_state_label", "cost"]]
    log.columns = ["state", "action", "next_state", "cost"]
    assert fit_log(log, gf.KLSCALPlus.for_mdp(machine)).statistics.visits.tolist() == visits


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"state": "wron"}, "there is no state 'wron'; did you mean 'worn'?"),
        ({"action": "fly"}, "there is no action 'fly'; labels are 'run', 'service', 'repair'"),
        ({"next_state": "x"}, "there is no state 'x'"),
        ({"action": "repair"}, "state 'worn' does not have it; it has 'run', 'service'"),
        ({"cost": 41.0}, "cost 41.0 at step 1, expected a number in [1, 40]"),
        ({"cost": "3"}, "expected a number in [1, 40]"),
        ({"cost": float("nan")}, "expected a number in [1, 40]"),
        ({"reward": -3.0}, "both a reward and a cost are given"),
        ({"cost": None}, "there is neither reward nor cost"),
    ],
)
def test_what_is_refused_is_told_in_the_users_words(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    row = {"state": "worn", "action": "run", "cost": 3.0, "next_state": "worn", **given}
    with open_agent(tmp_path / "machine", CONFIG, **QUICK) as agent:
        with pytest.raises(InvalidArgumentError) as caught:
            agent.observe(**row)
        assert message in str(caught.value)
        assert (agent.t, agent.sequence) == (0, 0)


def test_a_wrong_row_of_a_batch_is_named(tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", CONFIG, **QUICK) as agent:
        with pytest.raises(InvalidArgumentError, match=r"there is no state 'wron'") as caught:
            agent.observe_many(["new", "wron"], ["run", "run"], next_states=["new", "new"], costs=[1, 3])
        assert caught.value.name == "states[1]"
        with pytest.raises(InvalidArgumentError, match="costs are not numbers"):
            agent.observe_many(["new"], ["run"], next_states=["new"], costs=["1"])
        with pytest.raises(InvalidArgumentError, match="neither rewards nor costs"):
            agent.observe_many(["new"], ["run"], next_states=["new"])


def test_another_outcome_of_a_labelled_decision_is_a_conflict(tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", CONFIG, **QUICK) as agent:
        decision = agent.act("broken")
        assert agent.report(decision, cost=40.0, next_state="new").repeated is False
        assert agent.report(decision, cost=40.0, next_state="new").repeated is True
        said = "with cost 40 and next state 'new', now with cost 40 and next state 'worn'"
        with pytest.raises(ConflictError, match=said):
            agent.report(decision, cost=40.0, next_state="worn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state_labels": ["a", "a", "b"]}, "has 'a' twice"),
        ({"state_labels": "abc"}, "expected a list of text"),
        ({"state_labels": [1, 2, 3]}, "expected a list of text"),
        ({"n_states": 4}, "has 3 labels, expected 4, as n_states says"),
        ({"objective": "gain"}, "expected 'reward' or 'cost'"),
        ({"objective": "reward"}, "config has costs and rewards"),
        ({"reward_min": 0.0}, "config has costs and rewards"),
        ({"cost_max": float("inf")}, "expected a finite number"),
    ],
)
def test_labels_in_a_config_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        make_agent({**CONFIG, **change})
    assert message in str(caught.value)


def test_points_have_no_labels_but_their_actions_do(tmp_path: Path) -> None:
    env = gf.environments.lqg()
    with open_agent(tmp_path / "lqg", gf.CKLSCALPlus.for_environment(env, bins=3), **QUICK) as agent:
        agent.observe(0.5, env.action_labels[1], env.reward_min, 0.4)
        assert agent.t == 1
        with pytest.raises(InvalidArgumentError, match="the states of this agent have no labels"):
            agent.act("left")
    partition = gf.Partition.uniform(bins=2).settings()
    with pytest.raises(InvalidArgumentError, match="points have no labels"):
        make_agent({"agent": "c-kl-scal-plus", "partition": partition, "state_labels": ["a", "b"]})


def test_a_folder_without_labels_opens_as_before(tmp_path: Path) -> None:
    plain = {"agent": "kl-scal-plus", "n_states": 3, "n_actions": 3, "reward_min": -40.0, "reward_max": -1.0}
    with open_agent(tmp_path / "machine", plain, **QUICK) as agent:
        assert agent.labels is None
        with pytest.raises(InvalidArgumentError, match="the states of this agent have no labels"):
            agent.act("new")
        agent.observe(0, 0, cost=1.0, next_state=0)  # a cost is a cost, whoever asks
        assert agent.t == 1
    with pytest.raises(JournalError, match="labels or sign: stored none, given some"):
        open_agent(tmp_path / "machine", {**plain, "state_labels": ["new", "worn", "broken"]}, **QUICK)


def test_labels_that_do_not_fit_the_agent_are_damage(tmp_path: Path) -> None:
    from gainful.checked_json import from_checked_json, to_checked_json

    open_agent(tmp_path / "machine", CONFIG, **QUICK).close()
    file = tmp_path / "machine" / "agent.json"
    kept, _ = from_checked_json(file.read_bytes())
    kept["labels"]["states"].append("lost")
    file.write_bytes(to_checked_json(kept))
    with pytest.raises(JournalError, match="4 labels for 3 states"):
        open_agent(tmp_path / "machine", **QUICK)


def test_actions_that_a_state_lacks_show_no_bonus(machine: gf.MDP, tmp_path: Path) -> None:
    with open_agent(tmp_path / "machine", gf.SCALPlus.for_mdp(machine, span=40.0), **QUICK) as agent:
        bonus = agent.bonuses()
    assert bonus is not None
    assert np.array_equal(np.isnan(bonus), ~machine.allowed)


@pytest.mark.parametrize("labels", [("1", "2", "3"), ("new", "worn", "broken")])
def test_a_log_is_read_in_labels_or_numbers_and_never_in_a_mixture(labels: tuple[str, ...]) -> None:
    config = {"agent": "ucrl2", "state_labels": list(labels), "n_actions": 1}
    log = {"state": [1, 2], "action": [0, 0], "reward": [0.5, 0.5], "next_state": [2, 1]}
    visits = fit_log(log, config).statistics.visits.tolist()
    if labels[0] == "1":
        assert visits == [1, 1, 0]  # "1" and "2" are labels
        with pytest.raises(InvalidMDPError, match="one of the 3 labels of states"):
            fit_log({**log, "state": [0, 1]}, config)
    else:
        assert visits == [0, 1, 1]  # states 1 and 2
        with pytest.raises(InvalidMDPError, match="one of the 3 labels of states"):
            fit_log({**log, "state": ["new", "1"]}, config)
