"""The auditor of the count-based bonus β/√N̂: its counts, its bonus, and its plan on the model of SCAL+."""

from __future__ import annotations

import numpy as np

from gainful.agents.count_bonus import CountBonus
from gainful.agents.episodic import EpisodeView
from gainful.audit.counted_again import counted_again
from gainful.audit.episode_auditor import STATEMENTS_ABOUT_A_MODEL, EpisodeAuditor
from gainful.audit.findings import Finding, Floats, without_theorem
from gainful.audit.rows import ANCHOR
from gainful.audit.seen import Seen
from gainful.audit.set_plans import check_plan
from gainful.theory.pseudo_counts import pseudo_count_bonus

UNDERIVED = "nobody has derived β: below about (sp(h*) + r_max)·sqrt(ln(1/δ)/2) a plan need not be optimistic"


class CountBonusAuditor(EpisodeAuditor):
    """Checks every episode of one agent with a count-based bonus, on the states of an MDP or on cells.

    With Tv = max_a { r̄ + β/sqrt(max{1, N̂}) + p̂·v }, r̄ = 0 where N = 0, and p̂ = (N(s,a,s') + 1{s' = s̄})/(N + 1), the
    plan says that Tv - v lies in its bracket, no wider than ε_k, and that no action played loses more than that. N̂ is
    computed again from the visits, by the equation of a hash or a density model. No theorem bounds the regret.
    """

    names = ("bonus-formula", *STATEMENTS_ABOUT_A_MODEL)
    agent: CountBonus

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        self.begin(view)
        agent, plan, seen = self.agent, view.plan, Seen.of(view.statistics)
        bonus = pseudo_count_bonus(counted_again(agent.bonus_counts, seen.visits), agent.beta)
        rewards = seen.mean + bonus
        used, planned_with = plan.details["bonus"].reshape(-1), plan.details["rewards"].reshape(-1)
        wrong = np.maximum(np.abs(used - bonus), np.abs(planned_with - rewards)) / (agent.reward_range + bonus)
        self.cases.keep_worst("bonus-formula", wrong, 0.0, 1e-12, self.possible)
        expected = (seen.visits * seen.expected(plan.values) + plan.values[ANCHOR]) / (seen.visits + 1.0)
        q: Floats = np.where(self.possible, rewards + expected, -np.inf).reshape(agent.allowed.shape)
        check = check_plan(q, q, plan.values, plan.actions)
        self.keep_plan(view, check)
        self.keep_optimism(view, check)

    def rounding(self, view: EpisodeView) -> float:
        """Of one application of the operator, whose rewards are as large as r_max + β."""
        return super().rounding(view) + 1e-9 * self.agent.beta

    def own_findings(self) -> dict[str, Finding]:
        """Each statement's finding."""
        found = self.kept("bonus-formula", "certificate", "precision", "greedy") | self.episodes()
        found["optimism"] = self.unproven_optimism(UNDERIVED)
        found["regret-bound"] = without_theorem(self.agent.guarantee.reason_void)
        return found
