"""The auditor of KL-SCAL+ with balanced grids: which grid is played, and its sets, plan and episode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gainful.agents.balanced_grids import BalancedGrids
from gainful.agents.episodic import EpisodeView
from gainful.audit.adaptive_cells import AdaptiveCellsAuditor
from gainful.audit.cells import CellsTruth
from gainful.audit.findings import Finding, Floats, without_theorem
from gainful.theory.balancing import balanced_deviation


class BalancedGridsAuditor(AdaptiveCellsAuditor):
    """Checks every episode of one agent with balanced grids in one continuous environment.

    Parameters
    ----------
    agent : BalancedGrids
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    names = tuple(
        "grids" if name == "leaves" else name for name in AdaptiveCellsAuditor.names if "domination" not in name
    )

    def __init__(self, agent: BalancedGrids, truth: CellsTruth, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        n = self._trees.finest + 1
        self._grid_steps, self._grid_rewards, self._switches = np.zeros(n), np.zeros(n), np.zeros(n)
        self._out = np.zeros(n, dtype=bool)
        self._grid, self._since, self._earned, self._largest = -1, 0, 0.0, 0.0
        sizes = [self._trees.size(j) for j in range(n)]
        self._told = agent.settings()
        self._claim = self._told["regret_scale"] * agent.reward_range * np.sqrt(np.array(sizes) * agent.n_actions)

    def choose_cells(self, view: EpisodeView) -> None:
        """The grid that should be played, from the rewards and steps of all episodes so far."""
        t, earned = view.step - 1, float(view.statistics.reward_sum.sum())
        if self._grid >= 0:
            self._grid_steps[self._grid] += t - self._since
            self._grid_rewards[self._grid] += earned - self._earned
        n, r_max = self._grid_steps, self.agent.reward_range
        claims = self._claim * np.sqrt(n * np.log(1 + n))
        some = n > 0
        cost = max(r_max, self._largest) if self.agent.span is None else self.agent.span
        width = cost * self._switches + self._deviations(cost)
        if some.any():
            mean = self._grid_rewards[some] / n[some]
            best = np.max(mean - width[some] / n[some])
            out = self._out.copy()
            out[some] |= mean + (claims[some] + width[some]) / n[some] < best
            self._out = self._out if out.all() else out
        chosen = int(np.argmin(np.where(self._out, np.inf, claims)))
        self._switches[chosen] += chosen != self._grid
        self._grid, self._since, self._earned = chosen, t, earned
        self._largest = max(self._largest, float(np.ptp(view.plan.values)))
        self._trees.depths[:] = chosen
        self.keep("grids", abs(float(view.plan.details["grid"]) - chosen), 0.0, 0.0)

    def _deviations(self, span: float) -> Floats:
        """The w of every grid."""
        n, r_max, delta = self._grid_steps, self.agent.reward_range, self.agent.delta
        if self._told["elimination"] == "plain":
            return np.asarray(r_max * np.sqrt(n * math.log(n.size / delta)))
        return r_max * balanced_deviation(n, span=span / r_max, delta=delta)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; nothing is proven about the true model."""
        found, shown = super().findings()
        return found | {"optimism": without_theorem("grids that may be too coarse need not be optimistic")}, shown

    def reasons(self) -> dict[str, str]:
        """Why statements are not applicable."""
        return {} if self.agent.span is not None else {"span": "no span was given"}
