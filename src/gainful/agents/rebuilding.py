"""Agents made again from what a file holds: the class by its name or module, and its settings.

No file causes an import: a class that is not gainful's own must have been imported already, or its module be allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents import registry
from gainful.arguments import settings_before
from gainful.errors import InvalidArgumentError, UnknownAgentError
from gainful.user_modules import ImportRefusedError, class_of_file, import_module, is_reference


def module_of(made: type[Any]) -> str:
    """Where a class outside of gainful is defined, as "my_module:MyAgent"; empty for a class of gainful."""
    return "" if registry.class_named(made.__name__) is made else f"{made.__module__}:{made.__qualname__}"


def stored_class(name: str, module: str, allow: Sequence[str] = ()) -> Any:
    """The class of an agent in a file, which has its name and, if it is not gainful's own, its "module:class".

    Raises
    ------
    UnknownAgentError
        If there is no such class, or it is not one of agents.
    ImportRefusedError
        If its module would have to be imported, and is not in `allow`.
    """
    if module:
        if not is_reference(module):
            raise UnknownAgentError(
                f"{module!r} is not the name of a class",
                name="agent",
                found=module,
                hint="define the class at the top of a module, and save the agent again",
            )
        return _agent_class(class_of_file(module, allow), module)
    found = registry.class_named(name)
    if found is not None:
        return found
    for one in allow:  # files of the first version have no module
        found = vars(import_module(one)).get(name)
        if found is not None:
            return _agent_class(found, f"{one}:{name}")
    raise UnknownAgentError(
        f"{name!r} is not a class of this gainful",
        name="agent",
        found=name,
        hint="if it is your own, allow its module (allow=[...], or --allow on the command line); if it is one of a "
        "newer gainful, upgrade",
    )


def _agent_class(found: Any, title: str) -> Any:
    from gainful.agents.episodic import EpisodicAgent  # which imports this
    from gainful.agents.partitioned import PartitionedAgent

    if not (isinstance(found, type) and issubclass(found, EpisodicAgent | PartitionedAgent)):
        raise UnknownAgentError(
            f"{title} is not a class of agents", name="agent", found=title, hint="derive it from EpisodicAgent"
        )
    return found


def with_core_class(settings: dict[str, Any], allow: Sequence[str] = ()) -> dict[str, Any]:
    """Settings in which the class of a discretised agent's core, if it is not gainful's own, stands for its name."""
    core = settings.get("agent_class")
    if not isinstance(core, str) or not is_reference(core):
        return settings
    return {**settings, "agent_class": stored_class("", core, allow)}


def complete_settings(made: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a stored agent; one that its version did not have yet gets the value that it stood for."""
    core = settings.get("agent_class")  # a discretised agent has its core's
    of: Any = core if isinstance(core, type) else registry.class_named(str(core)) or made
    return settings_before(of) | settings


def rebuilt(made: Any, settings: dict[str, Any], allowed: NDArray[np.bool_] | None) -> Any:
    """A new agent of the class `made` with these settings; TypeError, ValueError or KeyError if that cannot be.

    A user's class that does not take `allowed` is not given it, if every state has every action.
    """
    complete = complete_settings(made, settings)
    if allowed is None or (module_of(made) and bool(np.all(allowed)) and not _takes(made, "allowed")):
        return made(**complete)
    return made(**complete, allowed=allowed)


def check_can_be_rebuilt(agent: Any) -> None:
    """Raise an InvalidArgumentError if a user's agent could be written to a file, but not made again from it."""
    made, title, counts = type(agent), type(agent).__name__, agent.core.bonus_counts
    if counts is not None and counts.cannot_be_saved:
        raise InvalidArgumentError(
            "counts",
            counts.title,
            "counts by name, gf.HashedCounts or gf.DensityCounts",
            "codes that your own hash or encoder finds can be given to gf.HashedCounts, which files keep",
            problem=f"a {title} with these counts cannot be saved: {counts.cannot_be_saved}",
        )
    module = module_of(made)
    if not module:
        core = type(agent.core)
        if core is not made and module_of(core):
            _check_class(core)
        return
    _check_class(made)
    settings = agent.settings()
    wanted = [*settings, *([] if bool(np.all(agent.core.allowed)) else ["allowed"])]
    missing = [name for name in wanted if not _takes(made, name)]
    if missing:
        raise InvalidArgumentError(
            "agent",
            title,
            hint=f"let {title}.__init__ take it, or hand **options on to its base class",
            problem=f"a {title} cannot be made again from a file: its __init__ does not take {missing[0]}",
        )


def _check_class(made: type[Any]) -> None:
    try:
        found = class_of_file(module_of(made))
    except ImportRefusedError:
        found = None
    if found is not made:
        raise InvalidArgumentError(
            "agent",
            made.__qualname__,
            hint="define the class at the top of a module",
            problem=f"a {made.__name__} cannot be found again by its name, {module_of(made)}",
        )


def _takes(made: Any, name: str) -> bool:
    """Whether a class accepts this keyword."""
    parameters = inspect.signature(made).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
