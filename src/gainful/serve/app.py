"""The routes: who may call them, how requests are read, and what is answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gainful.errors import GainfulError
from gainful.live import DurableAgent
from gainful.live.earnings import MAX_BLOCKS
from gainful.serve import models
from gainful.serve.agent_registry import AgentRecord, AgentRegistry
from gainful.serve.agent_slot import AgentSlot
from gainful.serve.agent_view import agent_view, earnings, episodes, json_settings, summary
from gainful.serve.body_budget import BodyBudget
from gainful.serve.json_text import encode
from gainful.serve.keys import ADMIN
from gainful.serve.limits import Limits, body_of
from gainful.serve.metrics import METRICS_MEDIA_TYPE, Metrics
from gainful.serve.observations import hand_over
from gainful.serve.openapi import OPERATIONS, openapi
from gainful.serve.pages import PAGE_HEADERS, Page, dashboard, documentation
from gainful.serve.problem_details import (
    PROBLEM_MEDIA_TYPE,
    ProblemError,
    of_error,
    of_validation,
)

T = TypeVar("T")
Handler = Callable[["Service", Request], Awaitable[Response]]
RESPONSE_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
LARGE_BODY = 1 << 14
"""Bytes of a body that is parsed in a thread."""
LARGE_ANSWER = 2000
"""Numbers or rows of a response that is written in a thread."""
LARGE_AT_ONCE = 8
"""Large responses that are being made or sent at the same time: each may take tens of megabytes."""
PIECE = 1 << 16
"""Bytes of a large response that are sent at a time."""
MANY_AGENTS = 50
"""Agents whose list is made in a thread."""
MAX_HEADER_KEY = 300
"""Characters of a key in a request; longer ones are not even hashed."""


class BytesResponse(Response):
    """Bytes with their headers and nothing else, because one is built for every request."""

    def __init__(self, content: bytes, media: bytes, status: int, more: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status_code, self.body, self.background = status, content, None
        length = (b"content-length", b"%d" % len(content))
        self.raw_headers = [length, (b"content-type", media), *RESPONSE_HEADERS, *more]


def json_response(value: Any, status: int = 200) -> BytesResponse:
    """A small value as JSON."""
    content = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return BytesResponse(content, b"application/json", status)


class LargeResponse(BytesResponse):
    """JSON that is sent as fast as the client reads it; until then it counts against the limits in `held`."""

    def __init__(self, content: bytes, held: contextlib.AsyncExitStack) -> None:
        super().__init__(content, b"application/json", 200)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send it in pieces."""
        async with self._held:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            content = memoryview(self.body)
            for start in range(0, len(content), PIECE):
                more = start + PIECE < len(content)
                piece = bytes(content[start : start + PIECE])
                await send({"type": "http.response.body", "body": piece, "more_body": more})


def problem_response(problem: ProblemError) -> BytesResponse:
    """A problem as JSON, with its status and headers."""
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    return BytesResponse(problem.body(), PROBLEM_MEDIA_TYPE.encode(), problem.status, headers)


class Service:
    """What the handlers share.

    Parameters
    ----------
    registry : AgentRegistry
        The agents.
    limits : Limits
        What is rejected.
    version : str
        The version of gainful, as the description and /healthz report it.
    open_metrics : bool
        Whether /metrics needs no key when it is requested directly from the same machine.
    """

    def __init__(self, registry: AgentRegistry, limits: Limits, version: str, open_metrics: bool) -> None:
        self.registry, self.limits, self.version = registry, limits, version
        self.metrics, self.open_metrics = Metrics(), open_metrics
        self._thread = ThreadPoolExecutor(1, "gainful-json")  # several would share one interpreter lock
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.bodies = BodyBudget(limits.bodies)
        description = openapi(version)
        self.description = json.dumps(description).encode()
        self.pages = {"/": dashboard(), "/docs": documentation(description)}

    # ------------------------------------------------------------------ large requests and responses

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do something that takes long, but can be interrupted, without delaying other requests."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def parse(self, slot: AgentSlot | None, body: bytes, parse: Callable[[bytes], T]) -> T:
        """Parse a body, in a thread if it is large."""
        if len(body) <= LARGE_BODY:
            return parse(body)
        async with slot.large if slot is not None else contextlib.nullcontext():
            return await self.in_thread(lambda: parse(body))

    async def answer(self, slot: AgentSlot, size: int, job: Callable[[DurableAgent], dict[str, Any]]) -> Response:
        """The result of a job as JSON, made in a thread and sent in pieces if its size may be large."""
        if size <= LARGE_ANSWER:
            return BytesResponse(encode(await slot.call(job)), b"application/json", 200)
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self.limits.seconds):
                    await held.enter_async_context(slot.large)
                    await held.enter_async_context(self._large)
            except TimeoutError:
                raise ProblemError(
                    503,
                    "too many large responses are being sent",
                    where="service",
                    hint="ask for less, or send the request again later",
                    headers={"Retry-After": "5"},
                ) from None
            value = await slot.call(job)
            content = await self.in_thread(lambda: encode(value))
            return LargeResponse(content, held.pop_all())

    # ------------------------------------------------------------------ access

    def holder(self, request: Request) -> str:
        """The holder of the key in the request; 401 if it has no key, or an unknown one."""
        given = b""
        for name, value in request.scope["headers"]:
            if name == b"authorization":
                given = value
        scheme, _, key = given.decode("latin-1").partition(" ")
        usable = scheme.lower() == "bearer" and len(key) <= MAX_HEADER_KEY
        holder = self.registry.keys.holder(key.strip()) if usable else None
        if holder is None:
            raise ProblemError(
                401,
                "the key is missing or unknown",
                where="header Authorization",
                found="a key" if given else "none",
                expected="Authorization: Bearer KEY",
                hint="send the key of the agent, or the admin key",
                headers={"WWW-Authenticate": 'Bearer realm="gainful"'},
            )
        return holder

    def require_admin(self, request: Request) -> None:
        """403 unless the request has the admin key."""
        if self.holder(request) != ADMIN:
            raise ProblemError(
                403,
                "this operation needs the admin key",
                where="header Authorization",
                found="the key of an agent",
                expected="the admin key",
                hint="ask the operator of the service",
            )

    def slot(self, request: Request) -> AgentSlot:
        """The agent in the path, if the key gives access to it; other agents' keys do not even learn if it exists."""
        wanted, holder = request.path_params["id"], self.holder(request)
        if holder not in (ADMIN, wanted):
            raise ProblemError(
                403,
                "the key belongs to another agent",
                where="header Authorization",
                expected="the key of this agent, or the admin key",
                hint="GET /agents shows which agent the key belongs to",
            )
        return self.registry.slot(wanted)

    def accepted_states(self, agent_id: str) -> str:
        """Which states an agent accepts, in words; empty if the agent is not open."""
        slot = self.registry.slots.get(agent_id)
        agent = None if slot is None else slot.agent
        if agent is None:
            return ""
        if agent.dim:
            return f"a list of {agent.dim} numbers" if agent.dim > 1 else "a number, or a list of 1 number"
        labelled = agent.labels is not None and agent.labels.states is not None
        return f"an integer in 0 … {agent.n_states - 1}" + (", or a label" if labelled else "")


# ---------------------------------------------------------------------- agents


async def make_agent(service: Service, request: Request) -> Response:
    """POST /agents."""
    service.require_admin(request)
    body = await body_of(request, service.limits, service.limits.body, service.bodies)
    wanted = await service.parse(None, body, models.parse_new_agent)
    record, key = await service.registry.make(wanted)
    return json_response({"id": record.id, "name": record.name, "key": key}, 201)


async def list_agents(service: Service, request: Request) -> Response:
    """GET /agents: all agents for the admin key, its own for an agent's key."""
    holder = service.holder(request)
    registry = service.registry
    names = sorted(registry.slots) if holder == ADMIN else [holder]
    listed = [(registry.records[name], registry.slots[name]) for name in names]
    folder = str(registry.folder)
    if len(listed) <= MANY_AGENTS:
        return json_response({"agents": [_listed(record, slot, folder) for record, slot in listed]})
    content = await service.in_thread(
        lambda: encode({"agents": [_listed(record, slot, folder) for record, slot in listed]})
    )
    return BytesResponse(content, b"application/json", 200)


def _listed(record: AgentRecord, slot: AgentSlot, folder: str) -> dict[str, Any]:
    """The row of an agent in the list."""
    known = {"agent": "", "observations": 0, "episodes": 0, "objective": "reward", "gain_low": None, "gain_high": None}
    agent = slot.agent  # read once, because a thread may close it meanwhile
    if agent is not None:
        known |= {key: value for key, value in summary(agent).items() if key in known}
    return {
        "id": record.id,
        "name": record.name,
        "created": record.created,
        "open": agent is not None,
        "trouble": slot.trouble.replace(folder, "the service's folder"),
        **known,
    }


async def get_agent(service: Service, request: Request) -> Response:
    """GET /agents/{id}."""
    slot = service.slot(request)
    first, states = (_query(request, name) for name in ("first", "states"))
    record = service.registry.records[slot.id]
    about = {"id": record.id, "name": record.name, "created": record.created}
    agent = slot.agent
    size = LARGE_ANSWER + 1 if agent is None else min(states, agent.n_states) * agent.n_actions
    return await service.answer(slot, size, lambda agent: {**about, **agent_view(agent, first, states)})


async def archive_agent(service: Service, request: Request) -> Response:
    """DELETE /agents/{id}."""
    service.require_admin(request)
    slot = service.slot(request)
    return json_response({"id": slot.id, "done": f"archived as {await service.registry.archive(slot.id)}"})


async def new_key(service: Service, request: Request) -> Response:
    """POST /agents/{id}/key."""
    service.require_admin(request)
    slot = service.slot(request)
    return json_response({"id": slot.id, "key": await service.registry.new_key(slot.id)})


# ---------------------------------------------------------------------- deciding and observing


async def act(service: Service, request: Request) -> Response:
    """POST /agents/{id}/act."""
    slot = service.slot(request)
    asked = models.parse_act(await body_of(request, service.limits))
    most = service.limits.pending

    def decide(agent: DurableAgent) -> Any:
        waiting = agent.n_pending
        if waiting >= most and not (asked.request_id and agent.answered(asked.request_id)):
            raise ProblemError(
                429,
                f"{waiting} decisions are waiting for their outcomes",
                where="agent",
                expected=f"at most {most}",
                hint="report outcomes (/observe with decision_id), or /abandon decisions",
                headers={"Retry-After": "1"},
            )
        return agent.act(asked.state, request_id=asked.request_id)

    decision = await slot.call(decide)
    action = str(decision) if isinstance(decision, str) else int(decision)
    return json_response({"decision_id": decision.decision_id, "action": action})


async def observe(service: Service, request: Request) -> Response:
    """POST /agents/{id}/observe: one transition, an outcome, or a batch."""
    slot = service.slot(request)
    content = await body_of(request, service.limits, service.limits.body, service.bodies)
    body = await service.parse(slot, content, lambda content: models.parse_observation(content, service.limits.rows))
    receipt = await slot.call(lambda agent: hand_over(agent, body))
    return json_response({"sequence": receipt.sequence, "repeated": receipt.repeated})


async def abandon(service: Service, request: Request) -> Response:
    """POST /agents/{id}/abandon."""
    slot = service.slot(request)
    body = models.parse_abandon(await body_of(request, service.limits))
    receipt = await slot.call(lambda agent: agent.abandon(body.decision_id, request_id=body.request_id))
    done = f"decision {body.decision_id} is no longer pending"
    return json_response({"id": slot.id, "done": done, "sequence": receipt.sequence, "repeated": receipt.repeated})


async def change(service: Service, request: Request) -> Response:
    """POST /agents/{id}/change. Without a request_id, repeating the last change of a setting changes nothing."""
    slot = service.slot(request)
    body = models.parse_change(await body_of(request, service.limits))
    wanted = {
        name: value for name in ("span", "bonus_scale", "width_scale") if (value := getattr(body, name)) is not None
    }

    def apply(agent: DurableAgent) -> dict[str, Any]:
        last = {change.name: change for change in agent.changes}
        known = bool(wanted) and all(
            name in last and last[name].new == value and last[name].reason == body.reason
            for name, value in wanted.items()
        )
        if body.request_id is not None or not known:
            known = agent.change(reason=body.reason, request_id=body.request_id, **wanted).repeated
        return {"settings": json_settings(agent.settings), "repeated": known}

    return json_response(await slot.call(apply))


async def list_pending(service: Service, request: Request) -> Response:
    """GET /agents/{id}/pending."""
    slot = service.slot(request)
    limit = _query(request, "limit")

    def waiting(agent: DurableAgent) -> dict[str, Any]:
        pending = agent.pending
        rows = [
            {
                "decision_id": decision.decision_id,
                "state": decision.state.tolist() if agent.dim else int(decision.state),
                "action": decision.action,
                "state_label": decision.state_label,
                "action_label": decision.action_label,
                "observations": decision.t,
            }
            for decision in pending[:limit]
        ]
        return {"id": slot.id, "pending": rows, "of": len(pending)}

    return await service.answer(slot, min(limit, service.limits.pending), waiting)


async def list_episodes(service: Service, request: Request) -> Response:
    """GET /agents/{id}/episodes."""
    slot = service.slot(request)
    points = _query(request, "points")
    return await service.answer(slot, 4 * points, lambda agent: {"id": slot.id, **episodes(agent, points)})


async def list_earnings(service: Service, request: Request) -> Response:
    """GET /agents/{id}/earnings."""
    slot = service.slot(request)
    return await service.answer(slot, MAX_BLOCKS, lambda agent: {"id": slot.id, **earnings(agent)})


# ---------------------------------------------------------------------- the service itself


async def metrics(service: Service, request: Request) -> Response:
    """GET /metrics: with the admin key, or requested directly from the same machine, not through a proxy."""
    if not (service.open_metrics and _is_local(request)):
        service.require_admin(request)
    text = await service.in_thread(lambda: service.metrics.text(service.registry))
    return BytesResponse(text.encode(), METRICS_MEDIA_TYPE.encode(), 200)


def _is_local(request: Request) -> bool:
    if any(name in request.headers for name in PROXY_HEADERS):
        return False
    try:
        host = request.headers.get("host", "").rsplit(":", 1)[0].strip("[]")
        host_is_local = host == "localhost" or ip_address(host).is_loopback
        return host_is_local and request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


async def health(service: Service, request: Request) -> Response:  # noqa: ARG001
    """GET /healthz."""
    return json_response({"status": "ok", "version": service.version, "agents": len(service.registry.slots)})


async def description(service: Service, request: Request) -> Response:  # noqa: ARG001
    """GET /openapi.json."""
    return BytesResponse(service.description, b"application/json", 200)


async def page(service: Service, request: Request) -> Response:
    """GET / and /docs."""
    found: Page = service.pages[request.scope["path"]]
    policy = [(b"content-security-policy", found.policy.encode())]
    return BytesResponse(found.html.encode(), b"text/html; charset=utf-8", 200, [*policy, *PAGE_HEADERS])


HANDLERS: dict[str, Handler] = {
    "make_agent": make_agent,
    "list_agents": list_agents,
    "get_agent": get_agent,
    "archive_agent": archive_agent,
    "act": act,
    "observe": observe,
    "abandon": abandon,
    "change": change,
    "list_pending": list_pending,
    "list_episodes": list_episodes,
    "list_earnings": list_earnings,
    "new_key": new_key,
    "metrics": metrics,
    "health": health,
}
QUERY_PARAMETERS = {parameter.name: parameter for operation in OPERATIONS for parameter in operation.query}


def _query(request: Request, name: str) -> int:
    """An integer from the query string, or its default."""
    parameter = QUERY_PARAMETERS[name]
    given = request.query_params.getlist(name)
    if not given:
        return parameter.default
    text = given[-1]
    is_integer = len(given) == 1 and len(text) <= 12 and text.isascii() and text.isdigit()
    if is_integer and parameter.least <= int(text) <= parameter.most:
        return int(text)
    raise ProblemError(
        422,
        f"{name} is out of range",
        where=f"query.{name}",
        found=", ".join(given)[:100],
        expected=f"one integer from {parameter.least} to {parameter.most}",
        hint="see /docs for the parameters",
    )


# ---------------------------------------------------------------------- the application


def build(service: Service) -> Starlette:
    """Build the ASGI application."""
    paths: dict[str, dict[str, Handler]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.upper()] = HANDLERS[operation.name]
    paths |= {"/openapi.json": {"GET": description}, "/docs": {"GET": page}, "/": {"GET": page}}
    ordered = sorted(paths, key=lambda path: not path.endswith(("/act", "/observe")))  # the busy ones first
    routes = [Route(path, _endpoint(service, path, paths[path]), methods=sorted(paths[path])) for path in ordered]

    async def not_served(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        service.metrics.count("other", "other", error.status_code, 0.0)
        messages = {404: "there is no such path", 405: "the path does not support this method"}
        return problem_response(
            ProblemError(
                error.status_code,
                messages.get(error.status_code, error.detail),
                where="path",
                found=f"{request.method} {request.scope['path']}"[:200],
                hint="/docs lists all paths and methods",
                headers=dict(error.headers or {}),
            )
        )

    app = Starlette(routes=routes, exception_handlers={HTTPException: not_served})
    app.router.redirect_slashes = False
    return app


def _endpoint(service: Service, path: str, handlers: dict[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
    """A handler that turns every exception into a response, and counts requests."""

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        method = "GET" if request.method == "HEAD" else request.method
        try:
            response = await handlers[method](service, request)
        except ProblemError as problem:
            response = problem_response(problem)
        except ValidationError as error:
            states = service.accepted_states(request.path_params.get("id", ""))
            response = problem_response(of_validation(error, states))
        except models.RowError as error:
            states = service.accepted_states(request.path_params.get("id", ""))
            response = problem_response(of_validation(error.error, states, ("transitions", error.row)))
        except GainfulError as error:
            agent_id = request.path_params.get("id", "")
            response = problem_response(of_error(error, agent_id, str(service.registry.folder / "agents" / agent_id)))
            if response.status_code >= 500:
                print(f"{request.method} {path}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        except Exception:
            print(f"{request.method} {path}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            response = problem_response(
                ProblemError(500, "internal error", where="service", hint="the log of the service has the details")
            )
        finally:
            service.bodies.release(request.scope)
        service.metrics.count(path, request.method, response.status_code, time.perf_counter() - began)
        return response

    return endpoint
