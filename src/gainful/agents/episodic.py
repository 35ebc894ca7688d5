"""The base of all agents that plan once per episode: the clock, the statistics, `act` and `observe`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episode_log import EpisodeLog
from gainful.agents.episode_plan import NEVER
from gainful.agents.episode_plan import EpisodePlan as EpisodePlan
from gainful.agents.episode_plan import EpisodeView as EpisodeView
from gainful.agents.execution_limits import NO_GROUPS, ExecutionLimits
from gainful.agents.for_models import TabularAgentForModels
from gainful.agents.guarantee import Guarantee
from gainful.agents.labels import AgentLabels, action_number, state_number
from gainful.agents.plan_checks import check_plan
from gainful.agents.policy_kernels import choose, grant
from gainful.agents.showing import ShownAgent
from gainful.agents.state_path import StatePath
from gainful.agents.statistics import Statistics, count_transitions
from gainful.arguments import finite, plain_number, reward_range, whole_below
from gainful.errors import InvalidArgumentError, describe
from gainful.machine import check_table_size
from gainful.pseudo_counts.provider import BonusCounts
from gainful.rng import Role, draws, stream_key

if TYPE_CHECKING:
    from gainful.agents.refinement import TransitionLog

BYTES_PER_PAIR = 100.0
"""What an agent needs at least for each state and action once it has planned, in bytes."""


class EpisodicAgent(ShownAgent, TabularAgentForModels, ExecutionLimits):
    """An agent on numbered states that plans once per episode; a subclass implements `plan`.

    An episode ends when the action chosen in the current state has been executed in it max{1, ⌊f·N_k(s,a)⌋} times, N_k
    being the visits before the episode and f the plan's multiplier (1 unless the plan says otherwise). The test comes
    before the execution: the action is then chosen again by the new policy. Rewards enter in the user's units, in
    [reward_min, reward_max], and are shifted to [0, r_max] here and nowhere else.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min : float
        Every reward lies between them; r_max of the theory is their difference.
    delta : float
        δ, the probability with which the guarantee may fail.
    seed : int
        The seed of the agent's own randomness.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.
    """

    dim = 0
    """The number of coordinates of a state: none, states are numbers."""
    log: TransitionLog | None = None
    """None: no raw transitions are kept."""
    refines_at = NEVER
    """The number of steps after which the next decision refines the partition: never."""
    labels: AgentLabels | None = None
    """The user's words for states and actions, which files keep; None if there are only numbers."""
    bonus_counts: BonusCounts | None = None
    """What a count-based bonus is computed from; None for agents without one."""
    path: StatePath | None = None
    """What the agent keeps of the order of states; None for agents that need no more than counts."""

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
    ) -> None:
        for name, size in (("n_states", n_states), ("n_actions", n_actions)):
            if not isinstance(size, int | np.integer) or size < 1:  # type: ignore[redundant-expr]
                raise InvalidArgumentError(name, size, "an integer of at least 1")
        self.reward_min, self.reward_max = reward_range(reward_min, reward_max)
        if not (finite(delta) and 0.0 < delta < 1.0):
            raise InvalidArgumentError("delta", delta, "a probability in (0, 1)")
        check_table_size("n_states", int(n_states), int(n_actions), BYTES_PER_PAIR, "an agent")
        self.n_states, self.n_actions = int(n_states), int(n_actions)
        self.delta = float(delta)
        self.allowed: NDArray[np.bool_] = np.ones((self.n_states, self.n_actions), dtype=bool)
        """(S,A) the actions each state has."""
        if allowed is not None:
            mask = np.array(allowed, dtype=bool)
            if mask.shape != self.allowed.shape or not mask.any(axis=1).all():
                wanted = f"{self.allowed.shape} with an action in every state"
                raise InvalidArgumentError("allowed", allowed, wanted, problem=f"allowed has shape {mask.shape}")
            self.allowed = mask
        self.allowed.flags.writeable = False
        self.key, self.seed = stream_key(seed, Role.ACTIONS), int(seed)
        self.statistics = Statistics(self.n_states, self.n_actions)
        self.t = 0
        """Steps observed so far; the next one is number t + 1."""
        self.current: EpisodePlan | None = None
        self._begin_limits(self.n_states * self.n_actions)
        self.planned_at = -1
        """The value of t when the current episode began."""
        self.interrupted = False
        """Whether the episode is to end before the next decision, for a reason of its own (a new state)."""
        self.visited: NDArray[np.bool_] = np.zeros(self.n_states, dtype=bool)
        """States seen so far, as the origin or the end of a transition."""
        self.records = EpisodeLog()
        self.on_episode: Callable[[EpisodeView], None] | None = None

    @property
    def core(self) -> EpisodicAgent:
        """The tabular agent that has the clock, the statistics and the plan: this one."""
        return self

    def cell(self, state: Any) -> int:
        """Check a state.

        Parameters
        ----------
        state : int or str
            The state, from 0, as a whole number of any type; or its label.

        Returns
        -------
        int
            Its number, as a plain integer.

        Raises
        ------
        InvalidArgumentError
            If this agent has no such state.
        """
        return state_number(self.labels, "state", state, self.n_states)

    def cells(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Return the numbers of many states, which are the states themselves.

        Parameters
        ----------
        states : ndarray of shape (N,)
            Valid states.

        Returns
        -------
        ndarray of int64, shape (N,)
        """
        return states.astype(np.int64)

    def refine(self) -> None:
        """Do nothing: the states of a tabular agent stay as they are."""

    @property
    def reward_range(self) -> float:
        """r_max of the theory: reward_max - reward_min."""
        return self.reward_max - self.reward_min

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode so far: a structured array.

        The fields are step (the episode's first step, from 1), gain, gain_low and gain_high (the planner's gain and
        its bracket), span (of the planner's values), sweeps and planning_seconds (CPU time).
        """
        return self.records.array.copy()

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:  # noqa: ARG002
        """Plan an episode.

        Parameters
        ----------
        statistics : Statistics
            What has been seen so far.
        t : int
            The number of the episode's first step, from 1.

        Returns
        -------
        EpisodePlan
            What to do until the episode ends.

        Raises
        ------
        InvalidArgumentError
            In this class: a subclass implements it.
        """
        name = type(self).__name__
        raise InvalidArgumentError(
            "agent",
            self,
            hint=f"write plan(self, statistics, t) in {name}, which returns an EpisodePlan, or act and observe of its "
            "own (docs/howto/own_agent.md)",
            problem=f"{name} has no method plan",
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this agent with its present constants; none unless a subclass says what is proven."""
        return Guarantee("none", (), "", f"{type(self).__name__} does not say what is proven")

    @property
    def vacuous(self) -> bool:
        """Whether the bounds are still so wide that the plan ignores the data; False for agents without bounds."""
        return False

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent; a saved file holds them together with the arrays.

        Returns
        -------
        dict
            Keyword arguments of the class, all of them plain JSON values.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.UCRL2(2, 3, delta=0.1).settings()["delta"]
        0.1
        """
        return {
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "reward_max": self.reward_max,
            "reward_min": self.reward_min,
            "delta": self.delta,
            "seed": self.seed,
        }

    def resize(self, settings: dict[str, Any]) -> None:
        """Take over the number of states of an agent with these settings, if it changes during a run.

        Parameters
        ----------
        settings : dict
            What `settings` of the other agent returned.
        """

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What a subclass keeps, in addition to the statistics and the current plan, to continue bit for bit.

        Returns
        -------
        dict of str to ndarray
            By name; `restore` takes them back.
        """
        return {}

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
        from gainful.agents.files import save_agent  # which knows every agent, this class too

        save_agent(self, path)

    def predict(self, state: Any) -> Any:
        """The greedy action of the present policy; begins no episode and learns nothing.

        Parameters
        ----------
        state : int or str
            The state, from 0, or its label.

        Returns
        -------
        int or str
            The most probable action of the present policy, ties to the lowest; before the first plan the lowest action
            that the state has. A label if the state was given by its label and actions have labels.

        Examples
        --------
        >>> import gainful as gf
        >>> gf.UCRL2(2, 2).predict(1)
        0
        """
        action = int(np.argmax(self.policy_at(np.array([self.cell(state)]))[0]))
        return self.action_label(action) if isinstance(state, str) else action

    def policy_at(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probabilities of the actions in many states, by the present policy; see `predict`.

        Parameters
        ----------
        states : ndarray of int64, shape (N,)
            Valid states.

        Returns
        -------
        ndarray of shape (N, A)
        """
        plan = self.current
        if plan is not None and plan.probabilities is not None:
            return plan.probabilities[states]
        chosen = self.allowed[states].argmax(axis=1) if plan is None else plan.actions[states]
        return one_hot(chosen, self.n_actions)

    def act(self, state: Any) -> Any:
        """Choose the action to take in `state`; a new episode begins first if one is due.

        A repeated call before the next `observe` returns the same action.

        Parameters
        ----------
        state : int or str
            The state, from 0, or its label.

        Returns
        -------
        int or str
            The action, from 0; its label if the state was given by its label and actions have labels.

        Raises
        ------
        InvalidArgumentError
            If `state` is not a state of this agent.
        NotConvergedError
            If a plan was due and could not be made.
        """
        if isinstance(state, str):
            return self.action_label(self.act(self.cell(state)))
        s = whole_below("state", state, self.n_states)
        if self.current is None or self.interrupted or self.t >= self.current.last_step:
            self.begin_episode()
        assert self.current is not None
        a = self.decide(s)
        if self.limit_reached(s * self.n_actions + a):
            self.begin_episode()
            a = self.decide(s)
        return a

    def decide(self, state: int, n: int = 0) -> int:
        """Choose the action of the present plan, which must exist; this does not begin an episode.

        Decision t uses draw 2t, and 2t+1 when the episode began at it. Further decisions at one step have streams of
        their own.

        Parameters
        ----------
        state : int
            A valid state.
        n : int
            The number of the decision at the present step, from 0.

        Returns
        -------
        int
            The action, from 0.
        """
        assert self.current is not None
        if self.current.probabilities is None:
            return int(self.current.actions[state])
        number = 2 * self.t + (self.planned_at == self.t)
        return int(choose(self.current.cumulative, state, self.decision_key(n), np.uint64(number)))

    def decision_key(self, n: int) -> np.uint64:
        """Return the key of the draws for one of several decisions at one step.

        Parameters
        ----------
        n : int
            The number of the decision, from 0.

        Returns
        -------
        uint64
        """
        if n == 0:
            return self.key
        key = np.empty(1, dtype=np.uint64)
        draws(~self.key, np.uint64(n), key)
        return np.uint64(key[0])

    def action_label(self, action: int) -> Any:
        """Give the label of an action.

        Parameters
        ----------
        action : int
            A valid action.

        Returns
        -------
        str or int
            Its label; the action itself if actions have none.
        """
        labels = self.labels
        return action if labels is None or labels.actions is None else labels.actions[action]

    def observe(self, state: Any, action: Any, reward: float, next_state: Any) -> None:
        """Learn from a transition: any valid one, whether or not the agent chose it.

        Parameters
        ----------
        state : int or str
            The state in which the action was taken, or its label.
        action : int or str
            The action taken, or its label.
        reward : float
            The reward received, in [reward_min, reward_max]; the negative of a cost.
        next_state : int or str
            The state reached, or its label.

        Raises
        ------
        InvalidArgumentError
            If the transition is not possible for this agent, which then stays as it was.
        """
        s = state_number(self.labels, "state", state, self.n_states)
        a = action_number(self.labels, action, self.n_actions)
        to = state_number(self.labels, "next state", next_state, self.n_states)
        if not self.allowed[s, a]:
            raise InvalidArgumentError(
                "action",
                a,
                hint="the agent was made with allowed=, which says what each state has",
                problem=f"action {a} at step {self.t + 1}: state {s} does not have it",
            )
        try:
            r = reward if type(reward) is float else plain_number(reward)
        except (TypeError, ValueError, OverflowError) as error:
            problem = f"reward {describe(reward)} at step {self.t + 1}"
            raise InvalidArgumentError("reward", reward, "a number", problem=problem) from error
        if not self.reward_min <= r <= self.reward_max:
            raise InvalidArgumentError(
                "reward",
                reward,
                f"a number in [{self.reward_min:g}, {self.reward_max:g}]",
                "give the agent the true reward_min and reward_max",
                problem=f"reward {reward} at step {self.t + 1}",
            )
        self.learn(s, a, r, to)

    def learn(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learn from a transition that has been checked, as `observe` does.

        Parameters
        ----------
        state : int
            A valid state.
        action : int
            An action that the state has.
        reward : float
            The reward, in [reward_min, reward_max].
        next_state : int
            A valid state.
        """
        pair = state * self.n_actions + action
        if self.bonus_counts is not None:
            self.bonus_counts.update(state, action)
        if self.path is not None:
            self.path.follow(state, reward - self.reward_min, next_state)
        if self.statistics.observe(pair, next_state, reward - self.reward_min) and self.current is not None:
            self.remaining[pair] = self.current.execution_limit(int(self.visits_before[pair]))
        self.remaining[pair] -= 1
        if self.group_left.size:
            self.note_executed(pair)
        self.t += 1
        self.visited[state] = True
        if not self.visited[next_state]:
            self.visited[next_state] = True
            self.interrupted = self.current is not None and self.current.stop_on_new_state

    def counts(self) -> tuple[Any, ...]:
        """Give the arrays in which this agent counts, for kernels that count in its place.

        Returns
        -------
        tuple
            The fields of `AgentCounts`, in order. The arrays are the agent's own and not copies.
        """
        s, plan = self.statistics, self.current
        return (
            s.rows,
            s.visits,
            s.reward_sum,
            s.reward_squares,
            s.is_changed,
            s.changed,
            s.n_changed,
            self.remaining,
            self.visits_before,
            self.visited,
            self.n_actions,
            1.0 if plan is None else plan.multiplier,
        )

    def policy_in_force(self, steps_before: int) -> tuple[Any, ...]:
        """Give the present plan, which there must be, for kernels that execute it.

        Parameters
        ----------
        steps_before : int
            The number of steps that the agent had observed before the run.

        Returns
        -------
        tuple
            The fields of `Policy`, in order. The arrays are the plan's own and not copies.
        """
        plan = self.current
        assert plan is not None
        return (
            plan.actions,
            plan.cumulative,
            self.key,
            steps_before,
            self.planned_at == self.t,
            plan.doubling and plan.groups is None,
            plan.stop_on_new_state,
            self.reward_min,
            self.reward_max,
            NO_GROUPS if plan.groups is None else plan.groups,
            self.group_left,
        )

    def count_many(self, pairs: NDArray[np.int64], targets: NDArray[np.int64], rewards: NDArray[np.float64]) -> bool:
        """Count many transitions in turn, as `observe` does; the clock `t` is the caller's to set.

        Parameters
        ----------
        pairs : ndarray of int64, shape (N,)
            The pairs, state · A + action.
        targets : ndarray of int64, shape (N,)
            The next states.
        rewards : ndarray of float64, shape (N,)
            The rewards less reward_min, so in [0, r_max].

        Returns
        -------
        bool
            Whether a state was reached that had never been visited.
        """
        done, new = 0, False
        if self.bonus_counts is not None:
            for pair in pairs.tolist():
                self.bonus_counts.update(*divmod(pair, self.n_actions))
        if self.path is not None:
            self.path.follow_many(pairs, targets, rewards, self.n_actions)
        while True:
            done, reached = count_transitions(self.counts(), pairs, targets, rewards, done)
            new = new or reached
            if done == pairs.size:
                self.note_executed(pairs)
                return new
            self.statistics.enlarge()

    def begin_episode(self, plan: EpisodePlan | None = None, seconds: float = 0.0) -> None:
        """Begin an episode, in which every pair may be executed max{1, ⌊f·N⌋} times.

        Parameters
        ----------
        plan : EpisodePlan, optional
            A plan made elsewhere from what this agent had seen; an interruption that came after it stays pending.
            By default one is made now.
        seconds : float
            The CPU time that making the given plan took.

        Raises
        ------
        NotConvergedError
            If no plan can be made.
        """
        if plan is None:
            began = time.process_time()
            plan = self.plan(self.statistics, self.t + 1)
            seconds, self.interrupted = time.process_time() - began, False
            if not type(self).__module__.startswith("gainful."):
                check_plan(self, plan)  # compiled loops take it as it is
        low, high = plan.gain_bounds
        span = float(np.ptp(plan.values)) if plan.span is None else plan.span
        self.records.append((self.t + 1, low + (high - low) / 2, low, high, span, plan.sweeps, seconds))
        self.current, self.planned_at = plan, self.t
        grant(self.counts())
        self.renew_group_limits()
        if self.on_episode is not None:
            self.on_episode(EpisodeView(len(self.records), self.t + 1, plan, self.statistics))


def one_hot(actions: NDArray[np.int64], n_actions: int) -> NDArray[np.float64]:
    """(N, A) rows of probabilities that choose these actions."""
    table = np.zeros((actions.size, n_actions))
    table[np.arange(actions.size), actions] = 1.0
    return table
