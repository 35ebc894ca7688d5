"""Clients that send one byte now and then, and clients that are too many."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.serve.service import Running, served

SECONDS = 1.0


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    options = ("--timeout", str(SECONDS), "--max-connections", "8")
    with served(tmp_path_factory.mktemp("hasty") / "agents", *options) as running:
        yield running
        assert running.stop() == 0


def connect(running: Running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def dribble(line: socket.socket, text: bytes, every: float = 0.1) -> tuple[bytes, float]:
    """Send one byte at a time until the other side has enough of it; what it said, and after how many seconds."""
    began, over = time.monotonic(), threading.Event()

    def send() -> None:
        for byte in text:
            try:
                line.send(bytes([byte]))
            except OSError:
                return
            if over.wait(every):
                return

    sender = threading.Thread(target=send)
    sender.start()
    said = b""
    try:
        while more := line.recv(4096):
            said += more
    except ConnectionResetError:
        pass
    over.set()
    sender.join()
    return said, time.monotonic() - began


def head(running: Running, length: int) -> bytes:
    return (
        f"POST /agents/pump/act HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.admin}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_a_head_that_comes_byte_by_byte_ends_the_connection(hasty: Running) -> None:
    with connect(hasty) as line:
        said, seconds = dribble(line, b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 1000)
    assert said == b""
    assert 0.5 * SECONDS < seconds < 5 * SECONDS


def test_a_connection_that_says_nothing_is_ended(hasty: Running) -> None:
    with connect(hasty) as line:
        said, seconds = dribble(line, b"")
    assert said == b""
    assert seconds < 5 * SECONDS


def test_a_second_head_that_comes_byte_by_byte_ends_the_connection(hasty: Running) -> None:
    with connect(hasty) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
        said, seconds = dribble(line, b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 1000)
    assert b"HTTP" not in said  # at most the rest of the first answer
    assert seconds < 5 * SECONDS


def test_a_body_that_comes_byte_by_byte_has_one_deadline(hasty: Running) -> None:
    if "pump" not in [a["id"] for a in hasty.ask("GET", "/agents").json()["agents"]]:
        hasty.make("pump")
    with connect(hasty) as line:
        line.sendall(head(hasty, 1000))
        said, seconds = dribble(line, b'{"state": 0' + b" " * 900)
    assert said.startswith(b"HTTP/1.1 408")
    assert b"within 1 seconds" in said
    assert seconds < 5 * SECONDS


def test_a_quiet_connection_is_kept(hasty: Running) -> None:
    with httpx.Client() as client:
        stream = client.get(f"{hasty.url}/healthz").extensions["network_stream"]
        time.sleep(2.5 * SECONDS)
        assert stream.get_extra_info("is_readable") is False  # nobody hung up
        assert client.get(f"{hasty.url}/healthz").extensions["network_stream"] is stream


def test_too_many_connections_are_refused_and_those_there_go_on(hasty: Running) -> None:
    assert hasty.ask("GET", "/healthz").status_code == 200
    with ExitStack() as lines:
        for _ in range(10):
            lines.enter_context(connect(hasty))
        with connect(hasty) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line.recv(4096).startswith(b"HTTP/1.1 503")
    time.sleep(0.2)
    assert hasty.ask("GET", "/healthz").status_code == 200
