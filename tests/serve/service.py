"""A real service in its own process, and a client for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

CONFIG: dict[str, Any] = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}


@dataclass
class Running:
    """The process and how to talk to it."""

    process: subprocess.Popen[str]
    folder: Path
    url: str
    admin: str
    client: httpx.Client
    said: list[str] = field(default_factory=list)
    listener: threading.Thread | None = None
    """Adds what the process writes to its standard error to `said`."""

    def ask(self, method: str, path: str, key: str | None = None, **options: Any) -> httpx.Response:
        """Send one request, with the admin key unless another one is given."""
        headers = dict(options.pop("headers", {}))
        if key != "":
            headers.setdefault("Authorization", f"Bearer {self.admin if key is None else key}")
        return self.client.request(method, self.url + path, headers=headers, **options)

    def post(self, path: str, value: Any, key: str | None = None) -> httpx.Response:
        return self.ask("POST", path, key, json=value)

    def make(self, agent_id: str, **config: Any) -> str:
        """Create an agent and return its key."""
        made = self.post("/agents", {"id": agent_id, "config": {**CONFIG, **config}})
        assert made.status_code == 201, made.text
        return str(made.json()["key"])

    def journal(self, agent_id: str) -> Path:
        return self.folder / "agents" / agent_id / "journal"

    def bytes_of(self, agent_id: str) -> dict[str, bytes]:
        """The contents of all files of its journal."""
        return {p.name: p.read_bytes() for p in sorted(self.journal(agent_id).iterdir())}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """End the process if it still runs, and close its pipes."""
        self.client.close()
        if self.process.poll() is None:
            self.kill()
        if self.listener is not None:
            self.listener.join(timeout=60)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def start(folder: Path, *options: str) -> Running:
    """Start `gainful serve` on a free port and wait until it listens."""
    command = [sys.executable, "-m", "gainful", "serve", str(folder), "--port", "0", "--json", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    if not line:
        raise AssertionError(process.stderr.read())
    facts = json.loads(line)
    running = Running(
        process, folder, facts["url"], Path(facts["admin_key"]).read_text().strip(), httpx.Client(timeout=60.0)
    )
    running.listener = threading.Thread(target=lambda: running.said.extend(process.stderr or ()), daemon=True)
    running.listener.start()
    return running


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Running]:
    """Run a service for the duration of a block."""
    running = start(folder, *options)
    try:
        yield running
    finally:
        running.close()
