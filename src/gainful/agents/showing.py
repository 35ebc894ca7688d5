"""How an agent is shown: one line for consoles, a card for notebooks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gainful.cards import MOST_ROWS, card, left_out, rows_table
from gainful.errors import describe
from gainful.number_text import count

_SHOWN_AS_SIZE = ("n_states", "n_actions", "agent_class", "partition", "dim", "low", "high", "outside")
_CHOSEN_BY_SIZE = ("replanning", "transition_prior")
_LONGEST_VALUE = 40


class ShownAgent:
    """Gives every agent a short repr and a notebook card; neither plans nor learns."""

    def __repr__(self) -> str:
        agent: Any = self
        parameters = [f"{name}={text}" for name, text in changed_settings(agent).items()]
        return f"{title(agent)}({', '.join([sizes(agent), *parameters, lived(agent)])})"

    def _repr_html_(self) -> str:
        """For notebooks: parameters, what was lived, the guarantee, and the present policy."""
        agent: Any = self
        facts = {"size": sizes(agent)}
        parameters = changed_settings(agent)
        if parameters:
            facts["parameters"] = ", ".join(f"{name} = {text}" for name, text in parameters.items())
        costs = agent.core.labels is not None and agent.core.labels.objective == "cost"
        facts["costs" if costs else "rewards"] = _interval(agent.reward_min, agent.reward_max, costs)
        facts["learned from"] = lived(agent)
        if agent.current is not None:
            what = "cost per step of the present plan" if costs else "gain of the present plan"
            low, high = agent.current.gain_bounds
            facts[what] = _interval(low, high, costs)
        facts["guarantee"] = str(agent.guarantee)
        if agent.vacuous:
            facts["note"] = "the bounds are still so wide that the plan ignores the data"
        return card(title(agent), facts, *([] if agent.dim else _policy_table(agent)))


def title(agent: Any) -> str:
    """The name of the class, with that of the agent on the cells if there is one inside."""
    name = type(agent).__name__
    return f"{name}[{type(agent.core).__name__}]" if "agent_class" in agent.settings() else name


def sizes(agent: Any) -> str:
    """The numbers of states (or cells) and actions, in words."""
    axes = f" on {agent.dim} ax{'i' if agent.dim == 1 else 'e'}s" if agent.dim else ""
    states = f"{count(agent.n_states, 'cell' if agent.dim else 'state')}{axes}"
    return f"{states}, {count(agent.n_actions, 'action')}"


def lived(agent: Any) -> str:
    """How much the agent has learned from, in words."""
    return f"{count(agent.t, 'step')}, {count(len(agent.core.records), 'episode')}"


def changed_settings(agent: Any) -> dict[str, str]:
    """The parameters that differ from their defaults, each as a short text."""
    defaults: dict[str, Any] = {}
    for kind in (*reversed(type(agent.core).__mro__), *reversed(type(agent).__mro__)):
        if kind is not object and "__init__" in vars(kind):
            defaults |= {p.name: p.default for p in inspect.signature(kind).parameters.values()}
    found = {}
    for name, value in agent.settings().items():
        if name in _SHOWN_AS_SIZE + _CHOSEN_BY_SIZE or value is None:
            continue
        if value != defaults.get(name, inspect.Parameter.empty):
            text = f"{value:.6g}" if isinstance(value, float) else describe(value)
            found[name] = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE].rstrip(' ,…')} …"
    return found


def _interval(low: float, high: float, costs: bool) -> str:
    """Two ends in the user's sign."""
    ends = (0.0 - high, 0.0 - low) if costs else (low, high)
    return f"in [{ends[0]:.6g}, {ends[1]:.6g}]"


def _policy_table(agent: Any) -> list[str]:
    """The first states with their most probable action and their visits."""
    shown = min(MOST_ROWS, agent.n_states)
    actions, labels = agent.policy_at(np.arange(shown)).argmax(axis=1), agent.labels
    names = range(shown) if labels is None or labels.states is None else labels.states
    visits = agent.statistics.visits.reshape(agent.n_states, agent.n_actions)[:shown].sum(axis=1)
    rows = [(str(names[s]), str(agent.action_label(int(actions[s]))), f"{int(visits[s]):,}") for s in range(shown)]
    return [rows_table(["state", "action", "visits"], rows), left_out(shown, agent.n_states, "states")]
