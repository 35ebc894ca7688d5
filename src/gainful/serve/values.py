"""The values in requests: states and actions as numbers or labels, points, rewards and costs."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

MAX_STATE = 2**32 - 1
MAX_DIMENSIONS = 16
MAX_LABEL = 500
"""Characters of a label."""

Label = Annotated[
    str, StringConstraints(max_length=MAX_LABEL), Field(description="A label of the agent. A string is always a label.")
]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
State = Annotated[
    Annotated[int, Field(ge=0, le=MAX_STATE)]
    | Number
    | Annotated[list[Number], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    | Label,
    Field(
        description="The index of a state, or its label. For agents on continuous states, a list of coordinates, or a "
        "single number if d = 1."
    ),
]
Action = Annotated[
    Annotated[int, Field(ge=0, le=MAX_STATE)] | Label, Field(description="The index of an action, or its label.")
]
Reward = Annotated[Number, Field(description="Between the agent's reward_min and reward_max.")]
Cost = Annotated[Number, Field(description="A cost, in place of a reward: its negative.")]


def publish_reward_or_cost(schema: dict[str, Any]) -> None:
    """Publish what `PaidBody` checks."""
    for name in ("reward", "cost"):
        schema["properties"][name].pop("default", None)
    schema["oneOf"] = [{"required": ["reward"]}, {"required": ["cost"]}]


class PaidBody(BaseModel):
    """What was earned or paid: exactly one of reward and cost."""

    reward: Reward = None  # type: ignore[assignment]
    cost: Cost = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        given = self.model_fields_set & {"reward", "cost"}
        if not given:
            raise PydanticCustomError("neither_reward_nor_cost", "a reward or a cost")
        if len(given) > 1:
            raise PydanticCustomError("reward_and_cost", "one of reward and cost")
        return self
