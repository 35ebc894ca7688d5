"""The auditors of agents that do not plan: Q-learners, whose run is repeated with the equation, and fixed policies."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.agents.epsilon_greedy_q import EpsilonGreedyQ
from gainful.agents.fixed import Fixed
from gainful.agents.optimistic_q import OptimisticQ
from gainful.audit.findings import Finding, Floats, compared, not_applicable, without_theorem
from gainful.audit.learner_trace import DIFFERENTIAL_RULE, OPTIMISTIC_RULE, LearnedTables, LearnerTrace
from gainful.audit.own_problem import discounted_values
from gainful.audit.truth import Truth
from gainful.simulation.transition_table import DETERMINISTIC, RewardLaw
from gainful.theory.baselines import optimistic_q_bonus, optimistic_q_horizon

CONSTANTS_HIDDEN = "theorem 1 of Wei et al. 2020 bounds it by Õ(sp·(SA)^⅓·T^⅔), without the constants"


class LearnerAuditor:
    """Repeats the run of one Q-learner, on the states of an MDP or on cells, and compares the two.

    Its tables depend on every step that was made; so an agent that executes, counts or learns anything else than the
    equation says has other tables in the end, and mostly other visits.

    Parameters
    ----------
    agent : Agent
        A new `OptimisticQ` or `EpsilonGreedyQ`, or one of them on cells.
    truth : Truth or None
        The MDP, solved; None on cells.
    simulation : Simulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = ("update-rule", "optimism", "regret-bound")

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        self.agent, self.truth = agent, truth
        self._trace = LearnerTrace(agent, simulation, self.tables())

    def tables(self) -> LearnedTables:
        """The tables before the first step."""
        core: EpsilonGreedyQ = self.agent.core
        q = np.where(core.allowed, 0.0, -np.inf).reshape(-1)
        numbers = np.array([core.epsilon, core.step_size, core.gain_rate, 0.0])
        nothing = np.full(q.size, -np.inf)
        nearest = np.array([-np.inf, 0.0, 0.0])
        return LearnedTables(DIFFERENTIAL_RULE, numbers, q, q.copy(), core.allowed, nothing, nearest, core.key)

    def see(self, view: EpisodeView) -> None:
        """Note the only episode."""
        self._trace.see(view.step)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, those about the trace among them."""
        traced = self._trace.findings()
        found = {**self.own_findings(), "update-rule": self._update_rule()}
        return {name: found[name] for name in self.names} | traced, {}

    def own_findings(self) -> dict[str, Finding]:
        """The findings that a subclass has theorems about."""
        why = "differential Q-learning has no upper bounds of values"
        return {"optimism": without_theorem(why), "regret-bound": without_theorem(self.agent.guarantee.reason_void)}

    def _update_rule(self) -> Finding:
        """The tables and numbers of the agent against those of the equation."""
        core, tables, T = self.agent.core, self._trace.tables, self._trace.steps
        where = core.allowed.reshape(-1)
        off = np.zeros(where.size)
        for used, right in ((core.q, tables.q), (core.target, tables.target)):
            off[where] = np.maximum(off[where], np.abs(used[where] - right[where]))
        if tables.rule == DIFFERENTIAL_RULE:
            off += abs(float(core.numbers[3]) - float(tables.numbers[3]))
        k, A = int(np.argmax(np.where(np.isnan(off), np.inf, off))), core.n_actions
        largest = float(np.abs(tables.q[where]).max(initial=1.0))
        return compared([off[k]], 0.0, [T], states=[k // A], actions=[k % A], rounding=1e-9 * largest)


class OptimisticQAuditor(LearnerAuditor):
    """The same for optimistic Q-learning, whose Q̂ is at least Q* of the discounted problem with probability 1 - δ.

    The lemma takes r(s,a) as known, c as an upper bound of sp(h*), and as many steps as the agent was told.
    """

    names = ("update-rule", "value-domination", "optimism", "regret-bound")

    def tables(self) -> LearnedTables:
        """The tables before the first step: H everywhere."""
        core: OptimisticQ = self.agent.core
        r_max, S, A = core.reward_range, core.n_states, core.n_actions
        sp, told = core.span / r_max, core.settings()["effective_horizon"]
        given = {"horizon": float(core.horizon), "delta": core.delta}
        self._H = max(2.0, optimistic_q_horizon(S, A, span=sp, **given)) if told is None else float(told)
        first_bonus = float(optimistic_q_bonus(1, self._H, span=core.bonus_scale * sp, **given))
        q = np.where(core.allowed, self._H, -np.inf).reshape(-1)
        numbers = np.array([self._H, first_bonus, r_max])
        nearest = np.array([-np.inf, 0.0, 0.0])
        return LearnedTables(
            OPTIMISTIC_RULE, numbers, q, q.copy(), core.allowed, self._true_values(q.size), nearest, core.key
        )

    def _true_values(self, n_pairs: int) -> Floats:
        """(S*A,) Q* for rewards in [0, 1]; -inf if there is no MDP."""
        if self.truth is None:
            return np.full(n_pairs, -np.inf)
        scaled = (self.truth.rewards - self.agent.reward_min) / self.agent.reward_range
        return discounted_values(self.truth, scaled, 1.0 - 1.0 / self._H)[1]

    def own_findings(self) -> dict[str, Finding]:
        """Q̂ ≥ Q* where the lemma says so."""
        core, truth, T = self.agent.core, self.truth, self._trace.steps
        why = "(1-γ)·V̂ is at least (1-γ)·V*, which may be below g* by sp(h*)/H"
        found = {"optimism": without_theorem(why), "regret-bound": without_theorem(CONSTANTS_HIDDEN)}
        reason = ""
        if truth is None:
            reason = "the states of a cell are not one state of an MDP"
        elif len(RewardLaw.of(truth.mdp).kind) != DETERMINISTIC:
            reason = "rewards vary here, and the lemma takes r(s,a) as known"
        elif truth.span > core.span * (1.0 + 1e-9):
            reason = f"the optimal bias has span {truth.span:.6g}, more than the agent's {core.span:g}"
        elif core.horizon < T:
            reason = f"the agent was told of {core.horizon:,} steps and made {T:,}"
        if reason:
            return {**found, "value-domination": not_applicable(reason)}
        tables, A = self._trace.tables, core.n_actions
        above, step, pair = tables.nearest
        k = int(pair)
        here = {"states": [k // A], "actions": [k % A], "episodes": [1]}
        bound = float(tables.bound[k])
        certain = bool(tables.q[core.allowed.reshape(-1)].min() >= self._H)  # no Q* is above H
        found["value-domination"] = compared(
            [bound], [bound - above], [int(step)], rounding=1e-9 * self._H, certain=[certain], **here
        )
        return found


class FixedAuditor:
    """The auditor of a fixed policy, about which nothing is to be proven; its execution and its data are checked."""

    names: tuple[str, ...] = ("given-policy", "regret-bound")

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:  # noqa: ARG002
        self.agent = agent
        self._steps: list[int] = []
        self._off: list[float] = []

    def see(self, view: EpisodeView) -> None:
        """Compare the plan with the policy that was given."""
        core: Fixed = self.agent.core
        S, A = core.n_states, core.n_actions
        given = np.array(core.settings()["policy"], dtype=np.float64)
        if given.ndim == 1:
            given = np.eye(A)[given.astype(np.int64)]
        played = view.plan.probabilities
        if played is None:
            played = np.eye(A)[view.plan.actions]
        self._steps.append(view.step)
        self._off.append(float(np.abs(played - given).max()) if played.shape == (S, A) else np.inf)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """The plan is the policy given; nothing more to show."""
        return {
            "given-policy": compared(self._off, 0.0, self._steps),
            "regret-bound": without_theorem(self.agent.guarantee.reason_void),
        }, {}
