"""Checks of the plans that a user's own agent makes: compiled loops take them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError, describe

if TYPE_CHECKING:
    from gainful.agents.episodic import EpisodicAgent

_SUM_TOLERANCE = 1e-9


def check_plan(agent: EpisodicAgent, plan: Any) -> None:
    """Raise an InvalidArgumentError unless a plan is one for the agent's states and actions."""
    title = f"{type(agent).__name__}.plan"
    for name in ("actions", "gain_bounds", "values"):
        if not hasattr(plan, name):
            raise InvalidArgumentError(
                "plan", plan, "an EpisodePlan", problem=f"{title} returned {describe(plan)} at step {agent.t + 1}"
            )
    if plan.probabilities is None:
        _check_actions(agent, title, plan.actions)
    else:
        _check_probabilities(agent, title, plan.probabilities)
    low, high = plan.gain_bounds
    if not low <= high:
        raise InvalidArgumentError(
            "gain_bounds",
            plan.gain_bounds,
            "the lower end first, and no NaN",
            problem=f"{title}: gain_bounds is {plan.gain_bounds}",
        )


def _check_actions(agent: EpisodicAgent, title: str, actions: Any) -> None:
    S, A = agent.n_states, agent.n_actions
    if not (isinstance(actions, np.ndarray) and actions.dtype == np.int64 and actions.shape == (S,)):
        found = f"{actions.dtype} of shape {actions.shape}" if isinstance(actions, np.ndarray) else describe(actions)
        raise InvalidArgumentError(
            "actions", actions, f"an array of int64 of shape ({S},)", problem=f"{title}: actions is {found}"
        )
    inside = (actions >= 0) & (actions < A)
    inside[inside] = agent.allowed[np.flatnonzero(inside), actions[inside]]
    if not inside.all():
        s = int(np.flatnonzero(~inside)[0])
        _refuse(agent, title, s, f"plays action {actions[s]}")


def _check_probabilities(agent: EpisodicAgent, title: str, table: Any) -> None:
    shape = (agent.n_states, agent.n_actions)
    if not (isinstance(table, np.ndarray) and table.dtype == np.float64 and table.shape == shape):
        found = f"{table.dtype} of shape {table.shape}" if isinstance(table, np.ndarray) else describe(table)
        raise InvalidArgumentError(
            "probabilities",
            table,
            f"an array of float64 of shape {shape}",
            problem=f"{title}: probabilities is {found}",
        )
    sums = table.sum(axis=1)
    good = (table >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= _SUM_TOLERANCE)
    if not good.all():
        s = int(np.flatnonzero(~good)[0])
        _refuse(agent, title, s, f"has the probabilities {table[s].tolist()}")
    misplaced = (table > 0.0) & ~agent.allowed
    if misplaced.any():
        s, a = (int(i) for i in np.argwhere(misplaced)[0])
        _refuse(agent, title, s, f"plays action {a} with probability {table[s, a]:g}")


def _refuse(agent: EpisodicAgent, title: str, state: int, what: str) -> None:
    actions = ", ".join(str(a) for a in np.flatnonzero(agent.allowed[state]))
    raise InvalidArgumentError(
        "plan",
        state,
        f"a choice among the actions that it has ({actions})",
        "agent.allowed says which",
        problem=f"{title} at step {agent.t + 1}: state {state} {what}",
    )
