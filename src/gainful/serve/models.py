"""What requests and answers hold. Requests are checked strictly: no other members, no strings for numbers, no NaN."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from gainful.agents import registry

ID = r"^[a-z0-9][a-z0-9-]{0,62}$"
LARGEST_STATE, MOST_AXES, LARGEST_ID = 2**32 - 1, 16, 2**63 - 1

AgentId = Annotated[str, StringConstraints(pattern=ID), Field(description="Small letters, digits and dashes.")]
RequestId = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,200}$"),
    Field(
        description="Chosen by the caller, another one for every request. The same request sent again with it, also "
        "after the service was killed, gets the first answer and does nothing twice."
    ),
]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
State = Annotated[
    Annotated[int, Field(ge=0, le=LARGEST_STATE)]
    | Number
    | Annotated[list[Number], Field(min_length=1, max_length=MOST_AXES)],
    Field(description="The number of a state; for agents on points a list of coordinates, or one number if d = 1."),
]
Action = Annotated[int, Field(ge=0, le=LARGEST_STATE)]
Reward = Annotated[Number, Field(description="In [reward_min, reward_max] of the agent.")]
DecisionId = Annotated[int, Field(ge=1, le=LARGEST_ID, description="What /act answered.")]


class Strict(BaseModel):
    """A request."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


# ---------------------------------------------------------------------- requests


class Cells(Strict):
    """A box cut into equal cells."""

    bins: Annotated[list[Annotated[int, Field(ge=1, le=10**6)]], Field(min_length=1, max_length=MOST_AXES)]
    low: Annotated[list[Number], Field(min_length=1, max_length=MOST_AXES)]
    high: Annotated[list[Number], Field(min_length=1, max_length=MOST_AXES)]
    outside: Annotated[Literal["error", "clip"], Field(description="What becomes of points outside the box.")] = "error"


class Config(BaseModel):
    """What the agent is: its name (`gainful list agents`) and its own arguments, as in Python."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    agent: Annotated[
        str,
        Field(
            max_length=40,
            description="Such as scal-plus.",
            json_schema_extra={"enum": [*registry.names(), *registry.continuous_names()]},
        ),
    ]
    n_actions: Annotated[int, Field(ge=1, le=10**6)]
    n_states: Annotated[int, Field(ge=1, le=10**9, description="For agents on numbered states.")] | None = None
    span: Annotated[float, Field(ge=0.0, le=1e9, description="c, a bound on the span of the optimal bias.")] | None = (
        None
    )
    reward_min: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    reward_max: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    delta: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST_ID)] | None = None
    bonus_scale: Annotated[float, Field(gt=0.0, le=1e6, description="1 is the theorem's.")] | None = None
    partition: Annotated[Cells, Field(description="For agents on points.")] | None = None
    lipschitz: Annotated[float, Field(gt=0.0, le=1e12)] | None = None
    holder: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    horizon: Annotated[float, Field(ge=1.0, le=1e15)] | None = None
    dim: Annotated[int, Field(ge=1, le=MOST_AXES)] | None = None

    def given(self) -> dict[str, Any]:
        """As `gf.open_agent` takes it."""
        found = {name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None}
        return found | ({"partition": self.partition.model_dump()} if self.partition is not None else {})


class NewAgent(Strict):
    """A durable agent to be made."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={
            "examples": [
                {"id": "pump", "name": "Pump 3", "request_id": "make-pump",
                 "config": {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}}
            ]
        },
    )  # fmt: skip

    config: Config
    id: AgentId | None = None
    name: Annotated[str, Field(max_length=200, description="For people; any text.")] = ""
    request_id: RequestId | None = None
    remember: Annotated[
        int, Field(ge=1, le=1_000_000, description="How many request ids and outcomes are known for repeated requests.")
    ] = 10_000
    keep_history: Annotated[bool, Field(description="Whether the journal is kept for ever.")] = True


class Act(Strict):
    """A state that needs an action."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={"examples": [{"state": 0, "request_id": "pump-3:17:act"}]},
    )  # fmt: skip

    state: State
    request_id: RequestId | None = None


class Transition(Strict):
    """Something that happened: in `state`, `action` was taken, paid `reward` and led to `next_state`."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={"examples": [{"state": 0, "action": 1, "reward": 0.5, "next_state": 1}]},
    )  # fmt: skip

    state: State
    action: Action
    reward: Reward
    next_state: State
    decision_id: DecisionId | None = None
    request_id: RequestId | None = None


class Outcome(Strict):
    """What came of a decision, however late. It is counted once, however often it is sent."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={"examples": [{"decision_id": 2, "reward": 0.5, "next_state": 1}]},
    )  # fmt: skip

    decision_id: DecisionId
    reward: Reward
    next_state: State
    request_id: RequestId | None = None


class Row(Strict):
    """One of many transitions."""

    state: State
    action: Action
    reward: Reward
    next_state: State


class Transitions(Strict):
    """Many transitions, in order: all are recorded, or none."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"transitions": [{"state": 0, "action": 1, "reward": 0.5, "next_state": 1}],
                          "request_id": "log:1"}]
        },
    )  # fmt: skip

    transitions: Annotated[list[Row], Field(min_length=1, max_length=100_000)]
    request_id: RequestId | None = None


class Change(Strict):
    """Settings to be changed, from the next decision on. The theorems no longer apply."""

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False,
        json_schema_extra={"examples": [{"bonus_scale": 0.1, "reason": "explore less"}]},
    )  # fmt: skip

    span: Annotated[float, Field(ge=0.0, le=1e9)] | None = None
    bonus_scale: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    width_scale: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    request_id: RequestId | None = None


class Abandon(Strict):
    """A decision whose outcome will never be known."""

    decision_id: DecisionId
    request_id: RequestId | None = None


Observation = Transition | Outcome | Transitions

new_agent = TypeAdapter(NewAgent).validate_json
act = TypeAdapter(Act).validate_json
change = TypeAdapter(Change).validate_json
abandon = TypeAdapter(Abandon).validate_json
transition = TypeAdapter(Transition).validate_json
outcome = TypeAdapter(Outcome).validate_json
transitions = TypeAdapter(Transitions).validate_json
any_observation = TypeAdapter(Observation).validate_json


def observation(body: bytes) -> Transition | Outcome | Transitions:
    """Whichever of the three the body is; the error of the one it is most like."""
    if b"\\" in body:  # names can be written in more than one way
        return any_observation(body)
    if b'"transitions"' in body:
        return transitions(body)
    if b'"decision_id"' in body and b'"action"' not in body:
        return outcome(body)
    return transition(body)


# ---------------------------------------------------------------------- answers


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str
    title: str
    status: int
    what: str
    where: str
    found: str
    expected: str
    next: str


class Made(BaseModel):
    """A new agent. The key is told here, and to the same request with the same request_id again; it is not stored."""

    id: str
    name: str
    key: str


class Key(BaseModel):
    """A new key; the one before opens nothing any more."""

    id: str
    key: str


class Decision(BaseModel):
    """An action to take, and the number to report its outcome by."""

    decision_id: int
    action: int


class Receipt(BaseModel):
    """The number of the record, and whether it was known before (and not counted again)."""

    sequence: int
    repeated: bool


class Changed(BaseModel):
    """The settings in force, and whether the change was known before (and not made again)."""

    settings: dict[str, Any]
    repeated: bool


class Done(BaseModel):
    """It is done."""

    id: str
    done: str


class Abandoned(BaseModel):
    """The number of the record, and whether it was known before."""

    id: str
    done: str
    sequence: int
    repeated: bool


class Waiting(BaseModel):
    """A decision without an outcome."""

    decision_id: int
    state: int | list[float]
    action: int
    observations: int


class Pending(BaseModel):
    """Decisions whose outcomes are not known, the oldest first."""

    id: str
    pending: list[Waiting]
    of: int


class Listed(BaseModel):
    """An agent in the list."""

    id: str
    name: str
    created: str
    open: bool
    trouble: str
    agent: str
    observations: int
    episodes: int
    gain_low: float | None
    gain_high: float | None


class Agents(BaseModel):
    """The agents that the key opens."""

    agents: list[Listed]


class Gain(BaseModel):
    """ĝ_k: the optimistic gain of the present plan, with its certified bracket."""

    estimate: float
    low: float
    high: float


class Confidence(BaseModel):
    """How sure the agent is."""

    pairs: int = Field(description="Of a state and an action that it has.")
    pairs_visited: int
    states_visited: int
    pairs_vacuous: int | None = Field(
        description="Pairs whose bonus is at least c + r_max: of these the data say nothing yet. null for agents "
        "without a bonus."
    )
    vacuous: bool = Field(description="Whether the present plan ignores the data.")
    bonus_least: float | None
    bonus_median: float | None
    bonus_greatest: float | None


class RegretBound(BaseModel):
    """With this probability the regret so far is at most `value`, if the assumptions hold; else why there is none."""

    value: float | None
    reason: str
    steps: int
    probability: float | None
    trivial: float = Field(description="steps·(reward_max - reward_min): no regret is larger.")


class Promise(BaseModel):
    """What is guaranteed, in words."""

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
    """State by state, from `first` on."""

    first: int
    n_states: int
    n_actions: int
    policy: list[int] | None = Field(description="The greedy action; null before the first plan.")
    visits: list[list[int]]
    bonus: list[list[float]] | None


class Knowledge(BaseModel):
    """All about an agent."""

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
    gain: Gain | None
    mean_reward: float | None
    confidence: Confidence
    regret_bound: RegretBound
    guarantee: Promise
    changes: list[ChangeMade]
    notices: list[str]
    trouble: str
    tables: Tables


class Episodes(BaseModel):
    """The optimistic gain over time: one entry per episode, thinned where there are many."""

    id: str
    of: int = Field(description="Episodes in all.")
    step: list[int]
    gain: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Health(BaseModel):
    """It lives."""

    status: str
    version: str
    agents: int


ANSWERS: tuple[type[BaseModel], ...] = (
    Problem, Made, Key, Decision, Receipt, Changed, Done, Abandoned, Pending, Agents, Knowledge, Episodes, Health,
)  # fmt: skip
REQUESTS: tuple[type[BaseModel], ...] = (NewAgent, Act, Transition, Outcome, Transitions, Change, Abandon)
