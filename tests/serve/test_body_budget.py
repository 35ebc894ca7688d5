"""Large request bodies together take no more memory than the service allows for them."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from pathlib import Path
from typing import Any

import pytest

from gainful.serve.body_budget import FREE, BodyBudget
from gainful.serve.limits import Limits
from gainful.serve.problem_details import ProblemError
from tests.serve.service import Running, served


def scope(agent: str = "") -> dict[str, Any]:
    return {"path_params": {"id": agent} if agent else {}}


def test_bodies_count_until_they_are_answered() -> None:
    budget, first, second = BodyBudget(1000), scope("a"), scope("b")
    budget.hold(first, FREE)  # small ones do not count
    assert budget.held == 0
    budget.hold(first, FREE + 100)
    budget.hold(first, FREE + 500)
    budget.hold(second, FREE + 300)
    assert budget.held == 800
    with pytest.raises(ProblemError) as refused:
        budget.hold(second, FREE + 501)
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "1")
    budget.release(first)
    budget.release(first)
    assert budget.held == 300
    budget.hold(second, FREE + 500)
    budget.release(second)
    assert budget.held == 0


def test_one_agent_may_hold_half() -> None:
    budget = BodyBudget(1000)
    budget.hold(scope("a"), FREE + 300)
    with pytest.raises(ProblemError, match="too many large requests"):
        budget.hold(scope("a"), FREE + 201)
    budget.hold(scope("b"), FREE + 201)
    budget.hold(scope(), FREE + 400)
    with pytest.raises(ProblemError, match="too many large requests"):
        budget.check(scope("c"), FREE + 100)
    budget.check(scope("c"), FREE + 99)


def test_the_budget_grows_with_the_largest_body() -> None:
    assert Limits().bodies == 1 << 26
    assert Limits(body=1 << 30).bodies == 1 << 32


def unfinished(running: Running, key: str, size: int) -> socket.socket:
    """A connection on which a body has arrived up to its last byte, or was refused."""
    host, port = running.url.removeprefix("http://").split(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    head = (
        f"POST /agents/pump/observe HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(head.encode() + b" " * (size - 1))
    return line


@pytest.mark.slow
def test_bodies_took_the_memory_of_all_connections_times_the_largest_body(tmp_path: Path) -> None:
    """One key may hold 32 MB; all others go on, and the room comes back."""
    share = 36
    size = FREE + (1 << 25) // share  # almost a body of the largest size
    with served(tmp_path / "agents") as running:
        key, other = running.make("pump"), running.make("fan")
        lines = [unfinished(running, key, size) for _ in range(share + 5)]
        refused: dict[socket.socket, bytes] = {}
        while len(refused) < 5:  # whichever of them came last
            for line in select.select([line for line in lines if line not in refused], [], [], 60)[0]:
                refused[line] = line.recv(1 << 16)
        assert all(b" 503 " in said and b"retry-after: 1" in said.lower() for said in refused.values()), refused
        rows = [{"state": 0, "action": 1, "reward": 0.5, "next_state": 1}] * 2000
        batch = json.dumps({"transitions": rows})
        assert len(batch) > FREE
        assert running.post("/agents/pump/act", {"state": 0}, key).status_code == 200
        assert running.post("/agents/pump/observe", {"transitions": rows}, key).status_code == 503
        assert running.post("/agents/fan/observe", {"transitions": rows}, other).status_code == 200
        for line in lines:
            line.close()
        for _ in range(100):
            if running.post("/agents/pump/observe", {"transitions": rows}, key).status_code == 200:
                break
        else:
            pytest.fail("the room did not come back")
        assert running.stop() == 0
