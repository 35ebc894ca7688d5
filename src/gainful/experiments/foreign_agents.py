"""Agents that do not come with gainful: the user's own classes and factories, as specs and command lines name them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.own_verbs import is_learner
from gainful.agents.partitioned import PartitionedAgent
from gainful.errors import MISSING, InvalidArgumentError, describe
from gainful.experiments.foreign_names import MODULE_SOURCE, is_foreign_agent
from gainful.experiments.foreign_signatures import checked_by, owners_of_parameters, parameters_of, raised_by
from gainful.experiments.parameters import (
    AUTO,
    CheckedParameters,
    Parameter,
    check_agent,
    check_agent_parameters,
    run_parameter,
)
from gainful.user_modules import load_object, source_digest

GIVEN_BY_THE_RUN = {
    **dict.fromkeys(
        ("n_states", "n_actions", "reward_min", "reward_max", "allowed"), "it comes from the environment; leave it out"
    ),
    "seed": "each run has its own seed, which the agent gets too; write seeds",
    "partition": "cells have equal sides; write bins, their number per axis",
}
"""Parameters of a user's agent that a spec may not set, and why."""


def check_agent_called(name: str) -> None:
    """Raise an UnknownNameError or an InvalidArgumentError unless an experiment can have the agent called `name`."""
    if is_foreign_agent(name):
        agent_maker(name)
    else:
        check_agent(name)


def agent_maker(name: str) -> Any:
    """The class or function behind "module:object"."""
    found = load_object(name)
    if inspect.isclass(found) or (callable(found) and not is_learner(found)):
        return found
    hint = "write the name of its class, or of a function that makes one: every run needs a new one"
    raise InvalidArgumentError("name", name, "a class or a function", hint, problem=f"{name} is {describe(found)}")


def is_on_points(name: str) -> bool:
    """Whether an agent named in a spec is one on points: a user's class that is derived from `PartitionedAgent`."""
    made = agent_maker(name)
    return inspect.isclass(made) and issubclass(made, PartitionedAgent)


def is_tabular(name: str) -> bool:
    """Whether an agent named in a spec is a user's class that is derived from `EpisodicAgent`."""
    made = agent_maker(name)
    return inspect.isclass(made) and issubclass(made, EpisodicAgent)


def foreign_parameters(name: str, on_points: bool) -> tuple[dict[str, Parameter], bool]:
    """The parameters of a user's agent that a spec may set, and whether it takes any others too."""
    made = agent_maker(name)
    found = {p: known for p, known in parameters_of(made).items() if p not in GIVEN_BY_THE_RUN}
    for p in ("span", "horizon"):
        if p in found:
            default = found[p].default
            found[p] = replace(run_parameter(p), default=AUTO if default is MISSING else default)
    if on_points and (is_tabular(name) or "partition" in owners_of_parameters(made)[0]):
        found["bins"] = run_parameter("bins")
    return found, owners_of_parameters(made)[1]


def checked_agent(name: str, given: Mapping[str, Any], on_points: bool) -> CheckedParameters:
    """The parameters of an agent of any kind, checked, with the mark of one that does not come with gainful."""
    if not is_foreign_agent(name):
        return check_agent_parameters(name, given, on_points)
    known, open_ended = foreign_parameters(name, on_points)

    def why_not(parameter: str) -> str:
        if parameter in GIVEN_BY_THE_RUN:
            return f"{name} cannot be given {parameter}: {GIVEN_BY_THE_RUN[parameter]}"
        if parameter == "bins" and not on_points and parameter not in known:
            return "there are finitely many states, and no cells; leave it out"
        return ""

    checked = checked_by(name, known, given, open_ended=open_ended, why_not=why_not)
    values = {p: value for p, value in checked.values.items() if not (p == "bins" and value == AUTO)}
    return CheckedParameters({**values, MODULE_SOURCE: source_digest(name)}, checked.problems)


def made_by(name: str, options: dict[str, Any]) -> Any:
    """A new agent of a user's own class, or by their own function."""
    with raised_by(name):
        agent = agent_maker(name)(**options)
    if isinstance(agent, EpisodicAgent | PartitionedAgent) or is_learner(agent):
        return agent
    missing = next(verb for verb in ("act", "observe") if not callable(getattr(agent, verb, None)))
    raise InvalidArgumentError(
        "name",
        name,
        hint=f"write {missing}",
        problem=f"{name} made {describe(agent)}, which has no method {missing}",
    )
