"""The process: one folder, one socket, a graceful end.

On SIGTERM or Ctrl-C nothing more is accepted, what is under way is answered, agents are closed with a snapshot, and the
process ends with code 0. A killed process loses nothing that was answered: every answer is in a journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn

from gainful.errors import InvalidArgumentError, JournalError
from gainful.live import is_live
from gainful.live.folder import lock_folder
from gainful.locks import FolderLock
from gainful.serve.app import Service, build
from gainful.serve.keys import admin_key
from gainful.serve.limits import Limits
from gainful.serve.registry import open_registry
from gainful.serve.seat import Policy

GRACE = 30
"""Seconds for requests under way to be answered."""
BACKLOG = 1024


@dataclass(frozen=True)
class Place:
    """Where a service listens and what it keeps."""

    url: str
    folder: str
    admin_key: str
    """Where the admin key is; not the key."""
    agents: int
    warnings: list[str] = field(default_factory=list)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    folder: Path, *, host: str = "127.0.0.1", port: int = 8080, allow_remote: bool = False, version: str = "",
    policy: Policy | None = None, limits: Limits | None = None, told: Callable[[Place], None] = lambda _: None,
) -> int:  # fmt: skip
    """Serve the agents of `folder` until a signal; the exit code. `told` is called once it listens."""
    if not (is_loopback(host) or allow_remote):
        raise InvalidArgumentError(
            f"host {host} can be reached from other machines; give --allow-remote if that is meant, and put a proxy "
            "with TLS before it: keys are sent in the clear"
        )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(folder, host, port, version, policy or Policy(), limits or Limits(), told))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop where it is installed: it sends head and body of an answer together."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return made


async def _serve(
    folder: Path, host: str, port: int, version: str, policy: Policy, limits: Limits, told: Callable[[Place], None]
) -> int:
    with _bound(host, port) as listening, _locked(folder) as lock:
        key, where, warning = admin_key(folder / "admin.key")
        registry = open_registry(folder, key, policy, limits, lock)
        service = Service(registry, limits, version, is_loopback(host))
        config = uvicorn.Config(
            build(service), lifespan="off", log_level="warning", access_log=False, server_header=False,
            timeout_keep_alive=75, timeout_graceful_shutdown=GRACE, proxy_headers=False, ws="none",
            limit_concurrency=limits.connections,
        )  # fmt: skip
        server = _Server(config)
        gc.collect()
        gc.freeze()  # to search the libraries for garbage again and again would hold everybody up, 100 ms each time
        gc.set_threshold(50_000, 20, 50)
        with _signals(server):
            registry.open_all()
            bound = listening.getsockname()
            shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
            warnings = [text for text in (warning, *registry.problems) if text]
            told(Place(f"http://{shown}:{bound[1]}", str(folder), where, len(registry.seats), warnings))
            watch = asyncio.create_task(_hang_up(server, limits.seconds))
            await server.serve([listening])
            watch.cancel()
            try:
                async with asyncio.timeout(GRACE):
                    await registry.close()
            except TimeoutError:
                busy = ", ".join(name for name, seat in registry.seats.items() if seat.agent is not None)
                print(f"still at work after {GRACE} s: {busy}; left as a kill leaves them", file=sys.stderr, flush=True)
                os._exit(1)
    return 0


async def _hang_up(server: uvicorn.Server, seconds: float) -> None:
    """Close connections that begin a request and do not finish its head in time.

    uvicorn counts the time that a connection says nothing, and only after its first request. So this looks, now and
    then, at those without a request under way: new ones, and ones that have begun another (their timer is off then).
    """
    since: dict[Any, float] = {}
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(min(1.0, seconds / 4))
        now, before, since = loop.time(), since, {}
        connections: list[Any] = list(server.server_state.connections)
        for connection in connections:
            cycle = connection.cycle
            if cycle is not None and not (cycle.response_complete and connection.timeout_keep_alive_task is None):
                continue
            since[connection] = before.get(connection, now)
            if now - since[connection] >= seconds and connection.transport is not None:
                connection.transport.abort()


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handlers, which end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    def stop(*_: Any) -> None:
        if server.should_exit:
            server.force_exit = True  # a second signal: do not wait for connections; agents are closed all the same
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # the protocol is named: only then does asyncio send small answers at once, not 40 ms later (TCP_NODELAY)
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise InvalidArgumentError(
            f"cannot listen at {host}, port {port}: {getattr(error, 'strerror', '') or error}; choose another --port "
            "(0 takes a free one)"
        ) from error
    with listening:
        yield listening


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[FolderLock]:
    if is_live(folder):
        raise InvalidArgumentError(
            f"{folder}: is a durable agent itself, expected a folder for agents; its place is DIR/agents/NAME/journal"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise JournalError(f"{folder}: cannot be made: {error.strerror or error}; choose another folder") from error
    lock = lock_folder(folder)
    try:
        yield lock
    finally:
        lock.release()
