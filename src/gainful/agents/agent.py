"""The protocol of all agents, whether their states are numbers or points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gainful.agents.guarantee import Guarantee
from gainful.agents.labels import AgentLabels

if TYPE_CHECKING:
    from gainful.agents.episodic import EpisodePlan, EpisodicAgent
    from gainful.agents.refinement import TransitionLog


class Agent(Protocol):
    """The interface that simulation loops, files, durable agents and audits use.

    A tabular agent (`EpisodicAgent`) is its own `core`. The core of an agent on points (`PartitionedAgent`) is a
    tabular agent over the cells of a partition, which holds the clock, the statistics and the plan.
    """

    @property
    def core(self) -> EpisodicAgent:
        """The tabular agent that holds the clock, the statistics and the plan."""

    @property
    def dim(self) -> int:
        """The number of coordinates of a state; 0 if states are numbers."""

    @property
    def log(self) -> TransitionLog | None:
        """The raw transitions; None if none are kept."""

    @property
    def refines_at(self) -> int:
        """The number of steps after which the next decision refines the partition."""

    labels: AgentLabels | None
    """The user's words for states and actions, which files keep; None if there are only numbers."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this agent with its present constants."""

    @property
    def vacuous(self) -> bool:
        """Whether the bounds are still so wide that the data do not influence the plan."""

    def act(self, state: Any) -> int:
        """The action to take in `state`; an episode begins first if one is due."""

    def observe(self, state: Any, action: int, reward: float, next_state: Any) -> None:
        """Learn from a transition."""

    def cell(self, state: Any) -> int:
        """The number of `state` in the core; raises InvalidArgumentError if it is not a state."""

    def cells(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of many states; those of a tabular agent have been checked."""

    def refine(self) -> None:
        """Take finer cells if that is due."""

    def begin_episode(self, plan: EpisodePlan | None = None, seconds: float = 0.0) -> None:
        """Begin an episode with a new plan, or with one made elsewhere in `seconds` seconds."""

    def decide(self, state: Any, n: int = 0) -> int:
        """The action of the present plan in a valid `state`, for decision n (from 0) of the present step."""

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""

    def resize(self, settings: dict[str, Any]) -> None:
        """Take the number of states of an agent with these settings."""

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that the agent keeps in addition to the statistics and the plan."""

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""

    def save(self, path: str | Path) -> None:
        """Write the whole state to one plain file."""
