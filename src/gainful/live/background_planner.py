"""Planning in the background: a copy of the agent sees the same transitions, a little later, and plans in a thread.

Planning changes what only planning uses (the warm start), so the thread has a copy of the agent to itself.
Observations made meanwhile wait in a list and are given to the copy, in the order they came, when the next plan begins.
The same statistics, step and warm start give the same plan, whoever makes it: a journal need only say from which
observation a plan was made and at which it was adopted.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.files import agent_state, take_state
from gainful.agents.kl_scal_plus import KLSCALPlus
from gainful.agents.rebuilding import rebuilt, with_core_class
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent

MAX_WAITING_OBSERVATIONS = 1 << 16
"""Waiting observations that the copy is given before the next plan, so that they do not fill the memory."""


def copy_agent(agent: EpisodicAgent, **settings: Any) -> EpisodicAgent:
    """A new agent with the same state; with some settings changed, its next plan has no warm start.

    A warm start made with other settings may prove nothing (the band of a local plan), and where plans are made in the
    background this agent's own is outdated.
    """
    header, arrays = agent_state(agent)
    header = {**header, "settings": {**header["settings"], **settings}}
    made: EpisodicAgent = rebuilt(type(agent), with_core_class(header["settings"]), agent.allowed)
    if settings and makes_only_plans(agent):
        kept = {name: array for name, array in arrays.items() if not name.startswith("own_") or "_log_" in name}
        arrays = kept | {f"own_{name}": array for name, array in made.own_arrays().items() if "log_" not in name}
    if isinstance(made, SCALPlus | KLSCALPlus) and isinstance(agent, SCALPlus | KLSCALPlus):
        made.model_error = agent.model_error  # of the cells it stands on, which its settings do not know
    take_state(made, header, {name: np.array(array) for name, array in arrays.items()})
    return made


def makes_only_plans(agent: Any) -> bool:
    """Whether beginning an episode only makes a plan, so that the plan can be made in the background."""
    core = agent.core
    return type(core).begin_episode is EpisodicAgent.begin_episode and not isinstance(core, StepwiseAgent)


class BackgroundPlanner:
    """A copy of an agent that makes its plans in a thread, one at a time.

    `changed` are the pairs observed since the last plan was made, if that is not the last one adopted.
    """

    def __init__(self, agent: EpisodicAgent, changed: NDArray[np.int64] | None = None) -> None:
        self._copy = copy_agent(agent)
        if changed is not None:
            self._copy.statistics.set_changes(changed)
        self._pairs: list[int] = []
        self._to: list[int] = []
        self._rewards: list[float] = []
        self._thread: threading.Thread | None = None
        self._made: tuple[EpisodePlan, float] | BaseException | None = None
        self.planned_from = -1
        """The number of observations that the plan under way is made from; -1 if there is none."""

    def observe(self, pair: int, to: int, reward: float) -> None:
        """Note a transition, its reward in internal units, for the next plan."""
        self._pairs.append(pair)
        self._to.append(to)
        self._rewards.append(reward)
        if len(self._pairs) >= MAX_WAITING_OBSERVATIONS and self.planned_from < 0:
            self._catch_up(*self._taken())

    def observe_many(self, pairs: NDArray[np.int64], to: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """Note many transitions for the next plan."""
        self._pairs += pairs.tolist()
        self._to += to.tolist()
        self._rewards += rewards.tolist()

    def _taken(self) -> tuple[list[int], list[int], list[float]]:
        waiting = self._pairs, self._to, self._rewards
        self._pairs, self._to, self._rewards = [], [], []
        return waiting

    def _catch_up(self, pairs: list[int], to: list[int], rewards: list[float]) -> None:
        if pairs:
            self._copy.count_many(np.array(pairs, dtype=np.int64), np.array(to, dtype=np.int64), np.array(rewards))

    def begin(self, agent: EpisodicAgent) -> None:
        """Begin a plan from what `agent` has seen so far; `wait` tells whether it is made."""
        copy = self._copy
        copy.t, copy.current, copy.records = agent.t, agent.current, agent.records
        copy.visited[:] = agent.visited
        self.planned_from, self._made = agent.t, None
        waiting = self._taken()
        self._thread = threading.Thread(target=self._work, args=waiting, name="gainful-planning", daemon=True)
        self._thread.start()

    def _work(self, pairs: list[int], to: list[int], rewards: list[float]) -> None:
        copy = self._copy
        try:
            began = time.thread_time()
            self._catch_up(pairs, to, rewards)
            plan = copy.plan(copy.statistics, copy.t + 1)
            copy.statistics.forget_changes()
            # a local plan's arrays belong to the copy, and change with its next plan
            plan = replace(plan, actions=plan.actions.copy(), values=plan.values.copy())
            self._made = plan, time.thread_time() - began
        except BaseException as error:
            self._made = error

    def wait(self, seconds: float | None = None) -> bool:
        """Whether the plan is made (or has failed), after waiting at most `seconds` seconds."""
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True

    @property
    def made(self) -> bool:
        """Whether the plan under way is made, or has failed."""
        return self._made is not None

    def failed(self) -> bool:
        """Wait for a plan under way; forget it if it cannot be made."""
        if self.planned_from < 0 or (self.wait() and not isinstance(self._made, BaseException)):
            return False
        self.planned_from, self._made = -1, None
        return True

    def take(self) -> tuple[EpisodePlan, float]:
        """The plan and the seconds it took; raises what planning raised."""
        self.wait()
        made, self._made, self.planned_from = self._made, None, -1
        if isinstance(made, BaseException):
            raise made
        assert made is not None
        self._copy.current = made[0]
        return made

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data."""
        return self._copy.vacuous

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The warm start of the next plan; no plan may be under way. What the agent itself has seen is its own."""
        return {name: array for name, array in self._copy.own_arrays().items() if "log_" not in name}

    def changed_pairs(self) -> NDArray[np.int64]:
        """The pairs observed since the last plan was made."""
        waiting = np.array(self._pairs, dtype=np.int64)
        return np.union1d(self._copy.statistics.changed_pairs(), waiting)
