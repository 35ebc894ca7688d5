"""The process: one folder, one socket, a graceful shutdown.

On SIGTERM or Ctrl-C the service accepts no more connections, answers the requests in progress, closes the agents with a
snapshot, and exits with code 0. A killed process loses nothing that it answered: every answer is in a journal.
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

from gainful.atomic_files import make_folder
from gainful.errors import InvalidArgumentError, JournalError
from gainful.live import is_live
from gainful.live.folder import lock_folder
from gainful.locks import FolderLock
from gainful.serve.agent_registry import open_registry
from gainful.serve.agent_slot import OpenOptions
from gainful.serve.app import Service, build
from gainful.serve.keys import admin_key
from gainful.serve.limits import Limits
from gainful.serve.protocol import SEND_BUFFER, BoundedProtocol, close_slow_connections

SHUTDOWN_SECONDS = 30.0
"""The time from the signal to the end of the process, for everything."""
ANSWERING_SECONDS = 20
"""The part of it in which requests in progress may be answered; the rest is for closing the agents."""
BACKLOG = 1024


@dataclass(frozen=True)
class ServiceInfo:
    """A service that has started: where it listens, and what it serves."""

    url: str
    folder: str
    admin_key: str
    """Where the admin key comes from; not the key itself."""
    agents: int
    warnings: list[str] = field(default_factory=list)


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    allow_remote: bool = False,
    version: str = "",
    options: OpenOptions | None = None,
    limits: Limits | None = None,
    on_start: Callable[[ServiceInfo], None] = lambda _: None,
) -> int:
    """Serve the agents of a folder until the process is asked to stop.

    Parameters
    ----------
    folder : Path
        Where the agents are; it is created if necessary.
    host, port : str and int
        Where to listen; port 0 takes a free one.
    allow_remote : bool
        Whether `host` may be an address that other machines can reach.
    version : str
        The version to report.
    options : OpenOptions, optional
        How agents are opened.
    limits : Limits, optional
        How much requests and agents may use.
    on_start : callable
        Called once the service listens.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    InvalidArgumentError
        If the address cannot be used.
    JournalError
        If the folder cannot be used, or another service has it.
    """
    if not (is_loopback(host) or allow_remote):
        raise InvalidArgumentError(
            "host",
            host,
            hint="give --allow-remote if that is intended, and use a proxy with TLS: keys are sent in the clear",
            problem=f"host {host} can be reached from other machines",
        )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(folder, host, port, version, options or OpenOptions(), limits or Limits(), on_start))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop if it is installed: it sends head and body of a response together."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return made


async def _serve(
    folder: Path,
    host: str,
    port: int,
    version: str,
    options: OpenOptions,
    limits: Limits,
    on_start: Callable[[ServiceInfo], None],
) -> int:
    with _bound(host, port) as listening, _locked(folder) as lock:
        key, source, warning = admin_key(folder / "admin.key")
        registry = open_registry(folder, key, options, limits, lock)
        service = Service(registry, limits, version, is_loopback(host))
        config = uvicorn.Config(
            build(service),
            http=BoundedProtocol,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=ANSWERING_SECONDS,
            proxy_headers=False,
            ws="none",
            limit_concurrency=limits.connections,
        )
        server = _Server(config)
        gc.collect()
        gc.freeze()  # collecting the libraries' objects again and again would delay every request by 100 ms
        gc.set_threshold(50_000, 20, 50)
        with _signals(server):
            registry.open_all()
            bound = listening.getsockname()
            shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
            warnings = [text for text in (warning, *registry.warnings) if text]
            on_start(ServiceInfo(f"http://{shown}:{bound[1]}", str(folder), source, len(registry.slots), warnings))
            watch = asyncio.create_task(close_slow_connections(server, limits.seconds))
            await server.serve([listening])
            watch.cancel()
            try:
                async with asyncio.timeout_at(server.stopping_since + SHUTDOWN_SECONDS):
                    await registry.close()
            except TimeoutError:
                busy = ", ".join(name for name, slot in registry.slots.items() if slot.agent is not None)
                print(
                    f"still working after {SHUTDOWN_SECONDS:g} s: {busy}; stopped as if killed",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(1)
    return 0


class _Server(uvicorn.Server):
    """A server without uvicorn's own signal handlers, which end the process by the signal."""

    stopping_since = 0.0

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.stopping_since = asyncio.get_running_loop().time()
        await super().shutdown(sockets)


@contextlib.contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    def stop(*_: Any) -> None:
        if server.should_exit:
            server.force_exit = True  # a second signal: do not wait for connections; agents are still closed
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
        # with the protocol given, asyncio sends small responses at once, not 40 ms later (TCP_NODELAY)
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise InvalidArgumentError(
            "port",
            port,
            hint="choose another --port (0 takes a free one)",
            problem=f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', '') or error}",
        ) from error
    with listening:
        yield listening


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[FolderLock]:
    if is_live(folder):
        raise InvalidArgumentError(
            "folder",
            str(folder),
            "a folder of agents",
            "an agent belongs in DIR/agents/NAME/journal",
            problem=f"{folder} is itself a durable agent",
        )
    try:
        with contextlib.suppress(FileExistsError):
            make_folder(folder, mode=0o700)
    except OSError as error:
        raise JournalError(
            f"{folder}: cannot be created: {error.strerror or error}", name=str(folder), hint="choose another folder"
        ) from error
    lock = lock_folder(folder)
    try:
        yield lock
    finally:
        lock.release()
