"""Any tabular agent on the cells of a partition."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from gainful.agents import registry
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import PartitionedAgent
from gainful.agents.smoothness import checked_partition
from gainful.errors import InvalidArgumentError
from gainful.partition import Partition


class Discretized(PartitionedAgent):
    """A tabular agent that takes the cells of a partition for states: a baseline for agents that know better.

    `agent_class` is a class such as `gf.UCRL2B` or its name ("ucrl2b"); `settings` are its own arguments. States of
    one cell are treated as one, so the theorem of the tabular agent, which is about finite MDPs, does not apply.

    >>> from gainful.agents.ucrl2b import UCRL2B
    >>> agent = Discretized(UCRL2B, Partition.uniform(bins=5, dim=2), n_actions=3)
    >>> agent.observe([0.1, 0.2], agent.act([0.1, 0.2]), 0.5, [0.3, 0.2])
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
                raise InvalidArgumentError(f"{made.__name__} has no parameter {name!r}; it has {', '.join(known)}")
        try:
            self.core = made(self.partition.n_cells, n_actions, **settings)
        except TypeError as error:
            raise InvalidArgumentError(f"{made.__name__} cannot be made: {error}") from error

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again; the tabular agent's class by its name."""
        return {"agent_class": type(self.core).__name__, **super().settings()}

    @property
    def guarantee(self) -> Guarantee:
        """That of the tabular agent, which is void here."""
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
        hint = "; it has a partition already" if isinstance(agent, type) and issubclass(agent, PartitionedAgent) else ""
        raise InvalidArgumentError(f"{agent!r} is no tabular agent{hint}; expected a class such as gf.UCRL2B")
    return agent
