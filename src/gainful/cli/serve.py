"""`gainful serve`: durable agents over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures, options
from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gainful.serve.server import ServiceInfo

_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "KIB": 1 << 10, "MIB": 1 << 20}


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the agents.", show_default=False)],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port to listen on; 0 takes a free one.")
    ] = 8080,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines reach it; use a proxy for TLS.")
    ] = False,
    fsync: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="When to sync to disk: record (before every answer), a number of milliseconds, or off.",
        ),
    ] = "record",
    planning: Annotated[str, typer.Option(metavar="HOW", help="Where to plan: auto, inline or background.")] = "auto",
    max_body: Annotated[str, typer.Option(metavar="SIZE", help="The largest request, such as 500KB.")] = "1MB",
    max_rows: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="The most transitions in one request.")
    ] = 10_000,
    max_pending: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, metavar="N", help="The most decisions of one agent that wait for outcomes."),
    ] = 1000,
    max_agents: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="The most agents.")] = 1000,
    max_pairs: Annotated[
        int,
        typer.Option(
            min=1, max=10**9, metavar="N", help="The most states × actions of one agent (× episode_length, samples)."
        ),
    ] = 1_000_000,
    max_connections: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="The most simultaneous connections.")
    ] = 1000,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600.0, metavar="SECONDS", help="The time for a whole request to arrive.")
    ] = 30.0,
    allow: options.Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object once the service listens.")] = False,
    max_memory: options.MaxMemory = None,  # noqa: ARG001
    debug: failures.Debug = False,  # noqa: ARG001
) -> int:
    """Serve durable agents over HTTP: create them, ask them for actions, report what happened.

    The admin key is in DIR/admin.key, or in the environment variable GAINFUL_ADMIN_KEY. Ctrl-C or SIGTERM stops the
    service gracefully.

    \b
    gainful serve agents
    """  # noqa: D301
    body = _bytes(max_body)
    when = _fsync(fsync)
    if planning not in ("auto", "inline", "background"):
        raise InvalidArgumentError("--planning", planning, "auto, inline or background")
    try:
        from gainful.serve import server
        from gainful.serve.agent_slot import OpenOptions
        from gainful.serve.limits import Limits
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in ("starlette", "uvicorn", "httptools"):
            raise
        raise InvalidArgumentError(
            module, hint="run pip install 'gainful[serve]'", problem=f"{module} is not installed"
        ) from error
    from gainful import __version__

    code = server.serve(
        folder,
        host=host,
        port=port,
        allow_remote=allow_remote,
        version=__version__,
        options=OpenOptions(when, planning, options.allowed(allow)),  # type: ignore[arg-type]
        limits=Limits(
            body=body,
            rows=max_rows,
            pending=max_pending,
            agents=max_agents,
            pairs=max_pairs,
            connections=max_connections,
            seconds=timeout,
        ),
        on_start=lambda info: _announce(info, as_json, allow_remote and not server.is_loopback(host)),
    )
    _note("stopped")
    return code


def _announce(info: ServiceInfo, as_json: bool, remote: bool) -> None:
    """Say on stderr, and as JSON on stdout if asked for, that the service is ready."""
    if as_json:
        facts = {"url": info.url, "folder": info.folder, "admin_key": info.admin_key, "agents": info.agents}
        console.write([json.dumps(facts), "\n"])
    for warning in info.warnings:
        _note(f"warning: {warning}")
    if remote:
        _note("warning: other machines can reach this service, and keys are sent in the clear: use a proxy with TLS")
    agents = "1 agent" if info.agents == 1 else f"{info.agents:,} agents"
    _note(f"serving {agents} from {info.folder} at {info.url}")
    _note(f"dashboard:         {info.url}/")
    _note(f"API documentation: {info.url}/docs")
    _note(f"admin key:         {info.admin_key}")
    _note("press Ctrl-C to stop")


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,12})\s*([A-Za-z]*)", text.strip())
    unit = None if found is None else _UNITS.get(found[2].upper())
    if found is None or unit is None or not 100 <= int(found[1]) * unit <= 1 << 30:
        raise InvalidArgumentError("--max-body", text, "a size such as 500KB or 1MB, at most 1000MB")
    return int(found[1]) * unit


def _fsync(text: str) -> Any:
    if text in ("record", "off"):
        return text
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = 0.0
    if not 1.0 <= milliseconds <= 3_600_000.0:
        raise InvalidArgumentError("--fsync", text, "record, off, or a number of milliseconds of at least 1")
    return milliseconds


def _note(text: str) -> None:
    console.note(console.printable(text, keep="\n"))
