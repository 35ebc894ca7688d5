"""The auditor of MBIE-EB: its bonus, its discounted plan, and that this plan is optimistic (Strehl & Littman 2008)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.agents.mbie_eb import MBIEEB
from gainful.audit.counted_again import counted_again
from gainful.audit.episode_auditor import EpisodeAuditor
from gainful.audit.findings import Finding, Floats, not_applicable, without_theorem
from gainful.audit.own_problem import discounted_values
from gainful.audit.seen import Seen
from gainful.audit.truth import Truth
from gainful.theory.baselines import mbie_eb_bonus


class MBIEEBAuditor(EpisodeAuditor):
    """Checks every episode of one MBIE-EB agent, on the states of an MDP or on cells.

    With Tv = max_a { r̄ + β/√N + γ·p̄·v }, (r_max + β)/(1-γ) where N = 0, and V its fixed point, the plan says that
    values lie within ε_k/2 of V, so ‖Tv - v‖ ≤ (1+γ)·ε_k/2, and that the policy loses no more than ε_k. Its lemma,
    V ≥ V* with probability 1 - δ/2, is about the first m visits of every pair, and is judged while no pair has more.
    With pseudo-counts in the place of N the plan is checked all the same, and nothing is known about V.
    """

    names = (
        "bonus-formula",
        "value-domination",
        "certificate",
        "bellman-error",
        "greedy",
        "episode-rule",
        "episode-count",
        "optimism",
        "regret-bound",
    )

    agent: MBIEEB

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        self._judged = 0
        self._true: Floats | None = None
        if truth is not None:
            self._true, _ = discounted_values(truth, truth.rewards - self.agent.reward_min, self.agent.discount)

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        agent, plan = self.agent, view.plan
        S, A, r_max, gamma = agent.n_states, agent.n_actions, agent.reward_range, agent.discount
        seen = Seen.of(view.statistics)
        N = seen.visits
        self.begin(view)
        counted = counted_again(agent.bonus_counts, N)
        bonus, beta = (
            agent.bonus_scale * mbie_eb_bonus(n, S, A, discount=gamma, m=agent.m, delta=agent.delta, reward_max=r_max)
            for n in (counted, 1)
        )
        rewards = np.where(N > 0, seen.mean + bonus, r_max + beta)
        wrong = np.maximum(np.abs(plan.details["bonus"].reshape(-1) - bonus), np.abs(plan.details["rewards"] - rewards))
        self.cases.keep_worst("bonus-formula", wrong / (r_max + bonus), 0.0, 1e-12, self.possible)
        unknown = rewards / (1.0 - gamma)  # the most that this equation gives any pair
        q = np.where(N > 0, rewards + gamma * seen.expected(plan.values), unknown)
        unvisited = bool(np.any(self.possible & (N == 0)))
        self._examine_plan(view, np.where(self.possible, q, -np.inf).reshape(S, A), unvisited)
        self._compare_values(plan.values, view.step, int(N.max()))

    def _examine_plan(self, view: EpisodeView, q: Floats, unvisited: bool) -> None:
        agent, plan, keep = self.agent, view.plan, self.cases.keep
        v, gamma, A = plan.values, agent.discount, agent.n_actions
        epsilon, rounding = agent.reward_range / np.sqrt(view.step), 1e-9 * (1.0 + float(np.abs(v).max()))
        best, played = q.max(axis=1), q[np.arange(v.size), plan.actions]
        off = best - v
        s = int(np.abs(off).argmax())
        keep("bellman-error", np.abs(off)[s], (1.0 + gamma) * epsilon / 2.0, rounding, pair=s * A + int(q[s].argmax()))
        lost = int((best - played).argmax())
        pair = lost * A + int(plan.actions[lost])
        keep("greedy", (best - played)[lost], (1.0 + gamma) * epsilon, rounding, pair=pair)
        # MacQueen's bounds of V from v; pairs never visited lead to a value that does not move
        factor, still = gamma / (1.0 - gamma), 0.0 if unvisited else off[0]
        lower, upper = best + factor * min(off.min(), still), best + factor * max(off.max(), still)
        low, high = ((end - agent.reward_min) / (1.0 - gamma) for end in plan.gain_bounds)
        keep("certificate", max(low - upper.min(), lower.max() - high), 0.0, rounding)

    def _compare_values(self, v: Floats, t: int, most_visits: int) -> None:
        """V ≥ V* of the true model; V is known up to ε_k/2."""
        if self._true is None or most_visits > self.agent.m:
            return
        self._judged += 1
        allowed = v + 0.5 * self.agent.reward_range / np.sqrt(t)
        s = int((self._true - allowed).argmax())
        cap = self.agent.reward_range / (1.0 - self.agent.discount)
        certain = bool(allowed.min() >= cap)
        rounding, pair = 1e-9 * (1.0 + cap), s * self.agent.n_actions
        self.cases.keep("value-domination", self._true[s], allowed[s], rounding, pair=pair, certain=certain)

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        agent = self.agent
        found = self.kept("bonus-formula", "value-domination", "certificate", "bellman-error", "greedy")
        found |= self.episodes()
        if self._true is None:
            found["value-domination"] = not_applicable("the states of a cell are not one state of an MDP")
        elif not agent.bonus_counts.is_exact:
            found["value-domination"] = without_theorem("its lemma is about visits, and these are pseudo-counts")
        elif not self._judged:
            found["value-domination"] = not_applicable(
                f"some pair has more than m = {agent.m:,} visits in every episode"
            )
        why = "its values are discounted: (1-γ)·V may lie on either side of g*"
        found["optimism"] = without_theorem(why)
        found["regret-bound"] = without_theorem(agent.guarantee.reason_void)
        return found
