"""The JSON bodies of requests and responses.

Requests are validated strictly: unknown members, strings in place of numbers and NaN are rejected. A model is published
in the OpenAPI description under its title, which is its class name unless `model_config` says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from gainful.agents import registry
from gainful.serve.json_text import decode
from gainful.serve.problem_details import ProblemError
from gainful.serve.values import MAX_DIMENSIONS, Action, Label, Number, PaidBody, State, publish_reward_or_cost

ID_PATTERN = r"^[a-z0-9][a-z0-9-]{0,62}$"
MAX_INTEGER_ID = 2**63 - 1
MAX_COMMAS_PER_OBJECT = 2 * MAX_DIMENSIONS + 4
"""A row has four members, two of them with coordinates."""

AgentId = Annotated[
    str, StringConstraints(pattern=ID_PATTERN), Field(description="Lower-case letters, digits and dashes.")
]
RequestId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,200}$"),
    Field(
        description="Chosen by the client, a different one for every request. Sending the same request again with the "
        "same id returns the first response and does nothing twice, even if the service was killed in between."
    ),
]
DecisionId = Annotated[int, Field(ge=1, le=MAX_INTEGER_ID, description="The id that /act returned.")]


def _strict(title: str | None = None, example: dict[str, Any] | None = None) -> ConfigDict:
    """The configuration of a request model, with its published name and an example."""
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    if title is not None:
        config["title"] = title
    if example is not None:
        config["json_schema_extra"] = {"examples": [example]}
    return config


def _paid(title: str | None = None, example: dict[str, Any] | None = None) -> ConfigDict:
    """The configuration of a request model with a reward or a cost."""

    def publish(schema: dict[str, Any]) -> None:
        publish_reward_or_cost(schema)
        if example is not None:
            schema["examples"] = [example]

    config = _strict(title)
    config["json_schema_extra"] = publish
    return config


# ---------------------------------------------------------------------- requests


class CellsBody(BaseModel):
    """A box divided into equal cells."""

    model_config = _strict("Cells")

    bins: Annotated[list[Annotated[int, Field(ge=1, le=10**6)]], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    low: Annotated[list[Number], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    high: Annotated[list[Number], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    outside: Annotated[
        Literal["error", "clip"], Field(description="Whether points outside the box are rejected or moved to its edge.")
    ] = "error"


class Config(BaseModel):
    """The kind of agent: its name (`gainful list agents`) and its own arguments, as in Python."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    agent: Annotated[
        str,
        Field(
            max_length=200,
            description="The agent's name, for example scal-plus; my_module:MyAgent if the service allows my_module.",
            json_schema_extra={"enum": [*registry.names(), *registry.continuous_names()]},
        ),
    ]
    n_actions: Annotated[int, Field(ge=1, le=10**6, description="Needed unless there are action_labels.")] | None = None
    n_states: (
        Annotated[
            int, Field(ge=1, le=10**9, description="For agents on discrete states, unless there are state_labels.")
        ]
        | None
    ) = None
    state_labels: (
        Annotated[list[Label], Field(min_length=1, description="A distinct label for every state.")] | None
    ) = None
    action_labels: (
        Annotated[list[Label], Field(min_length=1, description="A distinct label for every action.")] | None
    ) = None
    cost_min: (
        Annotated[float, Field(ge=-1e12, le=1e12, description="With cost_max, in place of the range of rewards.")]
        | None
    ) = None
    cost_max: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    span: Annotated[float, Field(ge=0.0, le=1e9, description="c, a bound on the span of the optimal bias.")] | None = (
        None
    )
    reward_min: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    reward_max: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    delta: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_INTEGER_ID)] | None = None
    bonus_scale: Annotated[float, Field(gt=0.0, le=1e6, description="1 is the bonus of the theorem.")] | None = None
    partition: Annotated[CellsBody, Field(description="For agents on continuous states.")] | None = None
    lipschitz: Annotated[float, Field(gt=0.0, le=1e12)] | None = None
    holder: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    horizon: Annotated[float, Field(ge=1.0, le=1e15)] | None = None
    dim: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)] | None = None

    def given(self) -> dict[str, Any]:
        """The members that were sent, as `gf.open_agent` takes them."""
        found = {name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None}
        for kind in ("state", "action"):
            if f"{kind}_labels" in found:
                found.setdefault(f"n_{kind}s", len(found[f"{kind}_labels"]))
        return found | ({"partition": self.partition.model_dump()} if self.partition is not None else {})


class NewAgent(BaseModel):
    """A durable agent to create."""

    model_config = _strict(
        example={
            "id": "pump",
            "name": "Pump 3",
            "request_id": "make-pump",
            "config": {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0},
        }
    )

    config: Config
    id: AgentId | None = None
    name: Annotated[str, Field(max_length=200, description="A display name: any text.")] = ""
    request_id: RequestId | None = None
    remember: Annotated[
        int,
        Field(
            ge=1, le=1_000_000, description="How many request ids and outcomes are kept to recognise repeated requests."
        ),
    ] = 10_000
    keep_history: Annotated[bool, Field(description="Whether the whole journal is kept.")] = True


class Act(BaseModel):
    """A state that needs an action."""

    model_config = _strict(example={"state": 0, "request_id": "pump-3:17:act"})

    state: State
    request_id: RequestId | None = None


class Transition(PaidBody):
    """An observed transition: in `state`, `action` was taken, earned `reward` (or cost `cost`), led to `next_state`."""

    model_config = _paid(example={"state": 0, "action": 1, "reward": 0.5, "next_state": 1})

    state: State
    action: Action
    next_state: State
    decision_id: DecisionId | None = None
    request_id: RequestId | None = None


class OutcomeBody(PaidBody):
    """The outcome of a decision, reported at any later time. It counts once, however often it is sent."""

    model_config = _paid("Outcome", {"decision_id": 2, "reward": 0.5, "next_state": 1})

    decision_id: DecisionId
    next_state: State
    request_id: RequestId | None = None


class Row(PaidBody):
    """One transition of a batch."""

    model_config = _paid()

    state: State
    action: Action
    next_state: State


class Transitions(BaseModel):
    """A batch of transitions, in order: either all are recorded, or none."""

    model_config = _strict(
        example={
            "transitions": [{"state": 0, "action": 1, "reward": 0.5, "next_state": 1}],
            "request_id": "log:1",
        }
    )

    transitions: Annotated[list[Row], Field(min_length=1, max_length=100_000)]
    request_id: RequestId | None = None


class ChangeBody(BaseModel):
    """Settings to change, in force from the next decision on. The theorems no longer apply afterwards."""

    model_config = _strict("Change", {"bonus_scale": 0.1, "reason": "explore less"})

    span: Annotated[float, Field(ge=0.0, le=1e9)] | None = None
    bonus_scale: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    width_scale: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    request_id: RequestId | None = None


class Abandon(BaseModel):
    """A decision whose outcome will never be known."""

    model_config = _strict()

    decision_id: DecisionId
    request_id: RequestId | None = None


Observation = Transition | OutcomeBody | Transitions

T = TypeVar("T")
_ACTION_MEMBER = re.compile(rb'"action"\s*:')  # a label may be "action" too


def _parser(validate: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Parse a body that has no member twice."""

    def parse(body: bytes) -> T:
        try:
            decode(body)
        except (ValueError, RecursionError) as error:
            validate(body)  # which says better what is wrong
            raise ProblemError(
                400, "the body is not valid JSON", where="body", found=str(error)[:200], hint="send one JSON object"
            ) from error
        return validate(body)

    return parse


parse_new_agent = _parser(TypeAdapter(NewAgent).validate_json)
parse_act = _parser(TypeAdapter(Act).validate_json)
parse_change = _parser(TypeAdapter(ChangeBody).validate_json)
parse_abandon = _parser(TypeAdapter(Abandon).validate_json)
_validate_transition = TypeAdapter(Transition).validate_json
_validate_outcome = TypeAdapter(OutcomeBody).validate_json
_validate_any_observation = TypeAdapter(Observation).validate_json
_validate_transitions = TypeAdapter(Transitions).validate_python
_validate_row = TypeAdapter(Row).validate_python


def _validate_single(body: bytes) -> Transition | OutcomeBody | Transitions:
    """A validation error refers to the kind that the body resembles most."""
    if b"\\" in body:  # member names may be written with escapes, so they cannot be searched for
        return _validate_any_observation(body)
    if b'"decision_id"' in body and _ACTION_MEMBER.search(body) is None:
        return _validate_outcome(body)
    return _validate_transition(body)


_parse_single = _parser(_validate_single)


def parse_observation(body: bytes, max_rows: int) -> Transition | OutcomeBody | Transitions:
    """Parse a body of one of three kinds.

    A batch with too many rows is rejected before it is parsed, and the first row with an error ends the parsing.
    """
    objects = body.count(b"{")  # in a string only as part of a label, which makes the largest batch smaller
    if objects > max_rows + 1:
        raise ProblemError(
            422,
            "too many transitions in one request",
            where="body.transitions",
            found=f"{objects - 1} or fewer",
            expected=f"at most {max_rows}",
            hint="send them in several requests",
        )
    if body.count(b",") > MAX_COMMAS_PER_OBJECT * (objects + 1):
        raise ProblemError(
            422,
            "a list in the body is too long",
            where="body",
            expected=f"states with at most {MAX_DIMENSIONS} coordinates",
            hint="see /docs for the expected body",
        )
    if b'"transitions"' not in body and b"\\" not in body:
        return _parse_single(body)
    try:
        value = decode(body)
    except (ValueError, RecursionError):
        return _parse_single(body)
    if not isinstance(value, dict) or "transitions" not in value:
        return _parse_single(body)
    rows = value["transitions"]
    if not isinstance(rows, list):
        return _validate_transitions(value)
    found = _validate_transitions({**value, "transitions": rows[:1]})
    found.transitions = [_row(row, i) for i, row in enumerate(rows)]
    return found


def _row(row: Any, i: int) -> Row:
    try:
        return _validate_row(row)
    except ValidationError as error:
        raise RowError(error, i) from error


class RowError(Exception):
    """A row of a batch is wrong.

    Parameters
    ----------
    error : ValidationError
        What is wrong with it.
    row : int
        Its index.
    """

    def __init__(self, error: ValidationError, row: int) -> None:
        super().__init__(str(row))
        self.error, self.row = error, row


# ---------------------------------------------------------------------- responses


class ProblemBody(BaseModel):
    """Why a request was rejected (RFC 9457)."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    what: str
    where: str
    found: str
    expected: str
    next: str


class Made(BaseModel):
    """A new agent. The key is not stored: only this response has it, and a repetition with the same request_id."""

    id: str
    name: str
    key: str


class Key(BaseModel):
    """A new key; the previous key no longer works."""

    id: str
    key: str


class DecisionBody(BaseModel):
    """An action to take, and the id to report its outcome with: a label if the state was given by its label."""

    model_config = ConfigDict(title="Decision")

    decision_id: int
    action: int | str


class ReceiptBody(BaseModel):
    """The number of the journal record, and whether this was a repetition (which is not counted again)."""

    model_config = ConfigDict(title="Receipt")

    sequence: int
    repeated: bool


class Changed(BaseModel):
    """The settings now in force, and whether this was a repetition (which changes nothing)."""

    settings: dict[str, Any]
    repeated: bool


class DoneBody(BaseModel):
    """What was done."""

    model_config = ConfigDict(title="Done")

    id: str
    done: str


class Abandoned(BaseModel):
    """The number of the journal record, and whether this was a repetition."""

    id: str
    done: str
    sequence: int
    repeated: bool


class WaitingBody(BaseModel):
    """A decision without an outcome."""

    model_config = ConfigDict(title="Waiting")

    decision_id: int
    state: int | list[float]
    action: int
    state_label: str | None
    action_label: str | None
    observations: int


class PendingBody(BaseModel):
    """The decisions whose outcomes are not known, oldest first."""

    model_config = ConfigDict(title="Pending")

    id: str
    pending: list[WaitingBody]
    of: int


class Listed(BaseModel):
    """One agent in the list of agents."""

    id: str
    name: str
    created: str
    open: bool
    trouble: str
    agent: str
    observations: int
    episodes: int
    objective: Literal["reward", "cost"]
    gain_low: float | None = Field(description="The average cost, if the objective is cost.")
    gain_high: float | None


class Agents(BaseModel):
    """The agents that the key gives access to."""

    agents: list[Listed]


class Gain(BaseModel):
    """ĝ_k: the optimistic gain of the current plan, with its certified bracket."""

    estimate: float
    low: float
    high: float


class Confidence(BaseModel):
    """How much the agent has seen, and how wide its bonuses still are."""

    pairs: int = Field(description="The number of state-action pairs.")
    pairs_visited: int
    states_visited: int
    pairs_vacuous: int | None = Field(
        description="Pairs whose bonus is at least c + r_max: the data say nothing about them yet. null for agents "
        "without a bonus."
    )
    vacuous: bool = Field(description="Whether the current plan ignores the data.")
    bonus_least: float | None
    bonus_median: float | None
    bonus_greatest: float | None


class RegretBound(BaseModel):
    """A bound on the regret so far that holds with this probability under the assumptions, or why there is none."""

    value: float | None
    reason: str
    steps: int
    probability: float | None
    trivial: float = Field(description="steps·(reward_max - reward_min): the regret is never larger.")


class Promise(BaseModel):
    """The guarantee, in words."""

    holds: bool
    text: str


class ChangeMade(BaseModel):
    """A setting that was changed."""

    sequence: int
    time: int
    t: int
    name: str
    old: float
    new: float
    reason: str


class Tables(BaseModel):
    """Policy, visits and bonuses, state by state from `first` on."""

    first: int
    n_states: int
    n_actions: int
    policy: list[int] | None = Field(description="The greedy action of each state; null before the first plan.")
    visits: list[list[int]]
    bonus: list[list[float | None]] | None = Field(description="null for an action that a state does not have.")
    allowed: list[list[bool]] | None = Field(description="The actions that each state has; null if all have all.")
    state_labels: list[str] | None = Field(description="The labels of these states; null if they have none.")
    action_labels: list[str] | None


class AgentView(BaseModel):
    """Everything about an agent."""

    model_config = ConfigDict(title="Knowledge")

    id: str
    name: str
    created: str
    agent: str
    settings: dict[str, Any]
    observations: int
    pending: int
    episodes: int
    sequence: int
    planning_under_way: bool
    objective: Literal["reward", "cost"] = Field(description="Whether the user's numbers are rewards or costs.")
    gain: Gain | None = Field(description="The average cost, if the objective is cost.")
    mean_reward: float | None
    mean_cost: float | None = Field(description="In place of mean_reward, if the objective is cost.")
    confidence: Confidence
    regret_bound: RegretBound
    guarantee: Promise
    changes: list[ChangeMade]
    alerts: list[str] = Field(description="What the owner should look at, the most urgent first.")
    notices: list[str]
    trouble: str
    tables: Tables


class Episodes(BaseModel):
    """The optimistic gain over time: one entry per episode, thinned out if there are many."""

    id: str
    of: int = Field(description="The number of episodes in all.")
    step: list[int]
    gain: list[float | None]
    low: list[float | None]
    high: list[float | None]


class LastOutcome(BaseModel):
    """One of the last outcomes, in labels where there are any."""

    step: int
    state: int | str | list[float]
    action: int | str
    amount: float = Field(description="The reward, or the cost.")
    next_state: int | str | list[float]


class EarningsBody(BaseModel):
    """The average reward or cost over time, in blocks of equally many observations, and the last outcomes."""

    model_config = ConfigDict(title="Earnings")

    id: str
    objective: Literal["reward", "cost"]
    before: int = Field(description="Observations before the first block, which are in none.")
    length: int = Field(description="Observations in a block; it doubles whenever there are 256 blocks.")
    average: list[float] = Field(description="The average of each complete block, the oldest first.")
    outcomes: list[LastOutcome] = Field(description="The last 20 outcomes, the oldest first.")


class Health(BaseModel):
    """The service is running."""

    status: str
    version: str
    agents: int


RESPONSE_MODELS: tuple[type[BaseModel], ...] = (
    ProblemBody,
    Made,
    Key,
    DecisionBody,
    ReceiptBody,
    Changed,
    DoneBody,
    Abandoned,
    PendingBody,
    Agents,
    AgentView,
    Episodes,
    EarningsBody,
    Health,
)
REQUEST_MODELS: tuple[type[BaseModel], ...] = (
    NewAgent,
    Act,
    Transition,
    OutcomeBody,
    Transitions,
    ChangeBody,
    Abandon,
)
