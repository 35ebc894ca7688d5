"""The auditors of agents with confidence sets on cells: UCCRL, and tabular ones that are discretised."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.uccrl import UCCRL
from gainful.audit.c_scal_plus import SAMPLED, checked_cells
from gainful.audit.cell_tables import CellTables
from gainful.audit.cells import CellsTruth, right_closed_edges
from gainful.audit.findings import Finding, Floats, compared, not_applicable, without_theorem
from gainful.audit.points import POINTS
from gainful.audit.rows import CountedRows
from gainful.audit.seen import Seen
from gainful.audit.sets import EVERYTHING, Nearest, SetsAuditor, Widths, nearest

MOST_LAW_NUMBERS = 20_000_000
"""Numbers that the laws of all cells at all sampled points may hold; above, rows are not compared with them."""
ABOUT_THE_TRUE_MODEL = ("rewards-in-set", "rows-in-set", "optimism")


def laws_at_points(tables: CellTables, n_cells: int, n_actions: int) -> Floats:
    """(S*A, POINTS, S) p(J|x,a) at the sampled points of every cell; 0 at points outside the environment's box."""
    pairs, counter = n_cells * n_actions, tables.counter()
    none = np.zeros(pairs, dtype=np.int64)
    nothing = CountedRows(none, none, np.zeros(1, dtype=np.uint32), np.zeros(1, dtype=np.int64), none)
    laws, possible = np.zeros((pairs, POINTS, n_cells)), np.ones(pairs, dtype=bool)
    of_one, unused = np.zeros((pairs, POINTS)), np.zeros((pairs, POINTS))
    for cell in range(n_cells):
        counter.compare(nothing, possible, np.eye(n_cells)[cell], of_one, unused)
        laws[:, :, cell] = of_one
    return laws


class CellSetsAuditor(SetsAuditor):
    """Checks the sets, plans and episodes of a tabular agent with sets on the cells of a continuous environment.

    The theorems about it are of finite MDPs: what they say of the true model is not proven here. Optimism is looked at
    where g* is known.

    Parameters
    ----------
    agent : Discretized or UCCRL
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """

    def __init__(self, agent: Any, truth: CellsTruth, simulation: Any) -> None:
        self.on_points = agent
        super().__init__(agent, truth, simulation)
        part = agent.partition
        self.names = (*self.names, "cells", "regret-bound")
        self._cells = checked_cells(part, [right_closed_edges(part, i) for i in range(part.dim)])

    def know(self, truth: Any) -> None:
        """Take over nothing: there is no finite true model."""

    def state(self) -> int:
        """The cell that the run is in."""
        return int(self.on_points.partition.index(self.simulation.point))

    def nearest_reward(self, seen: Seen, widths: Widths) -> Nearest:  # noqa: ARG002
        """None."""
        return Nearest(0.0, 1.0, -1)

    def nearest_row(self, seen: Seen, widths: Widths) -> Nearest:  # noqa: ARG002
        """None."""
        return Nearest(0.0, 1.0, -1)

    def truncates(self, plan: EpisodePlan) -> bool:  # noqa: ARG002
        """Not known."""
        return False

    def measure(self, view: EpisodeView) -> None:
        """Nothing: there is no L̂h* to compare."""

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding; nothing about the true model is proven."""
        names, self.names = self.names, self.names[:-2]
        found, shown = super().findings()
        self.names = names
        told, right = self._cells
        found["cells"] = compared([int(np.count_nonzero(told != right))], 0.0, [1])
        found["regret-bound"] = without_theorem(self.on_points.guarantee.reason_void)
        self.judge_the_true_model(found, shown)
        return {name: found[name] for name in names}, shown

    def judge_the_true_model(self, found: dict[str, Finding], shown: dict[str, Any]) -> None:  # noqa: ARG002
        """Replace the findings that need the true model."""
        why = f"{type(self.agent).__name__}'s proof is about finitely many states, and those of a cell differ"
        known = self.truth.gain_low == self.truth.gain_low
        found["rewards-in-set"] = found["rows-in-set"] = without_theorem(why)
        found["optimism"] = without_theorem(why, found["optimism"] if known else None)


class UCCRLAuditor(CellSetsAuditor):
    """Checks every episode of one UCCRL agent: the same, and its sets hold the true model at points of every cell.

    Where they do, the plan is optimistic. Let u(I) = sup h* over the cell I. For x in I and its best action a,
    g* + h*(x) = r(x,a) + p(·|x,a)·h* ≤ r̃(I,a) + p(·|x,a)·u, and the law of cells p(·|x,a) lies in the ball of (I,a); so
    L̃u ≥ u + g*, and as sp(u) ≤ sp(h*) ≤ c also T_c u ≥ u + g*: the growth rate of T_c is at least g*.
    """

    def __init__(self, agent: UCCRL, truth: CellsTruth, simulation: Any) -> None:
        part = agent.partition
        if agent.lipschitz is not None and agent.holder is not None:  # from the settings, not from the agent's own sum
            self.widening = agent.lipschitz / min(part.bins) ** agent.holder
        self._tables = None if truth.solution is None else truth.on(part)
        self._laws: Floats | None = None
        S, A = part.n_cells, agent.n_actions
        if self._tables is not None:
            shape = (S, POINTS, A)
            inside = self._tables.inside.reshape(S, POINTS)
            self._inside = np.repeat(inside, A, axis=0)  # (S*A, POINTS)
            rewards = self._tables.rewards.reshape(shape).transpose(0, 2, 1)
            self._rewards = rewards.reshape(S * A, POINTS) - agent.reward_min
            if S * A * POINTS * S <= MOST_LAW_NUMBERS:
                self._laws = laws_at_points(self._tables, S, A)
        super().__init__(agent, truth, simulation)

    def nearest_reward(self, seen: Seen, widths: Widths) -> Nearest:
        """The mean reward of a sampled point that is nearest to the edge of its cell's interval."""
        if self._tables is None:
            return super().nearest_reward(seen, widths)
        off = np.where(self._inside, np.abs(self._rewards - seen.mean[:, None]), 0.0)
        return nearest(off.max(axis=1), widths.rewards, seen.visits > 0)

    def nearest_row(self, seen: Seen, widths: Widths) -> Nearest:
        """The law of a sampled point that is nearest to the edge of its cell's ball."""
        if self._laws is None:
            return super().nearest_row(seen, widths)
        p = np.zeros((seen.visits.size, self.agent.n_states))
        p[seen.pair, seen.next_state] = seen.p
        off = np.where(self._inside, np.abs(self._laws - p[:, None, :]).sum(axis=2), 0.0)
        return nearest(off.max(axis=1), np.minimum(EVERYTHING, widths.radius), seen.visits > 0)

    def judge_the_true_model(self, found: dict[str, Finding], shown: dict[str, Any]) -> None:
        """Say why a statement does not apply, where it does not."""
        for name, reason in self._reasons().items():
            found[name] = not_applicable(reason)
        if self._tables is not None:
            shown["points"] = {"per_cell": POINTS, "note": SAMPLED}

    def _reasons(self) -> dict[str, str]:
        """Why statements about the true model are not applicable."""
        agent, truth = self.on_points, self.truth
        reason = truth.uncovered(agent, agent.partition, "the sets assume")
        if reason:
            return dict.fromkeys(ABOUT_THE_TRUE_MODEL, reason)
        reasons = {}
        if self._laws is None:
            reasons["rows-in-set"] = f"more than {MOST_LAW_NUMBERS:,} numbers would be kept"
        if truth.span is not None and truth.span > agent.span * (1.0 + 1e-9):
            reasons["optimism"] = f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}"
        elif not agent.allowed.all():
            reasons["optimism"] = (
                "the agent may not take every action in every cell, and g* is the gain with all of them"
            )
        return reasons
