"""Planning beside acting: a twin of the agent that sees the same transitions, later, and plans in a thread.

An agent that plans changes what only planning uses (its warm start), so the thread has an agent of its own, the twin.
Observations made meanwhile wait in a list and are given to the twin, in the order they came, when the next plan begins.
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
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.stepwise import StepwiseAgent
from gainful.live.observing import count_many

MANY = 1 << 16
"""Waiting observations that are given to the twin before the next plan, so that they do not fill the memory."""


def copy_of(agent: EpisodicAgent, **settings: Any) -> EpisodicAgent:
    """A new agent with the same state; with some settings changed, its next plan has no warm start.

    A warm start made with other settings may prove nothing (the band of a local plan), and where plans are made by a
    twin this agent's own is old.
    """
    header, arrays = agent_state(agent)
    header = {**header, "settings": {**header["settings"], **settings}}
    made: EpisodicAgent = type(agent)(**header["settings"], allowed=agent.allowed)
    if settings and plans_plainly(agent):
        kept = {name: array for name, array in arrays.items() if not name.startswith("own_") or "_log_" in name}
        arrays = kept | {f"own_{name}": array for name, array in made.own_arrays().items() if "log_" not in name}
    if isinstance(made, SCALPlus) and isinstance(agent, SCALPlus):
        made.model_error = agent.model_error  # of the cells it stands on, which its settings do not know
    take_state(made, header, {name: np.array(array) for name, array in arrays.items()})
    return made


def plans_plainly(agent: Any) -> bool:
    """Whether an episode is a plan and nothing else, so that a twin can make it."""
    core = agent.core
    return type(core).begin_episode is EpisodicAgent.begin_episode and not isinstance(core, StepwiseAgent)


class Twin:
    """The twin of `agent`, and the plan it is making."""

    def __init__(self, agent: EpisodicAgent, changed: NDArray[np.int64] | None = None) -> None:
        self._planner = copy_of(agent)
        if changed is not None:  # since the twin's last plan, not since the last adoption
            self._planner.statistics.set_changes(changed)
        self._pairs: list[int] = []
        self._to: list[int] = []
        self._rewards: list[float] = []
        self._thread: threading.Thread | None = None
        self._made: tuple[EpisodePlan, float] | BaseException | None = None
        self.planned_from = -1
        """The number of observations that the plan under way is made from; -1 where there is none."""

    def observe(self, pair: int, to: int, reward: float) -> None:
        """A transition, reward in internal units."""
        self._pairs.append(pair)
        self._to.append(to)
        self._rewards.append(reward)
        if len(self._pairs) >= MANY and self.planned_from < 0:
            self._catch_up(*self._taken())

    def observe_many(self, pairs: NDArray[np.int64], to: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """Many of them."""
        self._pairs += pairs.tolist()
        self._to += to.tolist()
        self._rewards += rewards.tolist()

    def _taken(self) -> tuple[list[int], list[int], list[float]]:
        waiting = self._pairs, self._to, self._rewards
        self._pairs, self._to, self._rewards = [], [], []
        return waiting

    def _catch_up(self, pairs: list[int], to: list[int], rewards: list[float]) -> None:
        if pairs:
            count_many(
                self._planner.statistics, np.array(pairs, dtype=np.int64), np.array(to, dtype=np.int64),
                np.array(rewards),
            )  # fmt: skip

    def begin(self, agent: EpisodicAgent) -> None:
        """Begin a plan from what `agent` has seen now; `wait` tells when it is made."""
        twin = self._planner
        twin.t, twin.current, twin.records = agent.t, agent.current, agent.records
        twin.visited[:] = agent.visited
        self.planned_from, self._made = agent.t, None
        waiting = self._taken()
        self._thread = threading.Thread(target=self._work, args=waiting, name="gainful-planning", daemon=True)
        self._thread.start()

    def _work(self, pairs: list[int], to: list[int], rewards: list[float]) -> None:
        twin = self._planner
        try:
            began = time.thread_time()
            self._catch_up(pairs, to, rewards)
            plan = twin.plan(twin.statistics, twin.t + 1)
            twin.statistics.forget_changes()
            # a local plan's arrays are the twin's own, and change with its next plan
            plan = replace(plan, actions=plan.actions.copy(), values=plan.values.copy())
            self._made = plan, time.thread_time() - began
        except BaseException as error:
            self._made = error

    def wait(self, seconds: float | None = None) -> bool:
        """Whether the plan is made (or has failed), after waiting at most so long."""
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
        self._planner.current = made[0]
        return made

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data."""
        return self._planner.vacuous

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from; no plan is under way."""
        return self._planner.own_arrays()

    def changed_pairs(self) -> NDArray[np.int64]:
        """The pairs observed since the last plan was made."""
        waiting = np.array(self._pairs, dtype=np.int64)
        return np.union1d(self._planner.statistics.changed_pairs(), waiting)
