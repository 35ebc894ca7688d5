"""Agents on continuous states: a partition of a box, and a tabular agent over its cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episode_plan import NEVER
from gainful.agents.episodic import EpisodePlan, EpisodeView, EpisodicAgent
from gainful.agents.files import save_agent
from gainful.agents.for_models import CellAgentForEnvironments
from gainful.agents.guarantee import Guarantee
from gainful.agents.labels import AgentLabels, action_number
from gainful.agents.refinement import TransitionLog
from gainful.agents.showing import ShownAgent
from gainful.agents.smoothness import Smoothness
from gainful.agents.statistics import Statistics
from gainful.partition import Partition


class PartitionedAgent(ShownAgent, CellAgentForEnvironments):
    """An agent whose states are points: `core`, a tabular agent, sees the cells of `partition`.

    The policy of a cell is that of every point in it. The clock, the statistics, the plan and the records are those of
    the core. Points outside the partition, NaN and points of another shape are errors of the partition, and leave the
    agent as it was.
    """

    core: EpisodicAgent
    """The tabular agent on the cells."""
    partition: Partition
    """The cells."""
    log: TransitionLog | None = None
    """The raw transitions, if the partition is going to be refined."""
    space: Partition | None = None
    """The box as one cell, if the agent chooses the number of cells itself."""
    refines_at = NEVER
    """The number of steps after which the next decision refines the partition."""
    labels: AgentLabels | None = None
    """The user's words for the actions, which files keep; None if there are only numbers."""

    # ------------------------------------------------------------------ what the core knows

    @property
    def n_states(self) -> int:
        """The number of cells."""
        return self.core.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.core.n_actions

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """(cells, A) the actions each cell has."""
        return self.core.allowed

    @property
    def reward_min(self) -> float:
        """The least reward."""
        return self.core.reward_min

    @property
    def reward_max(self) -> float:
        """The greatest reward."""
        return self.core.reward_max

    @property
    def reward_range(self) -> float:
        """r_max of the theory: reward_max - reward_min."""
        return self.core.reward_range

    @property
    def delta(self) -> float:
        """The probability with which the guarantee may fail."""
        return self.core.delta

    @property
    def seed(self) -> int:
        """The seed of the agent's own draws."""
        return self.core.seed

    @property
    def t(self) -> int:
        """Steps observed so far; the next one is number t + 1."""
        return self.core.t

    @property
    def statistics(self) -> Statistics:
        """Visits, rewards and transitions of the cells."""
        return self.core.statistics

    @property
    def current(self) -> EpisodePlan | None:
        """The plan in force; None before the first."""
        return self.core.current

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode so far, see `episodic.EPISODE_RECORD`."""
        return self.core.episodes

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data; False for agents that have no bounds."""
        return self.core.vacuous

    @property
    def on_episode(self) -> Callable[[EpisodeView], None] | None:
        """A function that is called with an `EpisodeView` whenever an episode begins."""
        return self.core.on_episode

    @on_episode.setter
    def on_episode(self, show: Callable[[EpisodeView], None] | None) -> None:
        self.core.on_episode = show

    # ------------------------------------------------------------------ its own

    @property
    def dim(self) -> int:
        """d, the number of coordinates of a state."""
        return self.partition.dim

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this agent with its present constants."""
        raise NotImplementedError

    def cell(self, state: ArrayLike) -> int:
        """Find the cell of a point.

        Parameters
        ----------
        state : array_like
            d numbers; a plain number if d = 1.

        Returns
        -------
        int
            The number of the cell, from 0.

        Raises
        ------
        InvalidArgumentError
            If the partition does not accept the point.
        """
        return self.partition.index(state)

    def cells(self, states: ArrayLike) -> NDArray[np.int64]:
        """Find the cells of many points.

        Parameters
        ----------
        states : array_like of shape (N, d)
            The points; (N,) if d = 1.

        Returns
        -------
        ndarray of int64, shape (N,)
        """
        return self.partition.index_many(states)

    def refine(self) -> None:
        """Take finer cells if that is due."""

    def act(self, state: ArrayLike) -> int:
        """Choose the action to take at a point; finer cells and a new episode come first if they are due.

        A repeated call before the next `observe` returns the same action.

        Parameters
        ----------
        state : array_like
            d numbers; a plain number if d = 1.

        Returns
        -------
        int
            The action, from 0.

        Raises
        ------
        InvalidArgumentError
            If the partition does not accept the point; the agent then stays as it was.
        NotConvergedError
            If a plan was due and could not be made.
        """
        cell = self.cell(state)  # a bad point changes nothing
        if self.core.t >= self.refines_at:
            self.refine()
            cell = self.cell(state)
        action: int = self.core.act(cell)
        return action

    def begin_episode(self, plan: EpisodePlan | None = None, seconds: float = 0.0) -> None:
        """Begin an episode.

        Parameters
        ----------
        plan : EpisodePlan, optional
            A plan for the cells that was made elsewhere; by default one is made now.
        seconds : float
            The CPU time that making the given plan took.
        """
        self.core.begin_episode(plan, seconds)

    def decide(self, state: ArrayLike, n: int = 0) -> int:
        """Choose the action of the present plan, which there must be; begins no episode.

        Parameters
        ----------
        state : array_like
            d numbers; a plain number if d = 1.
        n : int
            The number of the decision at the present step, from 0.

        Returns
        -------
        int
            The action, from 0.
        """
        return self.core.decide(self.cell(state), n)

    def observe(self, state: ArrayLike, action: Any, reward: float, next_state: ArrayLike) -> None:
        """Learn from a transition: any valid one, whether or not the agent chose it.

        Parameters
        ----------
        state : array_like
            The point at which the action was taken.
        action : int or str
            The action taken, or its label.
        reward : float
            The reward received, in [reward_min, reward_max].
        next_state : array_like
            The point reached.

        Raises
        ------
        InvalidArgumentError
            If the transition is not possible for this agent, which then stays as it was.
        """
        a = action_number(self.labels, action, self.n_actions)
        self.core.observe(self.cell(state), a, reward, self.cell(next_state))
        if self.log is not None:
            self.log.append(state, a, float(reward), next_state)

    def predict(self, observation: ArrayLike) -> int:
        """The greedy action of the present policy at a point; begins no episode and learns nothing.

        Parameters
        ----------
        observation : array_like
            d numbers; a plain number if d = 1.

        Returns
        -------
        int
            The most probable action of the present policy, ties to the lowest; before the first plan the lowest action
            that the cell has.
        """
        action: int = self.core.predict(self.cell(observation))
        return action

    def policy(self, points: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the actions at many points, by the present policy; see `predict`.

        Parameters
        ----------
        points : array_like of shape (N, d)
            The points; (N,) if d = 1.

        Returns
        -------
        ndarray of shape (N, A)
        """
        return self.core.policy_at(self.cells(points))

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent; a saved file holds them together with the arrays.

        Returns
        -------
        dict
            Keyword arguments of the class, all of them plain JSON values.
        """
        kept = self.core.settings()
        del kept["n_states"]
        if self.space is None:
            return {"partition": self.partition.settings(), **kept}
        box = self.space
        ends = {"low": list(box.low), "high": list(box.high)}
        return {"partition": None, "dim": box.dim, **ends, "outside": box.outside, **kept}

    def resize(self, settings: dict[str, Any]) -> None:
        """Take over the cells of an agent with these settings, for agents whose cells change during a run.

        Parameters
        ----------
        settings : dict
            What `settings` of the other agent returned.
        """

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What is kept in addition to the statistics and the current plan: the core's arrays, and the log.

        Returns
        -------
        dict of str to ndarray
            By name; `restore` takes them back.
        """
        return {**self.core.own_arrays(), **({} if self.log is None else self.log.to_arrays())}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned.

        Parameters
        ----------
        arrays : dict of str to ndarray
            The arrays of an agent with the same settings.

        Raises
        ------
        ValueError
            If an array does not fit this agent.
        """
        if self.log is not None:
            self.log.from_arrays(arrays)
            if self.log.n != self.t:
                raise ValueError(f"the log has {self.log.n} transitions after {self.t} steps")
        self.core.restore({name: array for name, array in arrays.items() if not name.startswith("log_")})

    def save(self, path: str | Path) -> None:
        """Write the whole state to one file, which `gf.load_agent` reads.

        The loaded agent continues bit for bit like this one. If writing fails, the file stays as it was before.

        Parameters
        ----------
        path : str or Path
            The file; plain arrays and JSON.

        Raises
        ------
        InvalidArgumentError
            If the file cannot be written.
        """
        save_agent(self, path)


class SmoothAgent(PartitionedAgent):
    """An agent on points with optional arguments for the smoothness of the environment and the horizon."""

    smoothness: Smoothness
    horizon: int | None
    """The number of steps for which the cells were chosen; None if it is unknown."""

    @property
    def lipschitz(self) -> float | None:
        """The Hölder constant L; None if it is unknown."""
        return self.smoothness.lipschitz

    @property
    def holder(self) -> float | None:
        """The Hölder exponent α; None if it is unknown."""
        return self.smoothness.holder

    @property
    def span(self) -> float:
        """The bound c on sp(h*)."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        known = {"lipschitz": self.lipschitz, "holder": self.holder, "horizon": self.horizon}
        return {**super().settings(), **known}

    def assumptions(self) -> tuple[str, ...]:
        """What a theorem on cells assumes of the environment.

        Returns
        -------
        tuple of str
            The assumptions in words: a bound on the span of the optimal bias, and smoothness.
        """
        constants = "" if self.lipschitz is None else f" with L = {self.lipschitz:g}, α = {self.holder or 1.0:g}"
        return (
            f"the optimal bias has span at most c = {self.span:g}",
            f"rewards and transitions are Hölder{constants} on the box scaled to [0, 1]^{self.dim}",
        )
