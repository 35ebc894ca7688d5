"""How much one request, one agent and one service may use."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from gainful.agents.smoothness import Smoothness, box_to_cut, checked_partition
from gainful.errors import GainfulError
from gainful.serve.body_budget import BodyBudget
from gainful.serve.problem_details import ProblemError

REFINEMENT_HORIZON = 1 << 20
"""Steps for which the cells are counted of an agent that refines them over time."""
SIZE_FACTORS = ("episode_length", "samples")
"""Settings that multiply the stored entries: actions for every step of a block, samples for every pair."""
SMALL_BODY = 1 << 16
"""Bytes of a request that is neither a batch nor a new agent (413); such a body is parsed at once."""
JSON_TYPES = ("application/json", "application/json; charset=utf-8", "application/json;charset=utf-8")


@dataclass(frozen=True)
class Limits:
    """Limits of the service, each with the status of a request that exceeds it."""

    body: int = 1 << 20
    """Bytes of a batch of transitions or a new agent (413)."""
    rows: int = 10_000
    """Transitions in one request (422)."""
    pending: int = 1000
    """Decisions of one agent that are waiting for their outcomes (429)."""
    queue: int = 1000
    """Requests that are waiting for one agent (503)."""
    agents: int = 1000
    """Agents of the service (507)."""
    pairs: int = 1_000_000
    """States times actions of an agent, times the steps it plans for if it stores them (422)."""
    connections: int = 1000
    """Simultaneous connections (503)."""
    seconds: float = 30.0
    """The time for a request to arrive, its head (else the connection is closed) and its body (408)."""

    @property
    def bodies(self) -> int:
        """Bytes of all large bodies in progress (503): 64 MB, or four times the largest body."""
        return max(1 << 26, 4 * self.body)


async def body_of(request: Request, limits: Limits, most: int = SMALL_BODY, budget: BodyBudget | None = None) -> bytes:
    """Read the body of a request, declared as JSON and not too long; the rest of a longer body is not read.

    A body that may be large counts in `budget` until the request is answered.
    """
    most = min(most, limits.body)
    declared = media = ""
    for name, value in request.scope["headers"]:
        if name == b"content-length":
            declared = value.decode("latin-1")
        elif name == b"content-type":
            media = value.decode("latin-1")
    if media not in JSON_TYPES and media.lower().replace(" ", "") not in JSON_TYPES:
        raise ProblemError(
            415,
            "the Content-Type is not application/json",
            where="header Content-Type",
            found=media[:100] or "none",
            expected="application/json",
            hint="send the header Content-Type: application/json",
        )
    if declared.isdigit() and int(declared) > most:
        raise _too_large(f"{declared} bytes", most)
    if budget is not None and declared.isdigit():
        budget.check(request.scope, int(declared))
    try:
        async with asyncio.timeout(limits.seconds):  # for the whole body: a byte now and then does not extend it
            return await _read(request, most, budget)
    except TimeoutError:
        raise ProblemError(
            408,
            f"the body did not arrive within {limits.seconds:g} seconds",
            where="body",
            found="a part of it",
            expected="all of it",
            hint="send the request again",
            headers={"Connection": "close"},
        ) from None


async def _read(request: Request, most: int, budget: BodyBudget | None) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message: Any = await request.receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(
                400, "the connection ended before the body did", where="body", hint="send the request again"
            )
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(f"more than {most} bytes", most)
        if budget is not None:
            budget.hold(request.scope, size)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(found: str, most: int) -> ProblemError:
    return ProblemError(
        413,
        "the body is too large",
        where="body",
        found=found,
        expected=f"at most {most} bytes",
        hint="send less at a time",
        headers={"Connection": "close"},
    )


def check_size(config: dict[str, Any], limits: Limits) -> None:
    """Reject an agent whose tables would be too large, before anything is allocated."""
    actions = config.get("n_actions")
    if not isinstance(actions, int):
        return  # the agent itself reports what is missing
    states: Any = config.get("n_states")
    if states is None:
        states = _n_cells(config, actions)
    if not isinstance(states, int):
        return
    entries, found = states * actions, f"{states} states or cells, {actions} actions"
    for name in SIZE_FACTORS:
        value = config.get(name)
        if isinstance(value, (int, float)) and value > 1:
            entries, found = math.ceil(min(entries * value, 1e300)), f"{found}, {name} {value}"
    if entries > limits.pairs:
        raise ProblemError(
            422,
            "the agent is too large for this service",
            where="body.config",
            found=found,
            expected=f"at most {limits.pairs} state-action pairs, times {' or '.join(SIZE_FACTORS)}",
            hint="use fewer states, or start the service with a larger --max-pairs",
        )


def _n_cells(config: dict[str, Any], n_actions: int) -> int | None:
    """The number of cells of an agent on continuous states, in the long run; None if only the agent can tell."""
    try:
        if config.get("partition") is not None:
            return checked_partition(config["partition"]).n_cells
        box = box_to_cut(config.get("dim"), config.get("low"), config.get("high"), None, config.get("outside"))
        horizon = config.get("horizon")
        smoothness = Smoothness(config.get("lipschitz"), config.get("holder"))
        bins = smoothness.bins(REFINEMENT_HORIZON if horizon is None else int(horizon), n_actions, box.dim)
        return math.prod([bins] * box.dim)
    except (GainfulError, TypeError, ValueError, OverflowError):
        return None
