"""What the auditors of agents that plan from their counts have in common: the episodes of the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.audit.case_log import CaseLog, ExecutionLog
from gainful.audit.episodes import EpisodeFactors, allowed_episodes, episode_count, episode_rule
from gainful.audit.findings import Finding, Floats, without_theorem
from gainful.audit.set_plans import PlanCheck
from gainful.audit.truth import Truth

STATEMENTS_ABOUT_A_MODEL = (
    "certificate",
    "precision",
    "greedy",
    "episode-rule",
    "episode-count",
    "optimism",
    "regret-bound",
)
"""About plans in one model to precision ε_k, which `keep_plan` compares, episodes, and what need not be proven."""


class EpisodeAuditor:
    """Checks every episode of one agent, on the states of an MDP or on cells; subclasses know the equations.

    A subclass lists its statements in `names`. Its `see` calls `begin`, and keeps the comparisons of the episode that
    begins in `cases`; `own_findings` judges them when the run is over.

    Parameters
    ----------
    agent : Agent
        A new agent, with plans, on numbered states or on cells.
    truth : Truth or None
        The MDP, solved; None on cells.
    simulation : Simulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = ()
    agent: Any
    """The agent, or the one on cells within it."""

    def __init__(self, agent: Any, truth: Truth | None, simulation: Any) -> None:
        self.agent = agent.core
        self.truth, self.simulation = truth, simulation
        self.possible = np.ascontiguousarray(self.agent.allowed.reshape(-1))
        """(S*A,) the pairs there are."""
        self.cases, self.executed = CaseLog(self.agent.n_actions), ExecutionLog(self.possible.size)
        self.factors = EpisodeFactors(self.agent)

    def begin(self, view: EpisodeView) -> None:
        """Close the episode before, and begin one."""
        self.cases.begin(view.step)
        self.executed.begin(view.statistics.visits, self.factors.begin(view, self.possible.size))

    def keep_plan(self, view: EpisodeView, check: PlanCheck) -> None:
        """Tv - v lies in the bracket, which is no wider than ε_k, and no action played loses more than that."""
        agent, keep = self.agent, self.cases.keep
        low, high = (end - agent.reward_min for end in view.plan.gain_bounds)
        epsilon, rounding = agent.reward_range / np.sqrt(view.step), self.rounding(view)
        keep("certificate", max(low - check.least, check.most - high), 0.0, rounding)
        keep("precision", high - low, epsilon, 1e-12 * agent.reward_range)
        pair = check.state * agent.n_actions + check.action
        keep("greedy", check.most - check.played, epsilon, rounding, pair=pair)

    def keep_optimism(self, view: EpisodeView, check: PlanCheck) -> None:
        """Compare g*, where it is known, with the largest gain that was planned."""
        if self.truth is not None:
            gain = self.truth.gain_low - self.agent.reward_min
            self.cases.keep("optimism", gain, check.optimistic, self.rounding(view))

    def rounding(self, view: EpisodeView) -> float:
        """Of one application of the operator, computed twice."""
        return 1e-9 * (float(self.agent.reward_range) + float(np.ptp(view.plan.values)))

    @property
    def steps(self) -> Floats:
        """The first steps of the episodes seen."""
        return np.array(self.cases.steps, dtype=np.float64)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and numbers to show."""
        self.executed.end(self.agent.statistics.visits)
        found = self.own_findings()
        return {name: found[name] for name in self.names}, self.shown()

    def own_findings(self) -> dict[str, Finding]:
        """The finding on each of `names`, once the run is over."""
        raise NotImplementedError

    def shown(self) -> dict[str, Any]:
        """Numbers to show, of which there are none unless a subclass has some."""
        return {}

    def kept(self, *names: str) -> dict[str, Finding]:
        """The findings on statements whose comparisons were kept in the episodes."""
        return {name: self.cases.finding(name) for name in names}

    def episodes(self) -> dict[str, Finding]:
        """The rule that ends episodes when the visits of a pair have doubled, or grown by f_k, and their number."""
        step, (ratio, pair, full, made) = self.steps, self.executed.columns
        most = allowed_episodes(self.factors.rule, made, self.possible.size)
        return {
            "episode-rule": episode_rule(step, ratio, pair, full, self.agent.n_actions),
            "episode-count": episode_count(step, made, most),
        }

    def unproven_optimism(self, why: str) -> Finding:
        """How often a plan was optimistic, where g* is known, although no theorem says so."""
        return without_theorem(why, self.cases.finding("optimism") if self.truth is not None else None)
