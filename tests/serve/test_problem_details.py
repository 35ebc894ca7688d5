"""Rejected requests get the right status and a helpful message, and change nothing."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.serve.service import CONFIG, Running

GOOD: dict[str, Any] = {"state": 0, "action": 1, "reward": 0.5, "next_state": 1}
WORDS = {"type", "title", "status", "what", "where", "found", "expected", "next"}
Kept = tuple[str, str, dict[str, bytes]]


@pytest.fixture(scope="module")
def kept(service: Running) -> Kept:
    """An agent with a pending decision: its key, the key of another agent, its files."""
    key, other = service.make("kept"), service.make("other")
    service.post("/agents/kept/act", {"state": 0, "request_id": "first"}, key)
    service.post("/agents/kept/observe", {**GOOD, "request_id": "told"}, key)
    service.post("/agents/kept/act", {"state": 1}, key)
    return key, other, service.bytes_of("kept")


def check(service: Running, kept: Kept, answer: Any, status: int) -> dict[str, Any]:
    """Check that a request was rejected with this status and left every byte of the journal unchanged."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) == WORDS
    assert problem["status"] == status
    assert problem["what"]
    assert str(service.folder) not in answer.text
    assert service.bytes_of("kept") == kept[2]
    return problem


Asked = list[tuple[str, str, Any]]
WRITES: Asked = [
    ("POST", "/act", {"state": 0}),
    ("POST", "/observe", GOOD),
    ("POST", "/abandon", {"decision_id": 5}),
    ("POST", "/change", {"span": 1.0}),
]
READS: Asked = [("GET", "", None), ("GET", "/pending", None), ("GET", "/episodes", None)]
ADMINS: Asked = [("DELETE", "", None), ("POST", "/key", None)]


@pytest.mark.parametrize(("method", "path", "body"), WRITES + READS + ADMINS)
def test_the_key_decides(method: str, path: str, body: Any, service: Running, kept: Kept) -> None:
    key, other, _ = kept
    for wrong in ("", "gf_" + "A" * 43, key + "x", key[:-1], "x" * 5000):
        answer = service.ask(method, f"/agents/kept{path}", wrong, json=body)
        check(service, kept, answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert service.ask(method, f"/agents/kept{path}", "", json=body, headers={"Authorization": key}).status_code == 401
    for header in (f"Basic {key}".encode(), b"Bearer", b"Bearer \xff\xc3\xa4"):
        answer = service.ask(method, f"/agents/kept{path}", "", json=body, headers={"Authorization": header})
        check(service, kept, answer, 401)
    check(service, kept, service.ask(method, f"/agents/kept{path}", other, json=body), 403)
    check(service, kept, service.ask(method, f"/agents/nobody{path}", other, json=body), 403)
    check(service, kept, service.ask(method, f"/agents/nobody{path}", json=body), 404)
    if (method, path, body) in ADMINS:
        check(service, kept, service.ask(method, f"/agents/kept{path}", key, json=body), 403)


def test_only_the_admin_key_makes_agents(service: Running, kept: Kept) -> None:
    wanted = {"id": "intruder", "config": CONFIG}
    check(service, kept, service.post("/agents", wanted, ""), 401)
    check(service, kept, service.post("/agents", wanted, kept[0]), 403)
    assert not (service.folder / "agents" / "intruder").exists()


def test_a_key_lists_its_own_agent_only(service: Running, kept: Kept) -> None:
    assert [a["id"] for a in service.ask("GET", "/agents", kept[0]).json()["agents"]] == ["kept"]
    assert {"kept", "other"} <= {a["id"] for a in service.ask("GET", "/agents").json()["agents"]}
    assert service.ask("GET", "/agents", "").status_code == 401


def test_what_is_too_large_is_refused(service: Running, kept: Kept) -> None:
    body = b'{"state": 0' + b" " * 30_000 + b"}"
    declared = {"Content-Type": "application/json"}
    check(service, kept, service.ask("POST", "/agents/kept/act", kept[0], content=body, headers=declared), 413)
    pieces = (body[i : i + 1000] for i in range(0, len(body), 1000))  # chunked: no length is declared
    check(service, kept, service.ask("POST", "/agents/kept/act", kept[0], content=pieces, headers=declared), 413)
    huge = {**declared, "Content-Length": str(10**15)}
    with socket.create_connection(service.url.removeprefix("http://").split(":")) as line:  # type: ignore[arg-type]
        head = "".join(f"{k}: {v}\r\n" for k, v in {**huge, "Authorization": f"Bearer {kept[0]}"}.items())
        line.sendall(f"POST /agents/kept/act HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"state": 0', 400),
        (b"\xff\xfe", 400),
        (b'{"state": "\xff"}', 400),
        (b"[" * 5000, 400),
        (b'{"state": ' + b"[" * 1000 + b"]" * 1000 + b"}", 400),
        (b"state=0", 400),
        (b"null", 422),
        (b"[]", 422),
        (b"0", 422),
        (b"{}", 422),
        (b'{"state": "0"}', 422),
        (b'{"state": null}', 422),
        (b'{"state": true}', 422),
        (b'{"state": NaN}', 422),
        (b'{"state": Infinity}', 422),
        (b'{"state": 1e999}', 422),
        (b'{"state": -1}', 422),
        (b'{"state": 6}', 422),
        (b'{"state": 0.5}', 422),
        (b'{"state": [0]}', 422),
        (b'{"state": 1' + b"0" * 400 + b"}", 422),
        (b'{"state": 0, "more": 1}', 422),
        (b'{"state": {}}', 422),
        (b'{"state": 0, "request_id": ""}', 422),
        (b'{"state": 0, "request_id": 1}', 422),
        (b'{"state": 0, "request_id": "a b"}', 422),
        (b'{"state": 0, "request_id": "' + b"a" * 201 + b'"}', 422),
        (b'{"state": 1, "request_id": "first"}', 409),
        (b'{"state": 0, "request_id": "told"}', 409),
    ],
)
def test_what_is_no_state_is_refused(content: bytes, status: int, service: Running, kept: Kept) -> None:
    declared = {"Content-Type": "application/json"}
    answer = service.ask("POST", "/agents/kept/act", kept[0], content=content, headers=declared)
    check(service, kept, answer, status)


@pytest.mark.parametrize(
    ("verb", "content"),
    [
        ("act", b'{"state": 0, "state": 1}'),
        ("act", b'{"state": 0, "st\\u0061te": 1}'),
        ("act", b'{"state": 0, "request_id": "x", "request_id": "x"}'),
        ("observe", b'{"state": 0, "action": 1, "reward": 0, "reward": 1, "next_state": 1}'),
        ("observe", b'{"transitions": [{"state": 0, "action": 1, "reward": 0, "reward": 1, "next_state": 1}]}'),
        ("observe", b'{"transitions": [], "transitions": []}'),
        ("change", b'{"bonus_scale": 0.1, "bonus_scale": 0.2}'),
        ("abandon", b'{"decision_id": 1, "decision_id": 2}'),
        ("", b'{"config": {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 1, "span": 2}}'),
        ("", b'{"config": {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "x": [{"y": 1, "y": 1}]}}'),
    ],
)
def test_a_member_that_appears_twice_is_refused(verb: str, content: bytes, service: Running, kept: Kept) -> None:
    declared = {"Content-Type": "application/json"}
    path, key = (f"/agents/kept/{verb}", kept[0]) if verb else ("/agents", None)
    problem = check(service, kept, service.ask("POST", path, key, content=content, headers=declared), 422)
    assert "appears twice" in problem["what"]


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_only_json_is_taken(media: str, service: Running, kept: Kept) -> None:
    headers = {"Content-Type": media} if media else {}
    check(service, kept, service.ask("POST", "/agents/kept/act", kept[0], content=b'{"state":0}', headers=headers), 415)


@pytest.mark.parametrize(
    ("body", "status", "where"),
    [
        ({**GOOD, "state": 6}, 422, "body"),
        ({**GOOD, "action": 2}, 422, "body"),
        ({**GOOD, "reward": 1.5}, 422, "body"),
        ({**GOOD, "reward": -0.1}, 422, "body"),
        ({**GOOD, "reward": 1e300}, 422, "body.reward"),
        ({**GOOD, "reward": "1"}, 422, "body.reward"),
        ({**GOOD, "next_state": 6}, 422, "body"),
        ({**GOOD, "action": None}, 422, "body.action"),
        ({"state": 0, "action": 1}, 422, "body.next_state"),
        ({"state": 0, "action": 1, "next_state": 1}, 422, "body.reward"),
        ({**GOOD, "request_id": "first"}, 409, "body"),
        ({**GOOD, "state": 2, "request_id": "told"}, 409, "body"),
        ({"decision_id": 99, "reward": 0.5, "next_state": 0}, 404, "body.decision_id"),
        ({"decision_id": 0, "reward": 0.5, "next_state": 0}, 422, "body.decision_id"),
        ({"decision_id": 4, "reward": 1.01, "next_state": 0}, 422, "body"),
        ({"decision_id": 10**30, "reward": 0.5, "next_state": 0}, 422, "body.decision_id"),
        ({**GOOD, "decision_id": 4}, 409, "body"),
        ({"transitions": []}, 422, "body.transitions"),
        ({"transitions": [GOOD, {**GOOD, "state": 6}]}, 422, "body"),
        ({"transitions": [{**GOOD, "request_id": "x"}]}, 422, "body.transitions.0.request_id"),
        ({"transitions": [GOOD], "request_id": "told"}, 409, "body"),
    ],
)
def test_what_did_not_happen_is_refused(body: Any, status: int, where: str, service: Running, kept: Kept) -> None:
    answer = service.post("/agents/kept/observe", body, kept[0])
    assert check(service, kept, answer, status)["where"].startswith(where)


@pytest.mark.parametrize(
    "body",
    [{}, {"reason": "none"}, {"span": -1.0}, {"span": "7"}, {"width_scale": 2.0}, {"delta": 0.1}, {"bonus_scale": 0.0}],
)
def test_a_change_that_cannot_be_is_refused(body: Any, service: Running, kept: Kept) -> None:
    check(service, kept, service.post("/agents/kept/change", body, kept[0]), 422)


@pytest.mark.parametrize("query", ["first=-1", "states=x", "states=10001", "first=1&first=2", "states=", "first=1e3"])
def test_a_query_out_of_range_is_refused(query: str, service: Running, kept: Kept) -> None:
    check(service, kept, service.ask("GET", f"/agents/kept?{query}", kept[0]), 422)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"agent": "scal-pluss"},
        {"agent": 3},
        {"n_states": 0},
        {"n_states": 10**12},
        {"n_states": 2.5},
        {"n_states": 600_000, "n_actions": 2},
        {"span": -1.0},
        {"delta": 0.0},
        {"reward_min": 2.0},
        {"unknown": 1},
        {"agent": "regal"},
        {"agent": "fixed", "policy": [[[1]]]},
        {"agent": "c-scal-plus"},
        {"allowed": [[1]]},
        {"agent": "c-scal-plus", "n_states": None, "dim": 16, "lipschitz": 1e12, "holder": 1.0, "horizon": 1e15},
        {"agent": "c-scal-plus", "n_states": None, "partition": {"bins": [1000, 1000], "low": [0, 0], "high": [1, 1]}},
        {"prior": {"x": 1}, "prior_weight": 3},
        {"agent": "../../etc"},
        {"agent": "ucbvi", "episode_length": -1},
        {"agent": "ucbvi", "span": None, "horizon": 1000.0, "episode_length": 100_000},
        {"agent": "ucbvi", "span": None, "horizon": 1000.0, "episode_length": 1e308},
        {"agent": "opt-psrl", "span": None, "horizon": 1000.0, "samples": 100_000},
    ],
)
def test_an_agent_that_cannot_be_is_refused_and_leaves_nothing(config: Any, service: Running, kept: Kept) -> None:
    wanted = {"id": "impossible", "config": {**CONFIG, **config} if config else {}}
    check(service, kept, service.post("/agents", wanted), 422)
    assert not (service.folder / "agents" / "impossible").exists()


def test_max_pairs_counts_the_steps_that_ucbvi_plans_for(service: Running, kept: Kept) -> None:
    config = {"agent": "ucbvi", "n_states": 6, "n_actions": 2, "episode_length": 100_000, "horizon": 1000.0}
    problem = check(service, kept, service.post("/agents", {"id": "impossible", "config": config}), 422)
    assert problem["what"] == "the agent is too large for this service"
    assert problem["found"] == "6 states or cells, 2 actions, episode_length 100000"


FOUND: list[tuple[str, Any, str, str, str]] = [
    ("act", {"state": True}, "body.state", "true", "an integer in 0 … 5"),
    ("act", {"state": "0"}, "body.state", '"0"', "an integer in 0 … 5"),
    ("act", {"state": None}, "body.state", "null", "an integer in 0 … 5"),
    ("act", {"state": 7}, "body.state", "7", "an integer in 0 … 5"),
    ("act", {"state": 0.5}, "body.state", "0.5", "an integer in 0 … 5"),
    ("act", {}, "body.state", "nothing", "state"),
    ("act", {"state": 0, "more": 1}, "body.more", "1", "no such member"),
    ("observe", {**GOOD, "next_state": {}}, "body.next_state", "{}", "an integer in 0 … 5"),
    ("observe", {**GOOD, "action": 2}, "body.action", "2", "an integer in 0 … 1"),
    ("observe", {**GOOD, "action": "x"}, "body.action", '"x"', "an integer in 0 … 1"),
    ("observe", {**GOOD, "reward": 1.5}, "body.reward", "1.5", "a number in [0, 1]"),
    (
        "observe",
        {"transitions": [GOOD, {**GOOD, "state": [0]}]},
        "body.transitions.1.state",
        "[0.0]",
        "an integer in 0 … 5",
    ),
    (
        "observe",
        {"transitions": [GOOD, {**GOOD, "state": "a"}]},
        "body.transitions.1.state",
        '"a"',
        "an integer in 0 … 5",
    ),
    (
        "observe",
        {"transitions": [GOOD, {**GOOD, "reward": 2.0}]},
        "body.transitions.1.reward",
        "2.0",
        "a number in [0, 1]",
    ),
    ("change", {"span": -1.0}, "body.span", "-1.0", "greater than or equal to 0"),
]


@pytest.mark.parametrize(("verb", "body", "where", "found", "expected"), FOUND)
def test_a_refusal_says_what_was_found_and_expected(
    verb: str, body: Any, where: str, found: str, expected: str, service: Running, kept: Kept
) -> None:
    problem = check(service, kept, service.post(f"/agents/kept/{verb}", body, kept[0]), 422)
    assert (problem["where"], problem["found"], problem["expected"]) == (where, found, expected)
    assert "\n" not in problem["what"]
    assert "things are wrong" not in problem["what"]


def test_a_state_that_is_none_is_told_in_one_sentence(service: Running, kept: Kept) -> None:
    problem = check(service, kept, service.post("/agents/kept/act", {"state": True}, kept[0]), 422)
    assert problem["what"] == "state is true, expected an integer in 0 … 5"
    cells = {"bins": [4, 2], "low": [0.0, 0.0], "high": [1.0, 2.0]}
    key = service.make("plane", agent="c-scal-plus", n_states=None, partition=cells)
    problem = check(service, kept, service.post("/agents/plane/act", {"state": [0.5, "x"]}, key), 422)
    assert problem["what"].startswith("state is ")
    assert problem["expected"] == "a list of 2 numbers"


def test_points_with_and_without_brackets_can_be_mixed_in_one_batch(service: Running, kept: Kept) -> None:
    cells = {"bins": [4], "low": [0.0], "high": [1.0]}
    key = service.make("line", agent="c-scal-plus", n_states=None, partition=cells)
    row = {"state": 0.1, "action": 0, "reward": 0.5, "next_state": [0.3]}
    other = {**row, "state": [0.3], "next_state": 1}
    answer = service.post("/agents/line/observe", {"transitions": [row, other]}, key)
    assert answer.status_code == 200, answer.text
    assert service.ask("GET", "/agents/line", key).json()["observations"] == 2
    bad = {"transitions": [row, {**row, "state": [0.1, 0.2]}]}
    problem = check(service, kept, service.post("/agents/line/observe", bad, key), 422)
    assert problem["what"] == "transitions.1.state is [0.1, 0.2], expected a list of 1 numbers"


@pytest.mark.parametrize("agent_id", ["", "..", "../x", "a/b", "A", "-a", "a" * 64, "a\n", "ä", "a.b", 7])
def test_an_id_that_is_none_is_refused(agent_id: Any, service: Running, kept: Kept) -> None:
    before = sorted(p.name for p in (service.folder / "agents").iterdir())
    check(service, kept, service.post("/agents", {"id": agent_id, "config": CONFIG}), 422)
    assert sorted(p.name for p in (service.folder / "agents").iterdir()) == before


def test_too_many_decisions_waiting_are_refused_but_not_their_repetition(service: Running, kept: Kept) -> None:
    key = service.make("crowded")
    acts = [service.post("/agents/crowded/act", {"state": 0, "request_id": f"r{i}"}, key).json() for i in range(5)]
    before = service.bytes_of("crowded")
    refused = service.post("/agents/crowded/act", {"state": 0, "request_id": "r5"}, key)
    check(service, kept, refused, 429)
    assert service.post("/agents/crowded/act", {"state": 0, "request_id": "r3"}, key).json() == acts[3]
    assert service.bytes_of("crowded") == before
    service.post("/agents/crowded/abandon", {"decision_id": acts[0]["decision_id"]}, key)
    assert service.post("/agents/crowded/act", {"state": 0, "request_id": "r5"}, key).status_code == 200


def test_paths_and_methods_that_are_none(service: Running, kept: Kept) -> None:
    check(service, kept, service.ask("GET", "/nothing"), 404)
    check(service, kept, service.ask("GET", "/agents/kept/act/more"), 404)
    check(service, kept, service.ask("GET", "/agents/kept%2Fact"), 405)
    for method, path, allowed in (("PUT", "/agents/kept", "DELETE"), ("GET", "/agents/kept/act", "POST")):
        answer = service.ask(method, path)
        check(service, kept, answer, 405)
        assert allowed in answer.headers["allow"]
    assert service.ask("OPTIONS", "/agents/kept/act", headers={"Origin": "http://evil.example"}).status_code == 405
