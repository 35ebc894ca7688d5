"""The operations of the service, and their OpenAPI description made from the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from gainful.serve import models
from gainful.serve.models import ID_PATTERN, REQUEST_MODELS, RESPONSE_MODELS
from gainful.serve.problem_details import PROBLEM_MEDIA_TYPE

STATUS_DESCRIPTIONS = {
    400: "The body is not valid JSON.",
    401: "The key is missing or unknown.",
    403: "The key belongs to another agent, or the operation needs the admin key.",
    404: "There is no such agent, or no such pending decision.",
    405: "The path does not support this method.",
    408: "The body did not arrive in time.",
    409: "The request contradicts an earlier one, or the settings allow no plan.",
    413: "The body is too large.",
    415: "The Content-Type is not application/json.",
    422: "The body is valid JSON, but a member is missing, unknown or out of range.",
    429: "Too many decisions are waiting for their outcomes.",
    503: "Temporarily unavailable: try again with the same request_id.",
    507: "There is no space left, or the service holds as many agents as it may.",
}
READ_ERRORS = (401, 403, 404, 422, 503)
WRITE_ERRORS = (400, 401, 403, 404, 408, 409, 413, 415, 422, 503, 507)
ADMIN_ERRORS = (401, 403, 404, 503)


@dataclass(frozen=True)
class QueryParameter:
    """An integer in the query string."""

    name: str
    least: int
    most: int
    default: int
    description: str


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[BaseModel] | str
    """A model, or a media type."""
    statuses: tuple[int, ...] = ()
    body: tuple[type[BaseModel], ...] = ()
    query: tuple[QueryParameter, ...] = ()
    success: int = 200
    key: str = "agent"
    """Which key is needed: admin, agent, optional or none."""


OPERATIONS = (
    Operation(
        "post",
        "/agents",
        "make_agent",
        "Create an agent. Needs the admin key",
        models.Made,
        WRITE_ERRORS,
        (models.NewAgent,),
        success=201,
        key="admin",
    ),
    Operation(
        "get",
        "/agents",
        "list_agents",
        "List the agents that the key gives access to: all of them, or its own",
        models.Agents,
        (401,),
    ),
    Operation(
        "get",
        "/agents/{id}",
        "get_agent",
        "Show everything about an agent: policy, gain, visits, confidence, regret bound",
        models.AgentView,
        READ_ERRORS,
        query=(
            QueryParameter("first", 0, 10**9, 0, "The first state in the tables."),
            QueryParameter("states", 0, 10_000, 1000, "The number of states in the tables."),
        ),
    ),
    Operation(
        "delete",
        "/agents/{id}",
        "archive_agent",
        "Take an agent out of service and move its whole folder to the archive. Needs the admin key",
        models.DoneBody,
        ADMIN_ERRORS,
        key="admin",
    ),
    Operation(
        "post",
        "/agents/{id}/act",
        "act",
        "Choose an action for a state",
        models.DecisionBody,
        (*WRITE_ERRORS, 429),
        (models.Act,),
    ),
    Operation(
        "post",
        "/agents/{id}/observe",
        "observe",
        "Report what happened: one transition, the outcome of a decision, or a batch of transitions",
        models.ReceiptBody,
        WRITE_ERRORS,
        (models.Transition, models.OutcomeBody, models.Transitions),
    ),
    Operation(
        "post",
        "/agents/{id}/abandon",
        "abandon",
        "Give up a decision whose outcome will never be known",
        models.Abandoned,
        WRITE_ERRORS,
        (models.Abandon,),
    ),
    Operation(
        "post",
        "/agents/{id}/change",
        "change",
        "Change the span or the scale of the bonus",
        models.Changed,
        WRITE_ERRORS,
        (models.ChangeBody,),
    ),
    Operation(
        "get",
        "/agents/{id}/pending",
        "list_pending",
        "List the decisions that are waiting for their outcomes",
        models.PendingBody,
        READ_ERRORS,
        query=(QueryParameter("limit", 1, 10_000, 1000, "The largest number of decisions to return."),),
    ),
    Operation(
        "get",
        "/agents/{id}/episodes",
        "list_episodes",
        "Show the optimistic gain over time",
        models.Episodes,
        READ_ERRORS,
        query=(QueryParameter("points", 2, 10_000, 500, "The largest number of episodes to return."),),
    ),
    Operation(
        "get",
        "/agents/{id}/earnings",
        "list_earnings",
        "Show the average earned over time, and the last outcomes",
        models.EarningsBody,
        READ_ERRORS,
    ),
    Operation(
        "post",
        "/agents/{id}/key",
        "new_key",
        "Replace an agent's key with a new one. Needs the admin key",
        models.Key,
        ADMIN_ERRORS,
        key="admin",
    ),
    Operation(
        "get",
        "/metrics",
        "metrics",
        "Metrics for Prometheus. Needs the admin key, unless requested directly from the same machine",
        "text/plain",
        (401, 403),
        key="optional",
    ),
    Operation("get", "/healthz", "health", "Check that the service is running", models.Health, key="none"),
)


def openapi(version: str) -> dict[str, Any]:
    """Make the OpenAPI description, as JSON values."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _describe_operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gainful serve",
            "version": version,
            "description": "Durable agents over HTTP. Every request except /healthz needs a key: "
            "`Authorization: Bearer KEY`. Everything that was answered is in the agent's journal.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "The key of the agent, or the admin key."}
            },
        },
    }


def _schemas() -> dict[str, Any]:
    """The schemas of all models, each under its title."""
    _, generated = models_json_schema(
        [(model, "validation") for model in REQUEST_MODELS] + [(model, "serialization") for model in RESPONSE_MODELS],
        ref_template="{model}",
    )
    schemas: dict[str, Any] = generated["$defs"]

    def published(value: Any) -> Any:
        if isinstance(value, list):
            return [published(item) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("$ref"), str):
            return {**value, "$ref": _path(schemas[value["$ref"]]["title"])}
        return {key: published(item) for key, item in value.items()}

    return {schema["title"]: published(schema) for schema in schemas.values()}


def _describe_operation(operation: Operation) -> dict[str, Any]:
    if isinstance(operation.answer, str):
        content: dict[str, Any] = {operation.answer: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _reference(operation.answer)}}
    responses: dict[str, Any] = {str(operation.success): {"description": "Success.", "content": content}}
    for status in sorted({*operation.statuses, 405}):
        problem = {PROBLEM_MEDIA_TYPE: {"schema": _reference(models.ProblemBody)}}
        responses[str(status)] = {"description": STATUS_DESCRIPTIONS[status], "content": problem}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": responses,
        "security": {"none": [], "optional": [{"key": []}, {}]}.get(operation.key, [{"key": []}]),
    }
    if parameters := _describe_parameters(operation):
        described["parameters"] = parameters
    if operation.body:
        options = [_reference(model) for model in operation.body]
        schema: dict[str, Any] = options[0] if len(options) == 1 else {"anyOf": options}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _describe_parameters(operation: Operation) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    if "{id}" in operation.path:
        described.append(
            {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": ID_PATTERN},
                "description": "The id of an agent.",
            }
        )
    for parameter in operation.query:
        described.append(
            {
                "name": parameter.name,
                "in": "query",
                "required": False,
                "schema": {
                    "type": "integer",
                    "minimum": parameter.least,
                    "maximum": parameter.most,
                    "default": parameter.default,
                },
                "description": parameter.description,
            }
        )
    return described


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _path(model.model_config.get("title") or model.__name__)}


def _path(title: str) -> str:
    return f"#/components/schemas/{title}"
