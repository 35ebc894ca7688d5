"""Any tabular agent on the cells of a partition."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from gainful.agents import registry
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.rebuilding import module_of
from gainful.agents.smoothness import checked_partition
from gainful.errors import InvalidArgumentError
from gainful.partition import Partition


class Discretized(PartitionedAgent):
    """Any tabular agent on the cells of a partition: a baseline for agents designed for continuous states.

    States of one cell are treated as one, so the theorem of the tabular agent, which is about finite MDPs, does not
    apply.

    Parameters
    ----------
    agent_class : type or str
        The class of the tabular agent, such as `gf.UCRL2B`, or its name ("ucrl2b").
    partition : Partition
        The cells.
    n_actions : int
        The number of actions A.
    **settings
        The other arguments of the tabular agent.

    Raises
    ------
    InvalidArgumentError
        If the class is not one of a tabular agent, or an argument is not one of its own.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=5, dim=2), n_actions=3)
    >>> agent.observe([0.1, 0.2], agent.act([0.1, 0.2]), 0.5, [0.3, 0.2])
    >>> agent.n_states
    25
    """

    def __init__(
        self,
        agent_class: type[EpisodicAgent] | str,
        partition: Partition | dict[str, Any],
        *,
        n_actions: int,
        **settings: Any,
    ) -> None:
        made = _class_of(agent_class)
        self.partition = checked_partition(partition)
        parameters = inspect.signature(made).parameters
        known = [name for name in parameters if name not in ("n_states", "n_actions")]
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        for name in settings:
            if name not in known and not open_ended:
                raise InvalidArgumentError(
                    name,
                    settings[name],
                    hint=f"it has {', '.join(known)}",
                    problem=f"{made.__name__} has no parameter {name!r}",
                )
        try:
            self.core = made(self.partition.n_cells, n_actions, **settings)
        except TypeError as error:
            problem = f"{made.__name__} cannot be made: {error}"
            raise InvalidArgumentError("settings", settings, problem=problem) from error

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent; the tabular agent's class by its name."""
        core = type(self.core)
        return {"agent_class": module_of(core) or core.__name__, **super().settings()}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the tabular agent, which is void here."""
        return replace(
            self.core.guarantee,
            reason_void=f"{type(self.core).__name__} is meant for finitely many states; "
            "that the states of a cell differ is not accounted for",
        )


def _class_of(agent: type[EpisodicAgent] | str) -> type[EpisodicAgent]:
    """The class itself, or by the name of the class or of the registry."""
    if isinstance(agent, str):
        for name, (_, attribute) in registry.AGENTS.items():
            if attribute == agent:
                return registry.agent_class(name)
        return registry.agent_class(agent)
    if not (isinstance(agent, type) and issubclass(agent, EpisodicAgent)):  # type: ignore[redundant-expr]
        partitioned = isinstance(agent, type) and issubclass(agent, PartitionedAgent)
        raise InvalidArgumentError(
            "agent_class",
            agent,
            "a class such as gf.UCRL2B",
            "it has a partition already" if partitioned else "",
            problem=f"{agent!r} is not a tabular agent",
        )
    return agent
