"""What a spec may name beyond what comes with gainful: "module:object", registered names, Gymnasium ids and tables.

A configuration of such a thing is complete: it has every parameter, and marks that identify the code, the content of a
file or the kind of states. So a stored run is compared and reported without importing anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gainful.agents import registry as agents
from gainful.environments import registry as environments
from gainful.environments.gymnasium_source import is_gymnasium_id
from gainful.user_modules import AGENT_GROUP, ENVIRONMENT_GROUP, is_reference, registered

MODULE_SOURCE = "module source"
"""The parameter, which no signature can have, that holds a digest of the code behind a "module:object"."""
TABLE_CONTENT = "table content"
"""The parameter that holds a digest of the file of a table."""
ON_POINTS, FINITE = "points", "finite"
KIND_OF_STATES = "kind of states"
"""The parameter that says whether the states of an environment are points or finitely many."""
MARKS = (MODULE_SOURCE, TABLE_CONTENT, KIND_OF_STATES)
"""Parameters that identify what was run and are not given to it."""
TABLE = "table="
"""What the name of an environment begins with that is a file, followed by its path relative to the spec."""


def is_foreign_environment(name: str) -> bool:
    """Whether an environment's name is one that does not come with gainful.

    >>> [is_foreign_environment(name) for name in ("table=van.csv", "my_module:pump", "FrozenLake-v1", "riverswim")]
    [True, True, True, False]
    """
    return name.startswith(TABLE) or is_reference(name) or is_gymnasium_id(name)


def is_foreign_agent(name: str) -> bool:
    """Whether an agent's name is "module:object"."""
    return is_reference(name)


def environment_called(name: str) -> str:
    """The environment's name in a configuration: a registered one is its "module:object"; built-in names win."""
    if name in environments.names() or name in environments.continuous_names() or is_foreign_environment(name):
        return name
    return registered(ENVIRONMENT_GROUP).get(name, name)


def agent_called(name: str) -> str:
    """The agent's name in a configuration: SCAL+ is scal-plus, a registered name its "module:object"."""
    if is_foreign_agent(name):
        return name
    usual = agents.usual_name(name)
    if usual in agents.AGENTS or usual in agents.PARTITIONED or usual in agents.NOT_IMPLEMENTABLE:
        return usual
    return registered(AGENT_GROUP).get(name, name)


def on_points(environment: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the states of a configuration's environment are points; nothing is imported."""
    if is_foreign_environment(environment):
        return parameters.get(KIND_OF_STATES) == ON_POINTS
    return environment in environments.continuous_names()


def without_marks(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are given to the environment or the agent."""
    return {name: value for name, value in parameters.items() if name not in MARKS}
