"""The auditors of SCAL+ and KL-SCAL+ as discretised agents: their plans and episodes, from the counts alone.

C-SCAL+ and C-KL-SCAL+ are the agents with theorems on cells, and have auditors of their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodeView
from gainful.agents.scal_plus import SCALPlus
from gainful.audit.case_log import ExecutionLog
from gainful.audit.cells import CellsTruth
from gainful.audit.episodes import EpisodeFactors, allowed_episodes, episode_count, episode_rule
from gainful.audit.findings import Cases, Finding, joined, not_applicable, without_theorem
from gainful.audit.kl_plans import STATEMENTS_ABOUT_KL_PLANS, KLPlanAuditor
from gainful.audit.planned import STATEMENTS_ABOUT_PLANS, EpisodeRecorder, ScalPlusConstants, plan_cases
from gainful.audit.rows import TrueRows


def without_a_proof_on_cells(agent: Any, truth: CellsTruth, optimism: Finding) -> dict[str, Finding]:
    """Optimism, which is looked at where g* is known, and the regret bound of a discretised agent."""
    why = f"the proof of {type(agent.core).__name__} is about finitely many states, and those of a cell differ"
    known = truth.gain_low == truth.gain_low
    return {
        "optimism": without_theorem(why, optimism if known else None),
        "regret-bound": without_theorem(agent.guarantee.reason_void),
    }


class DiscretizedKLAuditor(KLPlanAuditor):
    """Checks every episode of one KL-SCAL+ agent on the cells of a continuous environment.

    Parameters
    ----------
    agent : Discretized
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names = (*STATEMENTS_ABOUT_KL_PLANS, "regret-bound")

    def __init__(self, agent: Any, truth: CellsTruth, simulation: Any) -> None:  # noqa: ARG002
        self.on_points, self.truth = agent, truth
        S = agent.n_states
        super().__init__(agent.core, math.log(S * (S + 1)) - math.log(agent.core.delta), truth.gain_low)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; nothing more to show."""
        found = self.plan_findings()
        found |= without_a_proof_on_cells(self.on_points, self.truth, found["optimism"])
        if self.core.span is None:
            found["span"] = not_applicable("no span was given")
        return {name: found[name] for name in self.names}, {}


class DiscretizedScalPlusAuditor:
    """Checks every episode of one SCAL+ agent on the cells of a continuous environment.

    Parameters
    ----------
    agent : Discretized
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names: tuple[str, ...] = ("bonus-formula", *STATEMENTS_ABOUT_PLANS, "regret-bound")

    def __init__(self, agent: Any, truth: CellsTruth, simulation: Any) -> None:  # noqa: ARG002
        self.on_points, self.truth = agent, truth
        self.core: SCALPlus = agent.core
        S, pairs = agent.n_states, agent.n_states * agent.n_actions
        constants = ScalPlusConstants.of(self.core, S, 0.0, S)
        nothing = TrueRows(np.zeros(pairs + 1, dtype=np.int64), np.zeros(0, dtype=np.uint32), np.zeros(0))
        for array in nothing:
            array.flags.writeable = False  # as the rows of an MDP: one compiled kernel for both
        self._recorder = EpisodeRecorder(constants, self.core.allowed, nothing, np.zeros(S))
        self._executed = ExecutionLog(pairs)
        self._factors = EpisodeFactors(self.core)
        self._steps: list[int] = []
        self._cases: dict[str, list[Cases]] = defaultdict(list)

    def see(self, view: EpisodeView) -> None:
        """Record an episode that begins."""
        if self._recorder.full:
            self._examine()
        self._recorder.add(view)
        self._executed.begin(view.statistics.visits, self._factors.begin(view, self.core.allowed.size))
        self._steps.append(view.step)

    def _examine(self) -> None:
        """Examine the episodes recorded."""
        gain = self.truth.gain_low - self.core.reward_min
        for name, case in plan_cases(self._recorder.take(), gain).items():
            self._cases[name].append(case)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; nothing more to show."""
        if self._recorder.n:
            self._examine()
        core, step = self.core, np.array(self._steps, dtype=np.float64)
        self._executed.end(core.statistics.visits)
        found = {name: joined(parts).finding(step) for name, parts in self._cases.items()}
        ratio, pair, full, made = self._executed.columns
        most = allowed_episodes(self._factors.rule, made, core.n_states * core.n_actions)
        found["episode-rule"] = episode_rule(step, ratio, pair, full, core.n_actions)
        found["episode-count"] = episode_count(step, made, most)
        found |= without_a_proof_on_cells(self.on_points, self.truth, found["optimism"])
        if core.bonus == "bernstein":
            why = "p̂ alone does not say by how much the operator of the Bernstein bonus contracts"
            found["contraction"] = not_applicable(why)
        return {name: found[name] for name in self.names}, {}
