"""`gainful serve`: durable agents over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gainful.cli import console, failures
from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gainful.serve.server import Place

_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "KIB": 1 << 10, "MIB": 1 << 20}


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the agents are kept.", show_default=False)],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines reach it. TLS is the business of a proxy.")
    ] = False,
    fsync: Annotated[
        str, typer.Option(metavar="WHEN", help="record: before every answer; a number: every so many ms; off.")
    ] = "record",
    planning: Annotated[str, typer.Option(metavar="HOW", help="auto, inline or background.")] = "auto",
    max_body: Annotated[str, typer.Option(metavar="SIZE", help="The largest request, such as 500KB.")] = "1MB",
    max_rows: Annotated[int, typer.Option(min=1, max=100_000, help="Transitions in one request.")] = 10_000,
    max_pending: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Decisions of one agent that may wait for outcomes.")
    ] = 1000,
    max_agents: Annotated[int, typer.Option(min=1, max=100_000, help="Agents of the service.")] = 1000,
    max_pairs: Annotated[
        int, typer.Option(min=1, max=10**9, help="States times actions of one agent (times episode_length, samples).")
    ] = 1_000_000,
    max_connections: Annotated[int, typer.Option(min=1, max=100_000, help="Connections at a time.")] = 1000,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600.0, metavar="SECONDS", help="For a whole request to arrive.")
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object once it listens.")] = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> int:
    """Serve durable agents over HTTP: make them, ask them for actions, tell them what happened.

    The admin key is in DIR/admin.key, or in the environment's GAINFUL_ADMIN_KEY. Ctrl-C or SIGTERM ends it gracefully.

    \b
    gainful serve agents
    """  # noqa: D301
    body = _bytes(max_body)
    when = _fsync(fsync)
    if planning not in ("auto", "inline", "background"):
        raise InvalidArgumentError(f"--planning is {planning!r}, expected auto, inline or background")
    try:
        from gainful.serve import server
        from gainful.serve.limits import Limits
        from gainful.serve.seat import Policy
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise InvalidArgumentError(f"{error.name} is not installed: pip install 'gainful[serve]'") from error
    from gainful import __version__

    def told(place: Place) -> None:
        _tell(place, as_json, allow_remote and not server.is_loopback(host))

    limits = Limits(
        body=body, rows=max_rows, pending=max_pending, agents=max_agents, pairs=max_pairs, connections=max_connections,
        seconds=timeout,
    )  # fmt: skip
    return server.serve(
        folder, host=host, port=port, allow_remote=allow_remote, version=__version__,
        policy=Policy(when, planning), limits=limits, told=told,  # type: ignore[arg-type]
    )  # fmt: skip


def _tell(place: Place, as_json: bool, remote: bool) -> None:
    if as_json:
        facts = {"url": place.url, "folder": place.folder, "admin_key": place.admin_key, "agents": place.agents}
        console.write([json.dumps(facts), "\n"])
    for warning in place.warnings:
        _note(f"warning: {warning}")
    if remote:
        _note("warning: other machines can reach it, and keys are sent in the clear: put a proxy with TLS before it")
    _note(f"{place.agents:,} agents of {place.folder} are served at {place.url}")
    _note(f"dashboard: {place.url}/   what it understands: {place.url}/docs   admin key: {place.admin_key}")
    _note("Ctrl-C ends it")


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,12})\s*([A-Za-z]*)", text.strip())
    unit = None if found is None else _UNITS.get(found[2].upper())
    if found is None or unit is None or not 100 <= int(found[1]) * unit <= 1 << 30:
        raise InvalidArgumentError(f"--max-body is {text!r}, expected a size such as 500KB or 1MB, at most 1000MB")
    return int(found[1]) * unit


def _fsync(text: str) -> Any:
    if text in ("record", "off"):
        return text
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = 0.0
    if not 1.0 <= milliseconds <= 3_600_000.0:
        raise InvalidArgumentError(f"--fsync is {text!r}, expected record, off, or milliseconds of at least 1")
    return milliseconds


def _note(text: str) -> None:
    typer.echo(console.printable(text, keep="\n"), err=True)
