"""How much one request, one agent and one service may take."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from gainful.agents.partitioned import box_to_cut, checked_partition, chosen_bins
from gainful.errors import GainfulError
from gainful.serve.refusals import RefusedError

LIFE = 1 << 20
"""Steps whose cells count for an agent that refines them as it goes on."""
MULTIPLY = ("episode_length", "samples")
"""Settings whose product with the pairs is kept: actions of every step of a block, samples of every pair."""
JSON_TYPES = ("application/json", "application/json; charset=utf-8", "application/json;charset=utf-8")


@dataclass(frozen=True)
class Limits:
    """What is refused beyond."""

    body: int = 1 << 20
    """Bytes of a request (413)."""
    rows: int = 10_000
    """Transitions in one request (422)."""
    pending: int = 1000
    """Decisions of an agent that wait for their outcomes (429)."""
    queue: int = 1000
    """Requests that wait for one agent (503)."""
    agents: int = 1000
    """Agents of the service (507)."""
    pairs: int = 1_000_000
    """States times actions of an agent, times the steps it plans for where it keeps them (422)."""
    connections: int = 1000
    """Connections at a time (503)."""
    seconds: float = 30.0
    """For a request to arrive, head (the connection is closed) and body (408)."""


async def body_of(request: Request, limits: Limits) -> bytes:
    """The body of a request that is JSON and not too long; the rest of a longer one is not read."""
    declared = media = ""
    for name, value in request.scope["headers"]:
        if name == b"content-length":
            declared = value.decode("latin-1")
        elif name == b"content-type":
            media = value.decode("latin-1")
    if media not in JSON_TYPES and media.lower().replace(" ", "") not in JSON_TYPES:
        raise RefusedError(
            415, "the body is not declared as JSON", where="header Content-Type", found=media[:100] or "none",
            expected="application/json", then="send the header Content-Type: application/json",
        )  # fmt: skip
    if declared.isdigit() and int(declared) > limits.body:
        raise _too_large(f"{declared} bytes", limits)
    try:
        async with asyncio.timeout(limits.seconds):  # for all of it: one byte now and then does not prolong it
            return await _read(request, limits)
    except TimeoutError:
        raise RefusedError(
            408, f"the body did not arrive within {limits.seconds:g} seconds", where="body", found="a part of it",
            expected="all of it", then="send it again", headers={"Connection": "close"},
        ) from None  # fmt: skip


async def _read(request: Request, limits: Limits) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message: Any = await request.receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection ended before the body did", where="body", then="send it again")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limits.body:
            raise _too_large(f"more than {limits.body} bytes", limits)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(found: str, limits: Limits) -> RefusedError:
    return RefusedError(
        413, "the body is too large", where="body", found=found, expected=f"at most {limits.body} bytes",
        then="send less at a time", headers={"Connection": "close"},
    )  # fmt: skip


def check_size(config: dict[str, Any], limits: Limits) -> None:
    """Refuse an agent whose tables would be too large, before anything is allocated."""
    actions = config.get("n_actions")
    if not isinstance(actions, int):
        return  # the agent itself says what is missing
    states: Any = config.get("n_states")
    if states is None:
        states = _cells(config, actions)
    if not isinstance(states, int):
        return
    entries, found = states * actions, f"{states} states or cells, {actions} actions"
    for name in MULTIPLY:
        value = config.get(name)
        if isinstance(value, (int, float)) and value > 1:
            entries, found = math.ceil(min(entries * value, 1e300)), f"{found}, {name} {value}"
    if entries > limits.pairs:
        raise RefusedError(
            422, "the agent is too large for this service", where="body.config", found=found,
            expected=f"at most {limits.pairs} pairs of a state and an action, times {' or '.join(MULTIPLY)}",
            then="take fewer states, or start the service with a larger --max-pairs",
        )  # fmt: skip


def _cells(config: dict[str, Any], n_actions: int) -> int | None:
    """The cells of an agent on points, in the long run; None where only the agent can say."""
    try:
        if config.get("partition") is not None:
            return checked_partition(config["partition"]).n_cells
        box = box_to_cut(config.get("dim"), config.get("low"), config.get("high"), None, config.get("outside"))
        horizon = config.get("horizon")
        bins = chosen_bins(
            LIFE if horizon is None else int(horizon), n_actions, config.get("lipschitz"),
            config.get("holder"), box.dim,
        )  # fmt: skip
        return math.prod([bins] * box.dim)
    except (GainfulError, TypeError, ValueError, OverflowError):
        return None
