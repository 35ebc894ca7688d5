"""The durable agent: every decision and observation is in its journal before the call returns."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from numpy.typing import ArrayLike

from gainful.live.decisions import DecisionMaker
from gainful.live.folder import Folder
from gainful.live.labels import reward_of, rewards_of
from gainful.live.outcomes import OutcomeRecorder
from gainful.live.readable_agent import ReadableAgent
from gainful.live.receipts import Receipt
from gainful.live.session import JournalSession
from gainful.live.settings_changes import change_settings
from gainful.live.state_machine import Planning
from gainful.locks import FolderLock


class DurableAgent(ReadableAgent):
    """An agent that is stored in a folder and survives its process; made by `gf.open_agent`.

    `act`, `observe`, `report`, `observe_many`, `abandon` and `change` write a record to the journal, apply it, and
    return. Everything recorded by a call that has returned is there when the folder is opened again: statistics,
    policy, random numbers, and the decisions that wait for their outcomes. Whether that also holds after a power cut
    depends on the `fsync` policy. Calls may come from several threads; they are executed one after the other. A `with`
    block closes the agent at its end.

    Parameters
    ----------
    folder : Folder
        The folder, which holds the description of the agent.
    lock : FolderLock
        Its lock, held by this process; `close` releases it.
    sync_seconds : float or None
        0 to make every record durable before a call returns, a number of seconds to do so that often, None to leave it
        to the operating system.
    planning : {"auto", "inline", "background"}
        Where plans are made, as for `gf.open_agent`.
    snapshot_every : int or None
        Records between snapshots; None to decide by the length of the journal.

    Notes
    -----
    Randomness: the first decision after t observations draws what the plain agent would draw. Every further one before
    the next observation draws from a stream of its own, so that decisions made side by side are independent.

    Episodes: whether a pair has used up its executions is judged by the outcomes known when a decision is made. With k
    decisions waiting for outcomes, an episode may exceed its limit by k executions.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with gf.open_agent(f"{place}/pump", config) as agent:
    ...         decision = agent.act(0)
    ...         agent.report(decision.decision_id, reward=0.5, next_state=1)
    ...     with gf.open_agent(f"{place}/pump") as agent:
    ...         agent.t
    Receipt(sequence=3, repeated=False)
    1
    """

    def __init__(
        self,
        folder: Folder,
        lock: FolderLock,
        *,
        sync_seconds: float | None,
        planning: Planning,
        snapshot_every: int | None,
    ) -> None:
        super().__init__(
            JournalSession(folder, lock, sync_seconds=sync_seconds, planning=planning, snapshot_every=snapshot_every)
        )
        self._decisions = DecisionMaker(self._session)
        self._outcomes = OutcomeRecorder(self._session)

    # ------------------------------------------------------------------ deciding

    def act(self, state: Any, *, request_id: str | None = None) -> Any:
        """Choose the action to take in a state, and record the decision.

        Parameters
        ----------
        state : int, str or array_like
            The number of the state, its label, or the coordinates of a point.
        request_id : str, optional
            An id chosen by the caller. Another call with the same id, also after a crash, returns the same decision
            again (among the last `remember` ids). Without an id every call is a decision of its own.

        Returns
        -------
        Decision or LabelledDecision
            The action, an int, which carries the `decision_id` to report its outcome by. It is a str if the state was
            given by its label and actions have labels.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have the state.
        ConflictError
            If the request id was used for something else.
        JournalError
            If the journal cannot be written; nothing has happened then.
        PlanningError
            If no plan can be made.
        """
        with self._mutex:
            session = self._session
            if session.closed or session.stale:
                session.make_ready()
            if isinstance(state, str):
                known = self._translation.state("state", state)
                return self._translation.decision(self._decisions.decide(known, request_id), state)
            return self._decisions.decide(state, request_id)

    def predict(self, state: Any) -> Any:
        """Give the greedy action of the present policy in a state, without deciding or writing anything.

        Parameters
        ----------
        state : int, str or array_like
            The number of the state, its label, or the coordinates of a point.

        Returns
        -------
        int or str
            The action, from 0; its label if the state was given by its label and actions have labels.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have the state.
        """
        with self._mutex:
            self._session.make_ready()
            known = self._translation.state("state", state)
            action = int(self._session.machine.agent.predict(known))
            return self._translation.action_name(action) if isinstance(state, str) else action

    # ------------------------------------------------------------------ observing

    def observe(
        self,
        state: Any,
        action: Any,
        reward: float | None = None,
        next_state: Any = None,
        *,
        cost: float | None = None,
        decision_id: int | None = None,
        request_id: str | None = None,
    ) -> Receipt:
        """Record a transition, whether or not the agent chose it, and learn from it.

        Parameters
        ----------
        state, next_state : int, str or array_like
            Where the action was taken, and where it led: numbers, labels or points.
        action : int, str or Decision
            The action that was taken. If it is what `act` returned, the transition is the outcome of that decision. A
            plain number or label is the outcome of the oldest waiting decision of this action in this state, if there
            is one.
        reward : float
            The reward, within the agent's range.
        cost : float, optional
            The cost, in place of a reward: its negative.
        decision_id : int, optional
            The decision whose outcome this is, as in `report`.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        InvalidArgumentError
            If the agent does not accept the transition.
        ConflictError
            If the decision was another, or has another outcome already, or the request id was used for something else.
        UnknownDecisionError
            If no decision with this id waits for its outcome.
        JournalError
            If the journal cannot be written; nothing has happened then, and the call can be repeated.
        """
        with self._mutex:
            session = self._session
            if session.closed or session.stale:
                session.make_ready()
            if cost is not None or reward is None:
                reward = reward_of(session.machine.core, reward, cost)
            if isinstance(state, str) or isinstance(action, str) or isinstance(next_state, str):
                words = (state, action, reward, next_state)
                state, action, reward, next_state = self._translation.transition(session.machine.core, *words)
            return self._outcomes.observe(state, action, reward, next_state, decision_id, request_id)

    def report(
        self,
        decision_id: Any,
        reward: float | None = None,
        next_state: Any = None,
        *,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> Receipt:
        """Record the outcome of a decision, however late, and learn from it.

        Parameters
        ----------
        decision_id : int or Decision
            The decision, as `act` returned it.
        reward : float
            The reward, within the agent's range.
        next_state : int, str or array_like
            Where the action led: a number, a label or a point.
        cost : float, optional
            The cost, in place of a reward: its negative.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record. `repeated` is True if the same outcome was reported before; it is not counted
            again.

        Raises
        ------
        UnknownDecisionError
            If no decision with this id waits for its outcome.
        ConflictError
            If another outcome was reported before.
        InvalidArgumentError
            If the agent does not accept the outcome.
        JournalError
            If the journal cannot be written; nothing has happened then.
        """
        with self._mutex:
            session = self._session
            if session.closed or session.stale:
                session.make_ready()
            if cost is not None or reward is None:
                reward = reward_of(session.machine.core, reward, cost)
            known = self._translation.state("next_state", next_state)
            return self._outcomes.report(decision_id, reward, known, request_id)

    def observe_many(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike | None = None,
        next_states: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
        request_id: str | None = None,
    ) -> Receipt:
        """Record many transitions, in order, in one record: all or none of them, also after a crash.

        Parameters
        ----------
        states, next_states : array_like
            (n,) numbers or labels of states, or (n, d) points.
        actions : array_like
            (n,) the actions, as numbers or labels. They are the outcomes of no decision of this agent.
        rewards : array_like
            (n,) the rewards.
        costs : array_like, optional
            (n,) the costs, in place of the rewards: their negatives.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        InvalidArgumentError
            If a row is not accepted; the message names the first such row.
        JournalError
            If the journal cannot be written; nothing has happened then.
        """
        with self._mutex:
            self._session.make_ready()
            column = self._translation.column
            return self._outcomes.observe_many(
                column("states", states),
                column("actions", actions),
                rewards_of(self._session.machine.core, rewards, costs),
                column("next_states", next_states),
                request_id,
            )

    def abandon(self, decision_id: int, *, request_id: str | None = None) -> Receipt:
        """Record that the outcome of a decision will never be known; it no longer waits.

        Parameters
        ----------
        decision_id : int or Decision
            The decision, as `act` returned it.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        UnknownDecisionError
            If no decision with this id waits for its outcome.
        ConflictError
            If the request id was used for something else.
        """
        with self._mutex:
            self._session.make_ready()
            return self._outcomes.abandon(decision_id, request_id)

    # ------------------------------------------------------------------ changing settings

    def set_span(self, span: float, *, reason: str = "", request_id: str | None = None) -> Receipt:
        """Change the bound c on the span of the bias, from the next episode on; see `change`.

        Parameters
        ----------
        span : float
            The new c.
        reason : str
            Why, in your own words.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have the setting, or does not accept its value.
        ConflictError
            If the request id was used for something else.
        """
        return self.change(reason=reason, request_id=request_id, span=span)

    def set_bonus_scale(self, scale: float, *, reason: str = "", request_id: str | None = None) -> Receipt:
        """Change the factor of the bonus (`width_scale` for agents with confidence sets); see `change`.

        Parameters
        ----------
        scale : float
            The new factor; 1 is the theorem's.
        reason : str
            Why, in your own words.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have the setting, or does not accept its value.
        ConflictError
            If the request id was used for something else.
        """
        name = "bonus_scale" if "bonus_scale" in self._session.machine.agent.settings() else "width_scale"
        return self.change(reason=reason, request_id=request_id, **{name: scale})

    def change(self, *, reason: str = "", request_id: str | None = None, **settings: float) -> Receipt:
        """Change settings of the agent; the next decision begins an episode with them.

        The change is recorded, with its reason, in the journal and in `changes`. The theorems assume that constants
        stay the same, so there is no longer a guarantee.

        Parameters
        ----------
        reason : str
            Why, in your own words.
        request_id : str, optional
            An id chosen by the caller; a repeated call with it has no further effect.
        **settings : float
            New values of `span`, `bonus_scale` or `width_scale`, whichever the agent has.

        Returns
        -------
        Receipt
            The number of the record, and whether the same was recorded before.

        Raises
        ------
        InvalidArgumentError
            If the agent does not have a setting, or does not accept its value.
        ConflictError
            If the request id was used for something else.
        """
        with self._mutex:
            self._session.make_ready()
            return change_settings(self._session, settings, reason, request_id)

    # ------------------------------------------------------------------ snapshots and files

    def snapshot(self) -> None:
        """Write a snapshot now, and compact the journal; on return it is durable.

        A plan under way is finished and adopted first.

        Raises
        ------
        JournalError
            If it cannot be written; nothing is lost, because the journal is complete.
        """
        with self._mutex:
            self._session.make_ready()
            self._session.snapshot()

    def sync(self) -> None:
        """Make every record so far durable, whatever the `fsync` policy; other calls continue meanwhile."""
        with self._mutex:
            self._session.make_ready()
            journal = self._session.journal
        journal.sync()

    def close(self) -> None:
        """Make everything durable, write a last snapshot, and let others open the folder; harmless if repeated."""
        with self._mutex:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def copy(self) -> Any:
        """Make a plain agent in the same state, for simulation, saving or inspection; it writes no journal.

        A plan under way is finished and adopted first.

        Returns
        -------
        agent
            An agent of the class that `kind` names.
        """
        with self._mutex:
            self._session.make_ready()
            self._session.settle()
            return self._session.machine.copy()
