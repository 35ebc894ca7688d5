"""What can be read of a durable agent while it is open: nothing here writes to its folder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.guarantee import Guarantee
from gainful.agents.labels import AgentLabels
from gainful.agents.statistics import Statistics
from gainful.live.agent_config import plain_settings
from gainful.live.earnings import EarningsOverTime
from gainful.live.inspection import greedy_actions, pair_bonuses, status_of
from gainful.live.labels import LabelTranslation
from gainful.live.receipts import Change, Pending
from gainful.live.session import JournalSession


class ReadableAgent:
    """The present state of an agent whose folder is open, in the owner's labels and units."""

    def __init__(self, session: JournalSession) -> None:
        self._mutex = threading.RLock()
        self._session = session
        self._translation = LabelTranslation(session.labels, self.n_states, self.n_actions, self.dim)

    # ------------------------------------------------------------------ what it is

    @property
    def path(self) -> Path:
        """The folder of the agent."""
        return self._session.folder.path

    @property
    def notices(self) -> list[str]:
        """Events that the owner should know of, such as an unfinished last record that was dropped."""
        return self._session.notices

    @property
    def kind(self) -> str:
        """The name of the agent's class."""
        return type(self._session.machine.agent).__name__

    @property
    def can_plan_in_background(self) -> bool:
        """Whether plans can be made in a thread while decisions are made."""
        return self._session.machine.plans_in_background

    @property
    def t(self) -> int:
        """The number of observations so far, including those the agent began with."""
        return self._session.machine.core.t

    @property
    def sequence(self) -> int:
        """The number of the last record."""
        return self._session.sequence

    @property
    def n_states(self) -> int:
        """The number of states, or of cells."""
        return self._session.machine.core.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self._session.machine.core.n_actions

    @property
    def dim(self) -> int:
        """The number of coordinates of a state; 0 if states are numbered."""
        return self._session.description.dim

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """(S,A) the actions that each state has."""
        return self._session.machine.core.allowed

    @property
    def settings(self) -> dict[str, Any]:
        """The agent's present settings."""
        return plain_settings(self._session.machine.agent.settings())

    # ------------------------------------------------------------------ what it knows

    @property
    def statistics(self) -> Statistics:
        """The counts of everything observed; read it, do not change it."""
        return self._session.machine.core.statistics

    @property
    def n_episodes(self) -> int:
        """The number of episodes so far."""
        return len(self._session.machine.core.records)

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode, see `gainful.agents.episodic.EPISODE_RECORD`."""
        return self._session.machine.core.episodes

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every setting that was changed, in order."""
        return tuple(self._session.machine.changes)

    @property
    def n_pending(self) -> int:
        """The number of decisions that wait for their outcomes."""
        return len(self._session.machine.ledger.pending)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The decisions that wait for their outcomes, the oldest first."""
        with self._mutex:
            waiting = self._session.machine.ledger.pending
            return tuple(self._translation.pending(i, w.state, w.action, w.t) for i, w in waiting.items())

    def answered(self, request_id: str) -> bool:
        """Tell whether a request with this id was answered before, among the last `remember`.

        Parameters
        ----------
        request_id : str
            The id that the caller chose.

        Returns
        -------
        bool
            True if a call with it would be a repetition.
        """
        return request_id.encode("utf-8", "surrogatepass") in self._session.machine.ledger.requests

    @property
    def planning_under_way(self) -> bool:
        """Whether a plan is being made in the background."""
        return self._session.machine.plan_under_way

    @property
    def actions(self) -> NDArray[np.int64] | None:
        """(S,) the present policy's greedy actions; None before the first plan, or for agents that make no plans."""
        return greedy_actions(self._session.machine.core)

    def policy(self) -> dict[Any, Any] | None:
        """Give the present policy's greedy action in every state.

        Returns
        -------
        dict or None
            Actions by state, in labels where there are any; None where `actions` is.
        """
        actions = self.actions
        return None if actions is None else self._translation.policy(actions)

    @property
    def labels(self) -> AgentLabels | None:
        """The labels of states and actions, and whether rewards are costs; None if there are only numbers."""
        return self._translation.labels

    @property
    def gain_bounds(self) -> tuple[float, float] | None:
        """The certified bracket of the present plan's optimistic gain; None before the first plan.

        Costs stay costs: for an agent made with costs it is a bracket of the optimistic average cost.
        """
        plan = self._session.machine.core.current
        return None if plan is None else self._translation.bounds(*plan.gain_bounds)

    def earnings(self) -> EarningsOverTime:
        """Give the average reward over time, and the last outcomes.

        Returns
        -------
        EarningsOverTime
            Averages over at most 255 blocks of equally many observations; costs, if its numbers are costs.
        """
        with self._mutex:
            machine = self._session.machine
            return self._translation.earnings(machine.earnings, machine.core.t)

    def bonuses(self) -> NDArray[np.float64] | None:
        """Compute the bonus of every pair if a plan were made now, without what a cell adds.

        Returns
        -------
        ndarray of shape (S, A) or None
            NaN for actions that a state does not have. None for agents without a bonus.
        """
        return pair_bonuses(self._session.machine.core)

    @property
    def vacuous(self) -> bool:
        """Whether the present plan ignores the data, for agents that know."""
        return self._session.machine.vacuous

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed: the agent's own guarantee, void where its theorem does not apply.

        The theorems are about the agent's own trajectory. They no longer apply after a change of settings; with a prior
        model; after observations that are not outcomes of its own decisions (batches, logs, the choices of others);
        after a plan was adopted later than the observations it was made from; and after an outcome was reported when
        other observations had been made since its decision.
        """
        return self._session.machine.guarantee

    def status(self) -> dict[str, Any]:
        """Report the present state of the agent, in plain types for JSON.

        Returns
        -------
        dict
            Among others `agent`, `settings`, `observations`, `episodes`, `pending`, `objective` (reward or cost),
            `gain_bounds` (of costs, if it is cost), `guarantee`, `changes`, `notices`, and `trouble`: what keeps the
            journal from being written, empty if nothing does.
        """
        with self._mutex:
            return status_of(self._session, self._translation)

    def __repr__(self) -> str:
        state = "closed" if self._session.closed else f"{self.t:,} observations"
        return f"DurableAgent({self.kind} in {self.path}, {state})"
