"""The OpenAPI description, made from the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gainful.serve import models
from gainful.serve.models import ANSWERS, ID, REQUESTS
from gainful.serve.refusals import MEDIA_TYPE

WORDS = {
    400: "The body is no JSON.", 401: "No key, or one that nobody holds.", 403: "The key of another agent.",
    404: "There is no such agent, or no such decision waits.", 405: "The path has no such method.",
    408: "The body did not arrive in time.",
    409: "It contradicts an earlier request, or the settings allow no plan.", 413: "The body is too large.",
    415: "The body is not declared as JSON.", 422: "JSON, but not what is asked for, or out of range.",
    429: "Too many decisions wait for their outcomes.", 503: "Not now: try again with the same request_id.",
    507: "No room.",
}  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked of the service."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[BaseModel] | str
    """A model, or a media type."""
    statuses: tuple[int, ...] = ()
    body: tuple[type[BaseModel], ...] = ()
    query: tuple[tuple[str, int, int, int, str], ...] = ()
    """Name, least, most, default, words."""
    success: int = 200
    key: str = "agent"
    """Whose key is needed: admin, agent, optional or none."""


_READ, _WRITE = (401, 403, 404, 422, 503), (400, 401, 403, 404, 408, 409, 413, 415, 422, 503, 507)

OPERATIONS = (
    Operation("post", "/agents", "make_agent", "Make an agent. Needs the admin key", models.Made, _WRITE,
              (models.NewAgent,), success=201, key="admin"),
    Operation("get", "/agents", "list_agents", "The agents that the key opens: all, or its own", models.Agents,
              (401,)),
    Operation("get", "/agents/{id}", "get_agent", "All about an agent: policy, gain, visits, confidence, regret bound",
              models.Knowledge, _READ,
              query=(("first", 0, 10**9, 0, "The first state of the tables."),
                     ("states", 0, 10_000, 1000, "How many states the tables hold."))),
    Operation("delete", "/agents/{id}", "archive_agent", "Take an agent out of service; its folder is moved to the "
              "archive, whole. Needs the admin key", models.Done, (401, 403, 404, 503), key="admin"),
    Operation("post", "/agents/{id}/act", "act", "The action to take in a state", models.Decision, (*_WRITE, 429),
              (models.Act,)),
    Operation("post", "/agents/{id}/observe", "observe", "What happened: one transition, the outcome of a decision, or "
              "many transitions", models.Receipt, _WRITE, (models.Transition, models.Outcome, models.Transitions)),
    Operation("post", "/agents/{id}/abandon", "abandon", "The outcome of a decision will never be known",
              models.Abandoned, _WRITE, (models.Abandon,)),
    Operation("post", "/agents/{id}/change", "change", "Change the span or the scale of the bonus", models.Changed,
              _WRITE, (models.Change,)),
    Operation("get", "/agents/{id}/pending", "list_pending", "The decisions that wait for their outcomes",
              models.Pending, _READ, query=(("limit", 1, 10_000, 1000, "How many at most."),)),
    Operation("get", "/agents/{id}/episodes", "list_episodes", "The optimistic gain over time", models.Episodes, _READ,
              query=(("points", 2, 10_000, 500, "How many at most."),)),
    Operation("post", "/agents/{id}/key", "new_key", "A new key for an agent, in place of the one it has. Needs the "
              "admin key", models.Key, (401, 403, 404, 503), key="admin"),
    Operation("get", "/metrics", "metrics", "For Prometheus. Needs the admin key, unless asked from this machine "
              "directly", "text/plain", (401, 403), key="optional"),
    Operation("get", "/healthz", "health", "Whether the service lives", models.Health, key="none"),
)  # fmt: skip


def openapi(version: str) -> dict[str, Any]:
    """The description, as JSON has it."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in REQUESTS] + [(model, "serialization") for model in ANSWERS],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gainful serve", "version": version,
            "description": "Durable agents over HTTP. Every request but /healthz needs a key: "
            "`Authorization: Bearer KEY`. What was answered is in the agent's journal.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "The key of the agent, or the admin key."}
            },
        },
    }  # fmt: skip


def _described(operation: Operation) -> dict[str, Any]:
    if isinstance(operation.answer, str):
        content: dict[str, Any] = {operation.answer: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _reference(operation.answer)}}
    responses: dict[str, Any] = {str(operation.success): {"description": "Done.", "content": content}}
    for status in sorted({*operation.statuses, 405}):
        problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {"description": WORDS[status], "content": problem}
    made: dict[str, Any] = {
        "operationId": operation.name, "summary": operation.summary, "responses": responses,
        "security": {"none": [], "optional": [{"key": []}, {}]}.get(operation.key, [{"key": []}]),
    }  # fmt: skip
    parameters: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        parameters.append(
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": ID},
             "description": "The id of an agent."}
        )  # fmt: skip
    for name, least, most, default, words in operation.query:
        bounds = {"type": "integer", "minimum": least, "maximum": most, "default": default}
        parameters.append({"name": name, "in": "query", "required": False, "schema": bounds, "description": words})
    if parameters:
        made["parameters"] = parameters
    if operation.body:
        schemas = [_reference(model) for model in operation.body]
        schema: dict[str, Any] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
