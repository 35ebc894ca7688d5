"""Clients that send or hold more than anyone needs: every limit comes before the work, and delays nobody else."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from hypothesis import given, settings, strategies

from gainful.serve.json_text import encode
from gainful.serve.models import RowError, parse_observation
from tests.serve.service import Running, served

SECONDS = 1.0
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with little patience."""
    with served(tmp_path_factory.mktemp("strict") / "agents", "--timeout", str(SECONDS)) as running:
        yield running
        assert running.stop() == 0
        assert not any("Traceback" in line for line in running.said), "".join(running.said)


def connect(running: Running, receive_buffer: int = 0) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    line = socket.socket()
    line.settimeout(20)
    if receive_buffer:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    line.connect((host, int(port)))
    return line


def send(line: socket.socket, text: bytes) -> None:
    """Send as much as the other side takes."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(text)


def everything(line: socket.socket) -> bytes:
    """What the other side says until it hangs up."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while more := line.recv(1 << 16):
            said += more
    return said


def answer(line: socket.socket) -> bytes:
    """One whole response."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += (more := line.recv(1 << 16))
        assert more, said
    head, _, body = said.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        body += (more := line.recv(1 << 16))
        assert more, body
    return head


ENDLESS = {
    "small headers": GET + b"a: b\r\n" * 500_000,
    "one header": GET + b"a: " + b"b" * 3_000_000,
    "the name of a header": GET + b"a" * 3_000_000,
    "a path": b"GET /" + b"a" * 3_000_000,
    "trailers": GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 500_000,
    "one trailer": GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\na: " + b"b" * 3_000_000,
    "a chunk extension": GET + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"b" * 3_000_000,
    "requests at once": (GET + b"\r\n") * 100_000,
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_without_limit_ends_the_connection(kind: str, strict: Running) -> None:
    began = time.monotonic()
    with connect(strict) as line:
        send(line, ENDLESS[kind])
        said = everything(line)
    assert time.monotonic() - began < 10.0
    if kind in ("small headers", "one header", "the name of a header", "a path"):
        assert said == b"" or said.startswith(b"HTTP/1.1 431")  # nothing, if our data arrived after it hung up
    assert strict.ask("GET", "/healthz").status_code == 200


def test_heads_without_limit_take_no_memory(strict: Running) -> None:
    process = psutil.Process(strict.process.pid)
    strict.ask("GET", "/healthz")
    before = process.memory_info().rss
    for text in ENDLESS.values():
        with connect(strict) as line:
            send(line, text)
    assert process.memory_info().rss - before < 30e6


@pytest.mark.parametrize(("size", "status"), [(20_000, b"200"), (60_000, b"200"), (90_000, b"431")])
def test_a_head_of_60_kb_is_read_and_one_of_90_is_not(size: int, status: bytes, strict: Running) -> None:
    with connect(strict) as line:
        for _ in range(2):  # the second request on a connection has the same limit
            send(line, GET + b"a: " + b"b" * size + b"\r\n\r\n")
            head = answer(line)
            assert head.startswith(b"HTTP/1.1 " + status)
            if b"close" in head:
                break


@pytest.mark.parametrize(("n", "status"), [(150, b"200"), (250, b"431")])
def test_a_head_has_at_most_200_headers(n: int, status: bytes, strict: Running) -> None:
    with connect(strict) as line:
        line.sendall(GET + b"a: b\r\n" * n + b"\r\n")
        assert answer(line).startswith(b"HTTP/1.1 " + status)


UNREAD = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 90
"""More responses than the buffers of the operating system hold."""


def connections_of(running: Running) -> set[int]:
    """The ports of its clients."""
    held = psutil.Process(running.process.pid).net_connections("tcp")
    return {each.raddr.port for each in held if each.status == psutil.CONN_ESTABLISHED}


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20.0
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    assert true()


def test_a_reader_that_never_reads_is_hung_up(strict: Running) -> None:
    with connect(strict, receive_buffer=4096) as line:
        line.sendall(UNREAD)
        port = line.getsockname()[1]
        wait_until(lambda: port in connections_of(strict))
        wait_until(lambda: port not in connections_of(strict))


def test_a_slow_reader_gets_all_it_asked_for(strict: Running) -> None:
    whole = strict.ask("GET", "/openapi.json").content
    with connect(strict, receive_buffer=4096) as line:
        line.sendall(UNREAD)
        size, began, until = 0, time.monotonic(), 2.5 * SECONDS
        while size < 90 * len(whole):
            size += len(line.recv(1 << 16))
            if time.monotonic() - began < until:
                time.sleep(0.01)
    assert time.monotonic() - began > until


def test_readers_that_never_read_do_not_delay_the_end(tmp_path: Path) -> None:
    with served(tmp_path / "agents") as running, contextlib.ExitStack() as lines:
        for _ in range(5):
            lines.enter_context(connect(running, receive_buffer=4096)).sendall(UNREAD)
        time.sleep(0.5)
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 15.0  # two seconds for the readers; without them, 20 and more


def test_connections_that_are_idle_make_room_for_new_ones(tmp_path: Path) -> None:
    with served(tmp_path / "agents", "--max-connections", "5") as running, contextlib.ExitStack() as lines:
        idle = [lines.enter_context(connect(running)) for _ in range(4)]
        for line in idle:
            line.sendall(GET + b"\r\n")
            assert b"200 OK" in answer(line)
            time.sleep(0.05)  # the clock of the loop counts milliseconds
        for _ in range(2):
            with connect(running) as line:
                line.sendall(GET + b"\r\n")
                assert b"200 OK" in answer(line)
        assert everything(idle[0]) == b""  # idle longest, and closed


# ---------------------------------------------------------------------- one key stalls no one

GOOD = {"state": 0, "action": 1, "reward": 0.5, "next_state": 1}


@contextlib.contextmanager
def health_watched(running: Running) -> Iterator[list[int]]:
    """The answers of /healthz on a connection of its own, asked every 10 ms during the block."""
    answers: list[int] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client() as client:
            while not over.wait(0.01):
                answers.append(client.get(f"{running.url}/healthz").status_code)

    watch = threading.Thread(target=ask)
    watch.start()
    try:
        yield answers
    finally:
        over.set()
        watch.join()


LARGE_BODIES: dict[str, tuple[bytes, str]] = {
    "rows": (b'{"transitions":[' + b",".join([b'{"a":0}'] * 99_000) + b"]}", "too many transitions in one request"),
    "coordinates": (b'{"state":[' + b"0," * 490_000 + b"0]}", "a list in the body is too long"),
    "members": (
        b"{" + b",".join(b'"a%d":0' % i for i in range(80_000)) + b"}",
        "a list in the body is too long",
    ),
    "a name": (b'{"' + b"x" * 900_000 + b'":0}', "the name of a member is too long"),
    "nothing": (b'{"state":0' + b" " * 900_000 + b"}", "action is missing"),
    "depth": (b'{"transitions":' + b"[" * 900_000, "the body is not valid JSON"),
    "a text": (b'{"transitions":"' + b"x" * 900_000 + b'"}', "transitions is"),
}


def test_one_key_with_large_bodies_stalls_no_one(strict: Running) -> None:
    key = strict.make("key")
    declared = {"Content-Type": "application/json"}
    with health_watched(strict) as answers:
        for content, what in LARGE_BODIES.values():
            refused = strict.ask("POST", "/agents/key/observe", key, content=content, headers=declared)
            assert refused.status_code in (400, 422), refused.text
            assert refused.json()["what"].startswith(what)
            assert len(refused.content) < 1000
        rows = {"transitions": [GOOD] * 9999 + [{"a": 0}]}
        refused = strict.post("/agents/key/observe", rows, key)
        assert refused.json()["where"] == "body.transitions.9999.state"
        assert strict.post("/agents/key/observe", {"transitions": [GOOD] * 10_000}, key).status_code == 200
    assert strict.ask("GET", "/agents/key", key).json()["observations"] == 10_000
    assert set(answers) == {200}  # benchmarks/serve_limits.py measures how soon


@pytest.mark.slow
@pytest.mark.parametrize(("n_states", "n_actions"), [(10_000, 100), (1, 1_000_000)])
def test_a_large_answer_stalls_no_one(n_states: int, n_actions: int, tmp_path: Path) -> None:
    with served(tmp_path / "agents") as running:
        key = running.make("large", n_states=n_states, n_actions=n_actions)
        assert running.post("/agents/large/observe", {**GOOD, "next_state": 0}, key).status_code == 200
        with health_watched(running) as answers:
            tables = running.ask("GET", "/agents/large?states=10000", key).json()["tables"]
        assert len(answers) >= 5  # one or two, if the response held up the others
        assert set(answers) == {200}
        assert [len(tables["visits"]), len(tables["visits"][0])] == [n_states, n_actions]
        assert sum(map(sum, tables["visits"])) == tables["visits"][0][1] == 1
        with contextlib.ExitStack() as lines:  # more than are sent at once, and never read
            head = f"GET /agents/large?states=10000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            before = psutil.Process(running.process.pid).memory_info().rss
            for _ in range(50):
                lines.enter_context(connect(running, receive_buffer=4096)).sendall(head.encode())
            time.sleep(3.0)
            assert psutil.Process(running.process.pid).memory_info().rss - before < 300e6
            assert running.ask("GET", "/healthz").status_code == 200


def test_the_first_wrong_row_ends_the_parsing() -> None:
    rows = [GOOD, {**GOOD, "action": -1}, *([{"a": 0}] * 1000)]
    with pytest.raises(RowError) as wrong:
        parse_observation(json.dumps({"transitions": rows}).encode(), 10_000)
    assert wrong.value.row == 1
    assert {each["loc"][0] for each in wrong.value.error.errors()} == {"action"}


@settings(max_examples=30)
@given(
    strategies.recursive(
        strategies.none()
        | strategies.integers()
        | strategies.floats(allow_nan=False, allow_infinity=False)
        | strategies.text(),
        lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
    )
)
def test_json_is_written_as_the_standard_library_does(value: Any) -> None:
    assert encode(value) == json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.parametrize("shape", [(0,), (7,), (2500,), (3, 0), (0, 3), (5, 3), (1500, 2), (2, 2500)])
def test_arrays_are_written_as_lists(shape: tuple[int, ...]) -> None:
    values = np.arange(float(np.prod(shape))).reshape(shape) / 7.0
    assert encode({"x": values}) == json.dumps({"x": values.tolist()}, separators=(",", ":")).encode()
