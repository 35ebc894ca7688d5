"""New agents from what a user gives: a dictionary, an agent object, a prior model."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents import registry
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.labels import AgentLabels
from gainful.agents.own_verbs import OWN_COUNTS, STATE_PATH, check_can_act, is_learner, own_verbs
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.rebuilding import check_can_be_rebuilt, rebuilt, stored_class, with_core_class
from gainful.errors import InvalidArgumentError, JournalError, UnknownAgentError, UnknownNameError, suggestion
from gainful.live.folder import AgentDescription
from gainful.live.labels import labels_in
from gainful.live.prior_model import observe_prior
from gainful.mdp.model import MDP
from gainful.user_modules import AGENT_GROUP, ImportRefusedError, is_reference, load_object, registered


def make_agent(config: Any) -> tuple[Any, dict[str, Any] | None]:
    """The agent that `config` describes, and name and weight of its prior (None without one).

    `config` is an agent object, taken as it is, or a dictionary: "agent" is a name such as "scal-plus" or
    "my_module:MyAgent", "prior" and "prior_weight" a model to start from (`observe_prior`), labels and costs as for
    `labels_in`, and everything else the agent's own arguments. With a prior, n_states, n_actions, allowed, the range of
    rewards, labels and sign are the model's unless given.
    """
    if not isinstance(config, dict | str) and is_learner(config):
        check_durable(config)
        return config, None
    if not isinstance(config, dict):
        raise InvalidArgumentError(
            "config",
            config,
            "a dictionary such as {'agent': 'kl-scal-plus', 'n_states': 6, 'n_actions': 2}, or an agent",
            f"gf.load_agent({config!r}) loads a saved agent" if isinstance(config, str) else "",
        )
    given = dict(config)
    name = given.pop("agent", None)
    if not isinstance(name, str):
        raise InvalidArgumentError("config['agent']", name, "a name", "gainful list agents shows them all")
    prior, weight = given.pop("prior", None), given.pop("prior_weight", None)
    if (prior is None) != (weight is None):
        raise InvalidArgumentError(
            "config", config, "both or neither", problem="config has only one of 'prior' and 'prior_weight'"
        )
    made = _class_of(name)
    labels = labels_in(given, "n_states" in inspect.signature(made).parameters)
    if prior is not None:
        _fill_from(prior, given, made)
        labels = labels or AgentLabels.of(prior)
    _check_parameters(name, made, given)
    try:
        agent = made(**given)
    except TypeError as error:
        raise InvalidArgumentError("config", config, problem=f"config: {name} cannot be made: {error}") from error
    check_durable(agent)
    agent.labels = labels
    if prior is None:
        return agent, None
    observe_prior(agent, prior, weight)
    return agent, {"name": prior.name, "weight": int(weight)}


def _check_parameters(name: str, made: Any, given: dict[str, Any]) -> None:
    """Raise an InvalidArgumentError for an argument that the class does not have, or a required one that is missing."""
    parameters = inspect.signature(made).parameters
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for key, value in given.items():
            if key not in parameters:
                raise InvalidArgumentError(
                    f"config[{key!r}]",
                    value,
                    hint=suggestion(key, [*parameters, "prior", "prior_weight", "state_labels", "action_labels"]),
                    problem=f"config[{key!r}]: {name} has no such parameter",
                )
    needed = [p.name for p in parameters.values() if p.default is inspect.Parameter.empty and p.kind not in variadic]
    missing = [parameter for parameter in needed if parameter not in given]
    if missing:
        named = ", ".join(map(repr, missing))
        kinds = [KINDS_IN_WORDS.get(str(parameters[parameter].annotation), "a value") for parameter in missing]
        raise InvalidArgumentError(
            "config",
            sorted(given),
            " and ".join(f"{kind} as {parameter!r}" for kind, parameter in zip(kinds, missing, strict=True)),
            problem=f"config lacks {named}, which {name} needs",
        )


KINDS_IN_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
"""What a parameter without a default is, by its annotation."""


def _class_of(name: str) -> Any:
    """The class behind a name of the registry, one that a package registered, or "my_module:MyAgent"."""
    usual = registry.usual_name(name)
    if usual in registry.PARTITIONED:
        return registry.continuous_class(usual)
    if usual in registry.AGENTS or usual in registry.NOT_IMPLEMENTABLE:
        return registry.agent_class(usual)
    reference = name if is_reference(name) else registered(AGENT_GROUP).get(name)
    if reference is not None:
        return load_object(reference)
    raise UnknownAgentError(
        f"there is no agent '{name}'",
        name="config['agent']",
        found=name,
        hint=suggestion(name, [*registry.AGENTS, *registry.PARTITIONED]),
    )


def check_durable(agent: Any) -> None:
    """Raise an InvalidArgumentError for an agent that cannot be one of a folder, and would be another if it were."""
    if not isinstance(agent, EpisodicAgent | PartitionedAgent):
        raise InvalidArgumentError(
            "config",
            type(agent).__name__,
            "an agent that is derived from EpisodicAgent",
            "a durable agent is made again from its settings and arrays (docs/howto/own_agent.md)",
            problem=f"config makes a {type(agent).__name__}",
        )
    own = [verb for verb in own_verbs(agent) if verb not in (OWN_COUNTS, STATE_PATH)]  # counts are refused below
    if own:
        name = type(agent).__name__
        raise InvalidArgumentError(
            "config",
            name,
            hint="write plan, or the update of a StepwiseAgent, instead (docs/howto/own_agent.md)",
            problem=f"{name} has its own {' and '.join(own)}, which a durable agent would not call",
        )
    check_can_act(agent)
    check_can_be_rebuilt(agent)


def rebuild_agent(header: dict[str, Any], allowed: NDArray[np.bool_] | None) -> Any:
    """A new agent from the header of one in a file; TypeError, ValueError or KeyError if that cannot be.

    A class that is not gainful's own must have been imported before, see `allow_class`.
    """
    made = stored_class(header["agent"], header.get("module") or "")
    return rebuilt(made, with_core_class(header["settings"]), allowed)


@contextlib.contextmanager
def import_refusals(path: Path) -> Iterator[None]:
    """Turn a class that cannot be had, because nobody allowed its module or it is not there, into a JournalError."""
    try:
        yield
    except (UnknownNameError, ImportRefusedError) as error:
        raise JournalError(
            f"{path}: {error.problem}", name="allow", found=error.found, expected=error.expected, hint=error.hint
        ) from error


def allow_class(description: AgentDescription, allow: Sequence[str]) -> None:
    """Import the class of an agent in a folder, if it is not gainful's own and its module is in `allow`.

    Raises
    ------
    UnknownAgentError, ImportRefusedError
        If there is no such class, or its module is neither imported nor allowed.
    """
    stored_class(description.agent, description.module, allow)
    with_core_class(description.settings, allow)


def _fill_from(prior: Any, given: dict[str, Any], made: Any) -> None:
    if not isinstance(prior, MDP):
        raise InvalidArgumentError("config['prior']", prior, "an MDP", "gf.MDP.from_table reads a table")
    known = inspect.signature(made).parameters
    values = {
        "n_states": prior.n_states,
        "n_actions": prior.n_actions,
        "allowed": prior.allowed,
        "reward_min": prior.reward_min,
        "reward_max": prior.reward_max,
    }
    if prior.reward_min >= prior.reward_max:  # a constant reward is not a range
        del values["reward_min"], values["reward_max"]
    for name, value in values.items():
        if name in known:
            given.setdefault(name, value)


# ---------------------------------------------------------------------- is it the same?


def statistics_digest(agent: Any) -> str:
    """A digest of the agent's statistics."""
    arrays = agent.core.statistics.to_arrays()
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + arrays[name].tobytes())
    found.update(np.packbits(agent.core.allowed).tobytes())
    return found.hexdigest()[:32]


def plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in the types that JSON gives back."""
    kept: dict[str, Any] = json.loads(json.dumps(settings, default=_simple))
    return kept


def _simple(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def setting_differences(stored: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Every setting that differs, in words."""
    return [
        f"{name}: stored {stored.get(name)!r}, given {given.get(name)!r}"
        for name in sorted({*stored, *given})
        if stored.get(name) != given.get(name)
    ]
