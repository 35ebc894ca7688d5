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

FIRST_HORIZON = 1024
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
    """States times actions of an agent (422)."""
    states_shown: int = 10_000
    """Rows of the tables that one answer holds."""
    seconds: float = 30.0
    """For a request to arrive (408)."""


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
    message = await _next(request, limits)
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        parts, size = [body], len(body)
        while message.get("more_body", False):
            message = await _next(request, limits)
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limits.body:
                raise _too_large(f"more than {limits.body} bytes", limits)
        body = b"".join(parts)
    if len(body) > limits.body:
        raise _too_large(f"{len(body)} bytes", limits)
    return body


async def _next(request: Request, limits: Limits) -> Any:
    try:
        async with asyncio.timeout(limits.seconds):
            message = await request.receive()
    except TimeoutError:
        raise RefusedError(
            408, f"the body did not arrive within {limits.seconds:g} seconds", where="body", then="send it again",
            headers={"Connection": "close"},
        ) from None  # fmt: skip
    if message["type"] == "http.disconnect":
        raise RefusedError(400, "the connection ended before the body did", where="body", then="send it again")
    return message


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
    if isinstance(states, int) and states * actions > limits.pairs:
        raise RefusedError(
            422, "the agent is too large for this service", where="body.config", found=f"{states} states or cells, "
            f"{actions} actions", expected=f"at most {limits.pairs} pairs of a state and an action",
            then="take fewer states, or start the service with a larger --max-pairs",
        )  # fmt: skip


def _cells(config: dict[str, Any], n_actions: int) -> int | None:
    """The number of cells that an agent on points begins with; None where only the agent can say."""
    try:
        if config.get("partition") is not None:
            return checked_partition(config["partition"]).n_cells
        box = box_to_cut(config.get("dim"), config.get("low"), config.get("high"), None, config.get("outside"))
        horizon = config.get("horizon")
        bins = chosen_bins(
            FIRST_HORIZON if horizon is None else int(horizon), n_actions, config.get("lipschitz"),
            config.get("holder"), box.dim,
        )  # fmt: skip
        return math.prod([bins] * box.dim)
    except (GainfulError, TypeError, ValueError, OverflowError):
        return None
