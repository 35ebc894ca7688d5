"""Observations of a request handed to the agent: one transition, the outcome of a decision, or a batch."""

from __future__ import annotations

from typing import Any

from gainful.live import DurableAgent
from gainful.serve import models
from gainful.serve.problem_details import SEE_DOCS, STATE_MEMBERS, ProblemError, as_json


def hand_over(agent: DurableAgent, body: models.Transition | models.OutcomeBody | models.Transitions) -> Any:
    """Hand an observation to the agent, which checks its values; returns its receipt."""
    if isinstance(body, models.OutcomeBody):
        return agent.report(body.decision_id, body.reward, body.next_state, cost=body.cost, request_id=body.request_id)
    if isinstance(body, models.Transition):
        return agent.observe(
            body.state,
            body.action,
            body.reward,
            body.next_state,
            cost=body.cost,
            decision_id=body.decision_id,
            request_id=body.request_id,
        )
    rows = body.transitions
    states, next_states = (
        [_column_entry(agent, getattr(row, name), f"transitions.{i}.{name}") for i, row in enumerate(rows)]
        for name in STATE_MEMBERS
    )
    actions: Any = [row.action for row in rows]
    if all(row.reward is None for row in rows):
        costs = [row.cost for row in rows]
        return agent.observe_many(states, actions, None, next_states, costs=costs, request_id=body.request_id)
    rewards = [0.0 - row.cost if row.reward is None else row.reward for row in rows]  # type: ignore[redundant-expr]
    return agent.observe_many(states, actions, rewards, next_states, request_id=body.request_id)


def _column_entry(agent: DurableAgent, state: Any, where: str) -> Any:
    """A state in the one form that all states of a batch have: a list of d coordinates, an index or a label."""
    d = agent.dim
    entry = [state] if d == 1 and not isinstance(state, list) else state
    if (len(entry) != d) if isinstance(entry, list) else d:
        expected = f"a list of {d} numbers" if d else f"an integer in 0 … {agent.n_states - 1}"
        found = as_json(state)
        raise ProblemError(
            422,
            f"{where} is {found}, expected {expected}",
            where=f"body.{where}",
            found=found,
            expected=expected,
            hint=SEE_DOCS,
        )
    return entry
