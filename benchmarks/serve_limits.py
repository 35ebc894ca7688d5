"""What clients that send or hold too much do to `gainful serve`: memory, the time of /healthz, the end after SIGTERM.

    python benchmarks/serve_limits.py [head] [key] [readers] [--record]

head: small headers without end on one connection. key: large bodies and responses of one agent, while /healthz is asked
every 10 ms on a connection of its own. readers: 200 clients that never read their responses. On a busy machine compare
with the time without attack, which is printed first. --record keeps the table of `key` in benchmarks/measured.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import printed

CONFIG = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
GOOD = {"state": 0, "action": 0, "reward": 0, "next_state": 0}
BODIES = {
    '99,000 rows `{"a":0}`': b'{"transitions":[' + b",".join([b'{"a":0}'] * 99_000) + b"]}",
    "80,000 unknown members": b"{" + b",".join(b'"a%d":0' % i for i in range(80_000)) + b"}",
    "a state with 490,000 coordinates": b'{"state":[' + b"0," * 490_000 + b"0]}",
    "10,000 good rows": json.dumps({"transitions": [GOOD] * 10_000}).encode(),
    "9,999 good rows and one with an error": json.dumps({"transitions": [GOOD] * 9999 + [{"a": 0}]}).encode(),
}


class Served:
    """A service in its own process."""

    def __init__(self, process: subprocess.Popen[str], address: tuple[str, int], admin_key: str) -> None:
        self.process, self.address, self._admin_key = process, address, admin_key

    def ask(self, method: str, path: str, body: bytes | None = None, key: str | None = None) -> tuple[int, bytes]:
        """Send one request on a connection of its own."""
        line = http.client.HTTPConnection(*self.address, timeout=120)
        headers = {"Authorization": f"Bearer {key or self._admin_key}", "Content-Type": "application/json"}
        with contextlib.closing(line):
            line.request(method, path, body, headers)
            response = line.getresponse()
            return response.status, response.read()

    def make(self, agent_id: str, **config: Any) -> str:
        """Create an agent; its key."""
        wanted = {"id": agent_id, "config": {**CONFIG, **config}}
        return str(json.loads(self.ask("POST", "/agents", json.dumps(wanted).encode())[1])["key"])

    def megabytes(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss / 1e6)

    def connections(self) -> int:
        held = psutil.Process(self.process.pid).net_connections("tcp")
        return sum(each.status == psutil.CONN_ESTABLISHED for each in held)


@contextlib.contextmanager
def served() -> Iterator[Served]:
    """Run a service for the duration of a block."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gainful", "serve", str(Path(folder) / "agents"), "--port", "0", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        host, _, port = facts["url"].removeprefix("http://").partition(":")
        try:
            yield Served(process, (host, int(port)), Path(facts["admin_key"]).read_text().strip())
        finally:
            process.kill()
            process.wait()


def slowest_health(service: Served, attack: Callable[[], Any]) -> str:
    """The times of /healthz during an attack."""
    seconds: list[float] = []
    over = threading.Event()

    def watch() -> None:
        line = http.client.HTTPConnection(*service.address, timeout=120)
        while not over.wait(0.01):
            began = time.perf_counter()
            line.request("GET", "/healthz")
            line.getresponse().read()
            seconds.append(time.perf_counter() - began)

    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.1)
    attack()
    time.sleep(0.1)
    over.set()
    thread.join()
    return f"{max(seconds) * 1000:.0f} ms"


def head() -> None:
    """Small headers without end."""
    with served() as service:
        before, sent, began = service.megabytes(), 0, time.monotonic()
        piece = b"a: b\r\n" * 10_000
        with socket.create_connection(service.address) as line, contextlib.suppress(OSError):
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            while sent < 300e6 and time.monotonic() - began < 25.0:
                line.sendall(piece)
                sent += len(piece)
        print(f"head: {sent / 1e6:.1f} MB sent; memory {before:.0f} -> {service.megabytes():.0f} MB")


def key() -> None:
    """Large bodies and responses of one key."""
    with served() as service:
        own = service.make("small")
        print("| one key sends | slowest answer of `/healthz` |\n|---|---:|")
        print(f"| nothing | {slowest_health(service, lambda: time.sleep(2.0))} |")
        for name, body in BODIES.items():

            def send(body: bytes = body) -> None:
                for _ in range(3):
                    with contextlib.suppress(OSError):
                        service.ask("POST", "/agents/small/observe", body, own)

            print(f"| {name} | {slowest_health(service, send)} |", flush=True)
        for n_states, n_actions in ((10_000, 100), (1, 1_000_000)):
            agent = f"large-{n_actions}"
            own = service.make(agent, n_states=n_states, n_actions=n_actions)
            service.ask("POST", f"/agents/{agent}/observe", json.dumps(GOOD).encode(), own)

            def get(path: str = f"/agents/{agent}?states=10000", own: str = own) -> None:
                for _ in range(2):
                    service.ask("GET", path, key=own)

            print(
                f"| `GET` of {n_states:,} states, {n_actions:,} actions | {slowest_health(service, get)} |", flush=True
            )


def readers() -> None:
    """Clients that never read."""

    def connect(service: Served) -> socket.socket:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(service.address)
        line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 95)
        return line

    with served() as service, contextlib.ExitStack() as lines:
        for _ in range(200):
            lines.enter_context(connect(service))
        time.sleep(37.0)
        print(f"readers: {service.connections()} of 200 connections after 37 s")
        for _ in range(50):
            lines.enter_context(connect(service))
        time.sleep(3.0)
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.wait()
        print(f"50 readers: ended {time.monotonic() - began:.1f} s after SIGTERM")


if __name__ == "__main__":
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    for part in [word for word in sys.argv[1:] if not word.startswith("-")] or ["head", "key", "readers"]:
        with printed("serve_limits", part, keep=part == "key" and "--record" in sys.argv):
            {"head": head, "key": key, "readers": readers}[part]()
