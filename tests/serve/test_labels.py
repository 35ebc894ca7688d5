"""The service takes and gives the user's words: a label in, a label out; an integer in, an integer out."""

from __future__ import annotations

from typing import Any

import pytest

from gainful.serve.models import OutcomeBody, Transition, Transitions, parse_observation
from tests.serve.service import Running

MACHINE: dict[str, Any] = {
    "agent": "scal-plus",
    "span": 40.0,
    "bonus_scale": 0.05,
    "state_labels": ["new", "worn, but running {1}", 'broken "for good"'],
    "action_labels": ["run", "service", "repair"],
    "allowed": [[True, False, False], [True, True, False], [False, False, True]],
    "cost_min": 1.0,
    "cost_max": 40.0,
}
NEW, WORN, BROKEN = MACHINE["state_labels"]


@pytest.fixture(scope="module")
def key(service: Running) -> str:
    made = service.post("/agents", {"id": "machine", "config": MACHINE})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


def told(service: Running, key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = service.post(f"/agents/machine/{path}", body, key)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_label_in_is_a_label_out_over_http(service: Running, key: str) -> None:
    decision = told(service, key, "act", {"state": BROKEN, "request_id": "a"})
    assert decision["action"] == "repair"
    assert told(service, key, "act", {"state": BROKEN, "request_id": "a"}) == decision
    by_number = told(service, key, "act", {"state": 2})
    assert by_number["action"] == 2
    waiting = service.ask("GET", "/agents/machine/pending", key).json()["pending"]
    assert [(w["state"], w["action"], w["state_label"], w["action_label"]) for w in waiting] == [
        (2, 2, BROKEN, "repair"),
        (2, 2, BROKEN, "repair"),
    ]
    told(service, key, "observe", {"decision_id": decision["decision_id"], "cost": 40, "next_state": NEW})
    told(service, key, "observe", {"decision_id": by_number["decision_id"], "reward": -40, "next_state": 0})
    told(service, key, "observe", {"state": WORN, "action": "service", "cost": 6, "next_state": NEW})
    rows = [
        {"state": NEW, "action": "run", "cost": 1, "next_state": WORN},
        {"state": 1, "action": 1, "reward": -6, "next_state": NEW},
    ]
    told(service, key, "observe", {"transitions": rows})
    told(service, key, "observe", {"transitions": rows[:1]})
    view = service.ask("GET", "/agents/machine", key).json()
    assert view["observations"] == 6
    assert view["objective"] == "cost"
    assert view["mean_reward"] is None
    assert view["mean_cost"] == pytest.approx((40 + 40 + 6 + 1 + 6 + 1) / 6, rel=1e-12, abs=0)
    gain = view["gain"]
    assert gain["low"] <= gain["estimate"] <= gain["high"] < view["mean_cost"]  # optimism is to expect less cost
    tables = view["tables"]
    assert tables["state_labels"] == [NEW, WORN, BROKEN]
    assert tables["action_labels"] == ["run", "service", "repair"]
    assert tables["allowed"] == MACHINE["allowed"]
    assert [[b is not None for b in row] for row in tables["bonus"]] == MACHINE["allowed"]
    assert tables["visits"] == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    part = service.ask("GET", "/agents/machine?first=1&states=1", key).json()["tables"]
    assert part["state_labels"] == [WORN]
    episodes = service.ask("GET", "/agents/machine/episodes", key).json()
    assert [episodes["low"][-1], episodes["high"][-1]] == [gain["low"], gain["high"]]
    (listed,) = service.ask("GET", "/agents", key).json()["agents"]
    assert (listed["objective"], listed["gain_low"]) == ("cost", view["gain"]["low"])


@pytest.mark.parametrize(
    ("path", "body", "where", "what"),
    [
        ("act", {"state": "wron"}, "body.state", "there is no state 'wron'"),
        ("act", {"state": "2"}, "body.state", "there is no state '2'"),
        ("act", {"state": "x" * 501}, "body.state", "or a label"),
        ("observe", {"state": NEW, "action": "fly", "cost": 1, "next_state": NEW}, "body.action", "no action 'fly'"),
        ("observe", {"state": NEW, "action": "repair", "cost": 1, "next_state": NEW}, "body.action", "does not have"),
        ("observe", {"state": NEW, "action": "run", "cost": 41, "next_state": NEW}, "body.cost", "cost 41.0 at step"),
        ("observe", {"state": NEW, "action": "run", "next_state": NEW}, "body.reward", "reward is missing"),
        (
            "observe",
            {"state": NEW, "action": "run", "reward": -1, "cost": 1, "next_state": NEW},
            "body",
            "expected one of reward and cost",
        ),
        (
            "observe",
            {"transitions": [{"state": NEW, "action": "run", "cost": 1, "next_state": NEW}] * 2
             + [{"state": "gone", "action": "run", "cost": 1, "next_state": NEW}]},
            "body.transitions.2.state",
            "there is no state 'gone'",
        ),
        (
            "observe",
            {"transitions": [{"state": NEW, "action": "run", "cost": 1, "next_state": NEW},
                             {"state": NEW, "action": "run", "cost": 99, "next_state": NEW}]},
            "body.transitions.1.cost",
            "expected a number in [1, 40]",
        ),
        ("observe", {"transitions": [{"state": 0, "action": 0, "next_state": 0}]}, "body.transitions.0.reward", "miss"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_where_and_why(
    path: str, body: dict[str, Any], where: str, what: str, service: Running, key: str
) -> None:
    before = service.ask("GET", "/agents/machine", key).json()["sequence"]
    answer = service.post(f"/agents/machine/{path}", body, key)
    found = answer.json()
    assert (answer.status_code, found["where"]) == (422, where), found
    assert what in found["what"], found
    assert service.ask("GET", "/agents/machine", key).json()["sequence"] == before


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"state_labels": ["a", "a", "b"]}, "'a' twice"),
        ({"state_labels": []}, "at least 1"),
        ({"n_states": 5}, "has 3 labels, expected 5"),
        ({"state_labels": None, "action_labels": None}, "n_states"),
        ({"reward_min": -1.0}, "costs and rewards"),
        ({"state_labels": ["x" * 501, "b", "c"]}, "at most 500 characters"),
    ],
)
def test_labels_of_a_new_agent_are_checked(change: dict[str, Any], what: str, service: Running) -> None:
    answer = service.post("/agents", {"id": "refused", "config": {**MACHINE, **change}})
    assert answer.status_code == 422
    assert what in answer.json()["what"], answer.text


def test_an_agent_without_labels_says_so(service: Running) -> None:
    key = service.make("unlabelled")
    answer = service.post("/agents/unlabelled/act", {"state": "new"}, key)
    assert answer.status_code == 422
    assert "have no labels" in answer.json()["what"]
    tables = service.ask("GET", "/agents/unlabelled", key).json()["tables"]
    assert tables["state_labels"] is tables["action_labels"] is tables["allowed"] is None


def test_a_label_called_like_a_member_is_no_member() -> None:
    outcome = parse_observation(b'{"decision_id":1,"cost":3,"next_state":"action"}', 10)
    assert isinstance(outcome, OutcomeBody)
    row = b'{"state":"decision_id","action":"transitions","cost":3,"next_state":"action"}'
    assert isinstance(parse_observation(row, 10), Transition)
    batch = parse_observation(b'{"transitions":[' + row + b"]}", 10)
    assert isinstance(batch, Transitions)
    assert batch.transitions[0].state == "decision_id"
