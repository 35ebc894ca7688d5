"""Agents that learn at every step: a table of action values, updated by one equation, and no planning."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent, one_hot
from gainful.agents.saved_arrays import check_saved
from gainful.agents.statistics import Statistics
from gainful.errors import InvalidArgumentError
from gainful.rng import draw, uniform

PLANNED, OPTIMISTIC, DIFFERENTIAL, OWN_RULE, INDEXED = 0, 1, 2, 3, 4
"""The rules; INDEXED agents choose by an index, and have a loop of their own (`simulation.indexed`)."""


class LearningTables(NamedTuple):
    """The tables of an agent that learns at every step, for kernels; empty for one that plans.

    The rule is the length of the tuple `rule`, and so a constant to the compiler: PLANNED, OPTIMISTIC or DIFFERENTIAL.
    """

    rule: tuple[int, ...]
    q: Any
    target: Any
    numbers: Any
    allowed: Any


class StepwiseAgent(EpisodicAgent):
    """Tables q, target and a few numbers, changed by `learn` after each observation; one endless episode.

    The library's own rules are chosen by `kind`, so that one compiled loop serves them all; `numbers` are the constants
    and the state of a rule. A subclass brings its own rule as the function `update`, and `choose` if it is not greedy.
    """

    kind: int = OWN_RULE
    """Which rule: one of the library's, or that of `update`."""
    numbers: NDArray[np.float64]
    update: Any = None
    """A function update(q, target, numbers, state, action, reward, next_state, visits), mostly with @numba.njit.

    It changes the arrays in place after a transition: q and target of shape (S, A), and numbers. The reward is the one
    observed, and `visits` how often the action was taken in the state, this time included.
    """
    choose: Any = None
    """A function choose(q, numbers, allowed, state, uniform) that returns the action; greedy if there is none.

    `uniform` is a number in [0, 1), drawn for this decision. Actions that a state does not have are -inf in q.
    """

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
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        self.numbers = np.empty(0)
        self.q: NDArray[np.float64] = np.where(self.allowed, 0.0, -np.inf).reshape(-1)
        """(S*A,) the values acted upon; -inf if not allowed."""
        self.target: NDArray[np.float64] = self.q.copy()
        """(S*A,) a second table, for rules that need one."""

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:  # noqa: ARG002
        """Return a plan without sweeps: this agent does not plan."""
        return EpisodePlan(
            actions=np.zeros(self.n_states, dtype=np.int64),
            gain_bounds=(self.reward_min, self.reward_max),
            values=np.zeros(self.n_states),
            sweeps=0,
            doubling=False,
        )

    def policy_at(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N, A) the action of the largest value in each of these states, ties to the lowest, as probabilities."""
        return one_hot(self.q.reshape(self.allowed.shape)[states].argmax(axis=1), self.n_actions)

    def decide(self, state: int, n: int = 0) -> int:
        """The action in a valid `state`, by the present values."""
        key, number = self.decision_key(n), np.uint64(2 * self.t)
        if self.kind not in (OPTIMISTIC, DIFFERENTIAL):
            _check_rule(self)
            return self._own_decision(state, float(one_uniform(key, number)))
        return int(decide(self.kind, self.q, self.numbers, self.allowed, state, key, number))

    def learn(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Learn from a transition that has been checked; the values change immediately."""
        if self.kind not in (OPTIMISTIC, DIFFERENTIAL):
            _check_rule(self)
        super().learn(state, action, reward, next_state)
        pair = state * self.n_actions + action
        if self.kind == OWN_RULE:
            seen = int(self.statistics.visits[pair])
            own_function(self, "update")(*self.own_tables(), state, action, reward, next_state, seen)
            return
        tables, visits = (self.q, self.target, self.numbers), int(self.statistics.visits[pair])
        learn(self.kind, tables, self.n_actions, pair, reward - self.reward_min, next_state, visits)

    def own_tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Give the arrays that `update` changes.

        Returns
        -------
        tuple of ndarray
            (S, A) q, (S, A) target, and numbers; not copies.
        """
        return self.q.reshape(self.allowed.shape), self.target.reshape(self.allowed.shape), self.numbers

    def _own_decision(self, state: int, u: float) -> int:
        """The action that `choose` returns, or the greedy one."""
        choose, (q, _, numbers) = own_function(self, "choose"), self.own_tables()
        if choose is None:
            return int(q[state].argmax())
        action = choose(q, numbers, self.allowed, state, u)
        if not (0 <= action < self.n_actions and self.allowed[state, action]):
            raise wrong_choice(self, state, action)
        return int(action)

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The tables."""
        return {"q": self.q, "target": self.target, "numbers": self.numbers}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the tables."""
        for name in ("q", "target", "numbers"):
            kept = getattr(self, name)
            check_saved(arrays, name, kept, allowed=self.allowed if kept.size == self.allowed.size else None)
            setattr(self, name, arrays[name])


def own_function(agent: StepwiseAgent, name: str) -> Any:
    """`update` or `choose` of an agent as it was written: not bound to the object, as methods are."""
    found = inspect.getattr_static(agent, name)
    return found.__func__ if isinstance(found, staticmethod) else found


def rule_problem(agent: StepwiseAgent) -> InvalidArgumentError | None:
    """What is wrong with an agent that has no rule to learn by; None if it has one."""
    name, hint = type(agent).__name__, "give the class a function update (docs/howto/own_agent.md)"
    if agent.kind in (OPTIMISTIC, DIFFERENTIAL, INDEXED):
        return None
    if agent.kind != OWN_RULE:
        return InvalidArgumentError(
            "kind", agent.kind, "a rule of gainful", hint, problem=f"{name}.kind is {agent.kind}"
        )
    if own_function(agent, "update") is None:
        return InvalidArgumentError("update", hint=hint, problem=f"{name} has no rule to learn by")
    return None


def _check_rule(agent: StepwiseAgent) -> None:
    problem = rule_problem(agent)
    if problem is not None:
        raise problem


def wrong_choice(agent: StepwiseAgent, state: int, action: Any) -> InvalidArgumentError:
    """The error about an action that `choose` returned and the state does not have."""
    actions = ", ".join(str(a) for a in np.flatnonzero(agent.allowed[state]))
    problem = f"{type(agent).__name__}.choose returned {action} in state {state} at step {agent.t + 1}"
    return InvalidArgumentError("action", action, f"one of {actions}", problem=problem)


@inlined
def best_value(q: Any, n_actions: int, s: int) -> float:
    """max_a q(s,a)."""
    best: float = q[s * n_actions]
    for a in range(1, n_actions):
        best = max(best, q[s * n_actions + a])
    return best


@inlined
def greedy(q: Any, n_actions: int, s: int) -> int:
    """argmax_a q(s,a), ties to the lowest."""
    chosen = 0
    for a in range(1, n_actions):
        if q[s * n_actions + a] > q[s * n_actions + chosen]:
            chosen = a
    return chosen


@inlined
def optimistic_update(target: float, reward: float, best: float, visits: int, horizon: float, width: float) -> float:
    """The new Q of Wei et al. 2020 after visit number τ = `visits`, with H = `horizon` and the reward in [0, 1].

    With α = (H+1)/(H+τ): Q + α[r + (1-1/H)·max Q̂(s') + 4·width/√τ - Q], width = sp·sqrt(H·ln(2T/δ)).
    """
    alpha = (horizon + 1.0) / (horizon + visits)
    goal: float = reward + (1.0 - 1.0 / horizon) * best + 4.0 * width / np.sqrt(visits)
    return target + alpha * (goal - target)


@inlined
def differential_error(value: float, reward: float, best: float, average: float) -> float:
    """D = r - r̄ + max q(s') - q(s,a) of Wan, Naik & Sutton 2021."""
    return reward - average + best - value


@kernel
def one_uniform(key: Any, number: Any) -> float:
    """Draw `number` of the stream `key`, in [0, 1)."""
    return uniform(draw(key, number))


@kernel
def decide(rule: int, q: Any, numbers: Any, allowed: Any, s: int, key: Any, number: Any) -> int:
    """The action in state s: greedy, or with probability ε (numbers[0]) a uniform one for the differential rule."""
    n_actions = allowed.shape[1]
    if rule == DIFFERENTIAL:
        u = uniform(draw(key, number))
        if u < numbers[0]:
            possible = 0
            for a in range(n_actions):
                possible += allowed[s, a]
            rank = int(u / numbers[0] * possible)
            for a in range(n_actions):
                if allowed[s, a]:
                    if rank == 0:
                        return a
                    rank -= 1
    return greedy(q, n_actions, s)


@kernel
def learn(rule: int, tables: Any, n_actions: int, pair: int, reward: float, to: int, visits: int) -> None:
    """One update of the `tables` (q, target, numbers) after visit number `visits` of `pair`, reward in internal units.

    Optimistic: numbers = (H, sp·sqrt(H·ln(2T/δ)), r_max); Q̂ ← min(Q̂, Q), where q is Q̂ and target is Q.
    Differential: numbers = (ε, α, η, r̄); q ← q + αd, r̄ ← r̄ + ηαd.
    """
    q, target, numbers = tables
    best = best_value(q, n_actions, to)
    if rule == OPTIMISTIC:
        target[pair] = optimistic_update(target[pair], reward / numbers[2], best, visits, numbers[0], numbers[1])
        q[pair] = min(q[pair], target[pair])
    else:
        d = differential_error(q[pair], reward, best, numbers[3])
        q[pair] += numbers[1] * d
        numbers[3] += numbers[2] * numbers[1] * d


def learner_of(agent: EpisodicAgent) -> tuple[Any, ...]:
    """`LearningTables` as a plain tuple: what a loop changes at every step; empty for an agent that plans."""
    if isinstance(agent, StepwiseAgent):
        return (0,) * agent.kind, agent.q, agent.target, agent.numbers, agent.allowed
    return (), _NONE, _NONE, _NONE, agent.allowed


_NONE = np.empty(0)
