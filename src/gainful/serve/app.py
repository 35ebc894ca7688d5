"""The routes: who may, what is asked, and what the agent answers."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gainful.errors import GainfulError
from gainful.live import DurableAgent
from gainful.serve import models
from gainful.serve.description import OPERATIONS, openapi
from gainful.serve.keys import ADMIN
from gainful.serve.knowledge import episodes, finite, knowledge, summary
from gainful.serve.limits import Limits, body_of
from gainful.serve.metrics import MEDIA_TYPE as METRICS_TYPE
from gainful.serve.metrics import Metrics
from gainful.serve.pages import PAGE_HEADERS, Page, dashboard, documentation
from gainful.serve.refusals import MEDIA_TYPE as PROBLEM_TYPE
from gainful.serve.refusals import RefusedError, of_error, of_validation, shown
from gainful.serve.registry import Registry
from gainful.serve.seat import Seat

Handler = Callable[["Service", Request], Awaitable[Response]]
PLAIN = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Answer(Response):
    """Bytes with their headers, and nothing more: built for every request."""

    def __init__(self, content: bytes, media: bytes, status: int, more: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status_code, self.body, self.background = status, content, None
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)), (b"content-type", media), *PLAIN, *more,
        ]  # fmt: skip


def answer(value: Any, status: int = 200) -> Answer:
    """JSON."""
    return Answer(json.dumps(value, allow_nan=False, separators=(",", ":")).encode(), b"application/json", status)


def refused(refusal: RefusedError) -> Answer:
    """A problem."""
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    return Answer(refusal.body(), PROBLEM_TYPE.encode(), refusal.status, headers)


class Service:
    """What the handlers share."""

    def __init__(self, registry: Registry, limits: Limits, version: str, open_metrics: bool) -> None:
        self.registry, self.limits, self.version = registry, limits, version
        self.metrics, self.open_metrics = Metrics(), open_metrics
        description = openapi(version)
        self.description = json.dumps(description).encode()
        self.pages = {"/": dashboard(), "/docs": documentation(description)}

    # ------------------------------------------------------------------ who may

    def holder(self, request: Request) -> str:
        """Whose key the request has; 401 where it has none that anybody holds."""
        given = b""
        for name, value in request.scope["headers"]:
            if name == b"authorization":
                given = value
        scheme, _, key = given.decode("latin-1").partition(" ")
        holder = self.registry.keys.holder(key.strip()) if scheme.lower() == "bearer" and len(key) <= 300 else None
        if holder is None:
            raise RefusedError(
                401, "no key, or one that nobody holds", where="header Authorization",
                found="a key" if given else "none", expected="Authorization: Bearer KEY",
                then="send the agent's key, or the admin key", headers={"WWW-Authenticate": 'Bearer realm="gainful"'},
            )  # fmt: skip
        return holder

    def admin(self, request: Request) -> None:
        """403 unless the request has the admin key."""
        if self.holder(request) != ADMIN:
            raise RefusedError(
                403, "this needs the admin key", where="header Authorization", found="the key of an agent",
                expected="the admin key", then="ask who runs the service",
            )  # fmt: skip

    def seat(self, request: Request) -> Seat:
        """The agent that the path names, if the key opens it; another agent's key learns not even if it exists."""
        wanted, holder = request.path_params["id"], self.holder(request)
        if holder not in (ADMIN, wanted):
            raise RefusedError(
                403, "the key is that of another agent", where="header Authorization",
                expected="the key of this agent, or the admin key", then="GET /agents says which agent it opens",
            )  # fmt: skip
        return self.registry.seat(wanted)

    def states(self, agent_id: str) -> str:
        """Which states an agent has, in words; empty where it is not open."""
        seat = self.registry.seats.get(agent_id)
        agent = None if seat is None else seat.agent
        if agent is None:
            return ""
        if agent.dim:
            return f"a list of {agent.dim} numbers" if agent.dim > 1 else "a number, or a list of 1 number"
        return f"an integer in 0 … {agent.n_states - 1}"


# ---------------------------------------------------------------------- agents


async def make_agent(service: Service, request: Request) -> Response:
    """POST /agents."""
    service.admin(request)
    wanted = models.new_agent(await body_of(request, service.limits))
    card, key = await service.registry.make(wanted)
    return answer({"id": card.id, "name": card.name, "key": key}, 201)


async def list_agents(service: Service, request: Request) -> Response:
    """GET /agents: all for the admin key, its own for an agent's key."""
    holder = service.holder(request)
    registry = service.registry
    found = []
    for name in sorted(registry.seats) if holder == ADMIN else [holder]:
        card, seat = registry.cards[name], registry.seats[name]
        known = {"agent": "", "observations": 0, "episodes": 0, "gain_low": None, "gain_high": None}
        agent = seat.agent  # once: a thread may close it meanwhile
        if agent is not None:
            known |= {key: value for key, value in summary(agent).items() if key in known}
        trouble = seat.trouble.replace(str(registry.folder), "the service's folder")
        found.append(
            {"id": name, "name": card.name, "created": card.created, "open": agent is not None,
             "trouble": trouble, **known}
        )  # fmt: skip
    return answer({"agents": found})


async def get_agent(service: Service, request: Request) -> Response:
    """GET /agents/{id}."""
    seat = service.seat(request)
    first, states = (_query(request, name) for name in ("first", "states"))
    card = service.registry.cards[seat.id]
    found = await seat.call(lambda agent: knowledge(agent, first, states))
    return answer({"id": card.id, "name": card.name, "created": card.created, **found})


async def archive_agent(service: Service, request: Request) -> Response:
    """DELETE /agents/{id}."""
    service.admin(request)
    seat = service.seat(request)
    return answer({"id": seat.id, "done": f"archived as {await service.registry.archive(seat.id)}"})


async def new_key(service: Service, request: Request) -> Response:
    """POST /agents/{id}/key."""
    service.admin(request)
    seat = service.seat(request)
    return answer({"id": seat.id, "key": await service.registry.new_key(seat.id)})


# ---------------------------------------------------------------------- deciding and observing


async def act(service: Service, request: Request) -> Response:
    """POST /agents/{id}/act."""
    seat = service.seat(request)
    asked = models.act(await body_of(request, service.limits))
    most = service.limits.pending

    def decide(agent: DurableAgent) -> Any:
        waiting = agent.n_pending
        if waiting >= most and not (asked.request_id and agent.answered(asked.request_id)):
            raise RefusedError(
                429, f"{waiting} decisions wait for their outcomes", where="agent", expected=f"at most {most}",
                then="report outcomes (/observe with decision_id), or /abandon decisions", headers={"Retry-After": "1"},
            )  # fmt: skip
        return agent.act(asked.state, request_id=asked.request_id)

    decision = await seat.call(decide)
    return answer({"decision_id": decision.decision_id, "action": int(decision)})


async def observe(service: Service, request: Request) -> Response:
    """POST /agents/{id}/observe: one transition, an outcome, or many."""
    seat = service.seat(request)
    told = models.observation(await body_of(request, service.limits))

    def learn(agent: DurableAgent) -> Any:
        if isinstance(told, models.Outcome):
            return agent.report(told.decision_id, told.reward, told.next_state, request_id=told.request_id)
        if isinstance(told, models.Transition):
            return agent.observe(
                told.state, told.action, told.reward, told.next_state, decision_id=told.decision_id,
                request_id=told.request_id,
            )  # fmt: skip
        rows = told.transitions
        states, next_states = (
            [_alike(agent, getattr(row, name), f"transitions.{i}.{name}") for i, row in enumerate(rows)]
            for name in ("state", "next_state")
        )
        return agent.observe_many(
            states, [row.action for row in rows], [row.reward for row in rows], next_states, request_id=told.request_id
        )

    if isinstance(told, models.Transitions) and len(told.transitions) > service.limits.rows:
        raise RefusedError(
            422, "too many transitions at once", where="body.transitions", found=str(len(told.transitions)),
            expected=f"at most {service.limits.rows}", then="send them in parts",
        )  # fmt: skip
    receipt = await seat.call(learn)
    return answer({"sequence": receipt.sequence, "repeated": receipt.repeated})


def _alike(agent: DurableAgent, state: Any, where: str) -> Any:
    """One of many states, all in one form: a list of d coordinates, or a number."""
    d = agent.dim
    found = [state] if d == 1 and not isinstance(state, list) else state
    if (len(found) != d) if isinstance(found, list) else d:
        expected = f"a list of {d} numbers" if d else f"an integer in 0 … {agent.n_states - 1}"
        raise RefusedError(
            422, f"{where} is {shown(state)}, expected {expected}", where=f"body.{where}", found=shown(state),
            expected=expected, then="send it as /docs says",
        )  # fmt: skip
    return found


async def abandon(service: Service, request: Request) -> Response:
    """POST /agents/{id}/abandon."""
    seat = service.seat(request)
    told = models.abandon(await body_of(request, service.limits))
    receipt = await seat.call(lambda agent: agent.abandon(told.decision_id, request_id=told.request_id))
    done = f"decision {told.decision_id} waits no more"
    return answer({"id": seat.id, "done": done, "sequence": receipt.sequence, "repeated": receipt.repeated})


async def change(service: Service, request: Request) -> Response:
    """POST /agents/{id}/change. Without a request_id, the last change of a setting made again is no change."""
    seat = service.seat(request)
    told = models.change(await body_of(request, service.limits))
    wanted = {
        name: value for name in ("span", "bonus_scale", "width_scale") if (value := getattr(told, name)) is not None
    }

    def apply(agent: DurableAgent) -> dict[str, Any]:
        last = {change.name: change for change in agent.changes}
        known = bool(wanted) and all(
            name in last and last[name].new == value and last[name].reason == told.reason
            for name, value in wanted.items()
        )
        if told.request_id is not None or not known:
            known = agent.change(reason=told.reason, request_id=told.request_id, **wanted).repeated
        return {"settings": finite(agent.settings), "repeated": known}

    return answer(await seat.call(apply))


async def list_pending(service: Service, request: Request) -> Response:
    """GET /agents/{id}/pending."""
    seat = service.seat(request)
    limit = _query(request, "limit")

    def waiting(agent: DurableAgent) -> dict[str, Any]:
        found = agent.pending
        rows = [
            {"decision_id": w.decision_id, "state": w.state.tolist() if agent.dim else int(w.state),
             "action": w.action, "observations": w.t}
            for w in found[:limit]
        ]  # fmt: skip
        return {"id": seat.id, "pending": rows, "of": len(found)}

    return answer(await seat.call(waiting))


async def list_episodes(service: Service, request: Request) -> Response:
    """GET /agents/{id}/episodes."""
    seat = service.seat(request)
    points = _query(request, "points")
    return answer({"id": seat.id, **await seat.call(lambda agent: episodes(agent, points))})


# ---------------------------------------------------------------------- the service itself


async def metrics(service: Service, request: Request) -> Response:
    """GET /metrics: with the admin key, or asked from this machine and not through a proxy."""
    if not (service.open_metrics and _direct(request)):
        service.admin(request)
    return Answer(service.metrics.text(service.registry).encode(), METRICS_TYPE.encode(), 200)


def _direct(request: Request) -> bool:
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        host = request.headers.get("host", "").rsplit(":", 1)[0].strip("[]")
        asked_here = host == "localhost" or ip_address(host).is_loopback
        return asked_here and request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


async def health(service: Service, request: Request) -> Response:  # noqa: ARG001
    """GET /healthz."""
    return answer({"status": "ok", "version": service.version, "agents": len(service.registry.seats)})


async def description(service: Service, request: Request) -> Response:  # noqa: ARG001
    """GET /openapi.json."""
    return Answer(service.description, b"application/json", 200)


async def page(service: Service, request: Request) -> Response:
    """GET / and /docs."""
    found: Page = service.pages[request.scope["path"]]
    policy = [(b"content-security-policy", found.policy.encode())]
    return Answer(found.html.encode(), b"text/html; charset=utf-8", 200, [*policy, *PAGE_HEADERS])


HANDLERS: dict[str, Handler] = {
    "make_agent": make_agent, "list_agents": list_agents, "get_agent": get_agent, "archive_agent": archive_agent,
    "act": act, "observe": observe, "abandon": abandon, "change": change, "list_pending": list_pending,
    "list_episodes": list_episodes, "new_key": new_key, "metrics": metrics, "health": health,
}  # fmt: skip
_RANGES = {
    name: (least, most, default) for operation in OPERATIONS for name, least, most, default, _ in operation.query
}


def _query(request: Request, name: str) -> int:
    least, most, default = _RANGES[name]
    given = request.query_params.getlist(name)
    if not given:
        return default
    text = given[-1]
    if len(given) == 1 and len(text) <= 12 and text.isascii() and text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise RefusedError(
        422, f"{name} is out of range", where=f"query.{name}", found=", ".join(given)[:100],
        expected=f"one whole number from {least} to {most}", then="send it as /docs says",
    )  # fmt: skip


def build(service: Service) -> Starlette:
    """The application."""
    paths: dict[str, dict[str, Handler]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.upper()] = HANDLERS[operation.name]
    paths |= {"/openapi.json": {"GET": description}, "/docs": {"GET": page}, "/": {"GET": page}}
    ordered = sorted(paths, key=lambda path: not path.endswith(("/act", "/observe")))  # the busy ones first
    routes = [Route(path, _endpoint(service, path, paths[path]), methods=sorted(paths[path])) for path in ordered]

    async def not_served(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        service.metrics.count("other", "other", error.status_code, 0.0)
        text = {404: "there is no such path", 405: "the path has no such method"}.get(error.status_code, error.detail)
        found = f"{request.method} {request.scope['path']}"[:200]
        return refused(
            RefusedError(
                error.status_code, text, where="path", found=found, then="/docs has all there is",
                headers=dict(error.headers or {}),
            )
        )  # fmt: skip

    app = Starlette(routes=routes, exception_handlers={HTTPException: not_served})
    app.router.redirect_slashes = False
    return app


def _endpoint(service: Service, path: str, handlers: dict[str, Handler]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        method = "GET" if request.method == "HEAD" else request.method
        try:
            response = await handlers[method](service, request)
        except RefusedError as refusal:
            response = refused(refusal)
        except ValidationError as error:
            response = refused(of_validation(error, service.states(request.path_params.get("id", ""))))
        except GainfulError as error:
            agent_id = request.path_params.get("id", "")
            response = refused(of_error(error, agent_id, str(service.registry.folder / "agents" / agent_id)))
            if response.status_code >= 500:
                print(f"{request.method} {path}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        except Exception:
            print(f"{request.method} {path}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            response = refused(
                RefusedError(500, "this should not happen", where="service", then="the service's log says where it did")
            )
        service.metrics.count(path, request.method, response.status_code, time.perf_counter() - began)
        return response

    return endpoint
